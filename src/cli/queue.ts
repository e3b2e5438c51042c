// reprise queue: lists, pauses, resumes and limits the queues of a store.

import { formatMs, RepriseError, toMs, type Duration } from "../base/index.ts";
import type { Client, QueueInfo } from "../engine/index.ts";
import type { Limit, QueueOptions, Store } from "../kernel/index.ts";
import { withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withStore, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson } from "./output.ts";
import { isoOf } from "./run-format.ts";
import { Table, type Cell, type Column } from "./table.ts";
import { plain } from "./text.ts";
import { exitCodeOf, remarkSkipped } from "./unchanged.ts";

export interface LimitOptions extends GlobalOptions {
  readonly concurrency?: number;
  readonly rate?: string;
  readonly keyConcurrency?: number;
  readonly keyRate?: string;
  readonly none?: boolean;
}

function withQueuesToRead<T>(options: GlobalOptions, work: (client: Client, store: Store) => Promise<T>): Promise<T> {
  return withStoreToRead(options.store, (store) => withClient(store, [], (client) => work(client, store)));
}

function withQueues<T>(options: GlobalOptions, work: (client: Client, store: Store) => Promise<T>): Promise<T> {
  return withStore(options.store, (store) => withClient(store, [], (client) => work(client, store)));
}

export const QUEUE_COLUMNS = [
  { title: "QUEUE", minWidth: 12 },
  { title: "READY", right: true },
  { title: "RUNNING", right: true },
  { title: "DELAYED", right: true },
  { title: "OLDEST" },
  { title: "LIMITS", minWidth: 12 },
  { title: "", minWidth: 6 },
] as const satisfies readonly Column[];

export async function listQueues(options: GlobalOptions): Promise<number> {
  return withQueuesToRead(options, async (client, store) => {
    const queues = await Array.fromAsync(client.listQueues());
    if (options.json) for (const queue of queues) await printJson(queueJson(queue));
    else {
      const table = new Table(QUEUE_COLUMNS);
      for (const line of table.render(queues.map((queue) => queueCells(queue, store.now())))) await print(line);
    }
    return EXIT.ok;
  });
}

function queueCells(queue: QueueInfo, now: number): Cell[] {
  const { name, ready, leased, delayed, oldestReadyAt, limits } = queue;
  return [
    name,
    String(ready),
    String(leased),
    String(delayed),
    oldestReadyAt === undefined ? "" : formatMs(Math.max(0, now - oldestReadyAt.getTime())),
    limitsText(limits),
    pausedCell(queue),
  ];
}

export function pausedCell({ paused, pausedAt }: Pick<QueueInfo, "paused" | "pausedAt">): Cell {
  if (!paused) return "";
  const since = isoOf(pausedAt);
  return { text: since === null ? "paused" : `paused since ${since}`, paint: (text) => paint("yellow", text) };
}

/** `4 at once, 100 per 1 m, per key 1 at once` */
export function limitsText({ perKey, ...own }: QueueOptions): string {
  const keyed = perKey === undefined ? "" : limitText(perKey);
  return [limitText(own), keyed === "" ? "" : `per key ${keyed}`].filter((part) => part !== "").join(", ");
}

function limitText({ concurrency, rate }: Limit): string {
  const parts = [
    ...(concurrency === undefined ? [] : [`${concurrency} at once`]),
    ...(rate === undefined ? [] : [`${rate.limit} per ${formatMs(toMs(rate.per))}`]),
  ];
  return parts.join(", ");
}

export async function pauseQueue(name: string, options: GlobalOptions): Promise<number> {
  return withQueues(options, async (client) => {
    const isPaused = (await client.findQueue(name))?.paused === true;
    if (!isPaused) await client.getQueue(name).pause();
    return printChanged("pause", "paused", name, client, options, isPaused ? "already paused" : undefined);
  });
}

export async function resumeQueue(name: string, options: GlobalOptions): Promise<number> {
  return withQueues(options, async (client) => {
    const isPaused = (await client.findQueue(name))?.paused !== false;
    // A queue that does not exist is refused here.
    if (isPaused) await client.getQueue(name).resume();
    return printChanged("resume", "resumed", name, client, options, isPaused ? undefined : "it is not paused");
  });
}

export async function limitQueue(name: string, options: LimitOptions): Promise<number> {
  const own = limitOf(options.concurrency, options.rate, "--rate");
  const perKey = limitOf(options.keyConcurrency, options.keyRate, "--key-rate");
  const limits = { ...own, ...(perKey && { perKey }) };
  const isEmpty = own === undefined && perKey === undefined;
  if (isEmpty !== (options.none === true))
    throw new RepriseError(
      "USAGE",
      "queue limit: pass new limits, such as --concurrency 4, or --none to remove all limits; not both.",
    );
  return withQueues(options, async (client) => {
    await client.getQueue(name).limit(limits);
    return printChanged("limit", "changed", name, client, options);
  });
}

function limitOf(concurrency: number | undefined, rate: string | undefined, option: string): Limit | undefined {
  if (concurrency === undefined && rate === undefined) return undefined;
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(rate !== undefined && { rate: rateOf(rate, option) }),
  };
}

/** `100/1m` */
function rateOf(text: string, option: string): { limit: number; per: Duration } {
  const [, limit, per] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  if (limit === undefined || per === undefined)
    throw new RepriseError(
      "USAGE",
      `${option}: ${JSON.stringify(text)} is not a rate. Use a count and a time, such as 100/1m.`,
    );
  return { limit: Number(limit), per: toMs(per as Duration, option) };
}

async function printChanged(
  action: string,
  past: string,
  name: string,
  client: Client,
  options: GlobalOptions,
  unchanged?: string,
): Promise<number> {
  const queue = await client.findQueue(name);
  if (options.json)
    await printJson({ action, skipped: unchanged ?? null, queue: queue === undefined ? null : queueJson(queue) });
  else if (unchanged !== undefined) remarkSkipped(name, unchanged);
  else {
    const limits = queue === undefined || action !== "limit" ? "" : limitsText(queue.limits) || "no limits";
    await print(`${paint("green", past)} ${paint("bold", plain(name))}${limits === "" ? "" : `  ${limits}`}`);
  }
  return exitCodeOf(unchanged === undefined ? 0 : 1);
}

function queueJson(queue: QueueInfo): Record<string, unknown> {
  return {
    name: queue.name,
    paused: queue.paused,
    pausedAt: isoOf(queue.pausedAt),
    ready: queue.ready,
    leased: queue.leased,
    delayed: queue.delayed,
    oldestReadyAt: isoOf(queue.oldestReadyAt),
    limits: queue.limits,
  };
}
