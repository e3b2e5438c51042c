// reprise queue: how the queues of a store stand; pausing them, and other limits.

import { formatMs, RepriseError, toMs, type Duration } from "../base/index.ts";
import type { Engine, QueueInfo } from "../engine/index.ts";
import type { Limit, QueueOptions, Store } from "../kernel/index.ts";
import { withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { reading } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson } from "./output.ts";
import { isoOf } from "./shown-run.ts";
import { Table, type Cell } from "./table.ts";
import { plain } from "./text.ts";

export interface LimitOptions extends GlobalOptions {
  readonly concurrency?: number;
  readonly rate?: string;
  readonly keyConcurrency?: number;
  readonly keyRate?: string;
  readonly none?: boolean;
}

function onQueues<T>(options: GlobalOptions, work: (engine: Engine, store: Store) => Promise<T>): Promise<T> {
  return reading(options.store, (store) => withClient(store, [], (engine) => work(engine, store)));
}

export const QUEUE_COLUMNS = [
  { title: "QUEUE", least: 12 },
  { title: "READY", right: true },
  { title: "AT WORK", right: true },
  { title: "DELAYED", right: true },
  { title: "OLDEST" },
  { title: "LIMITS", least: 12 },
  { title: "" },
] as const;

export async function listQueues(options: GlobalOptions): Promise<number> {
  return onQueues(options, async (engine, store) => {
    const queues = await engine.queues();
    if (options.json) for (const queue of queues) await printJson(queueJson(queue));
    else {
      const table = new Table(QUEUE_COLUMNS);
      for (const line of table.render(queues.map((queue) => queueCells(queue, store.now())))) await print(line);
    }
    return EXIT.ok;
  });
}

function queueCells({ name, ready, leased, delayed, oldestReadyAt, limits, paused }: QueueInfo, now: number): Cell[] {
  return [
    name,
    String(ready),
    String(leased),
    String(delayed),
    oldestReadyAt === undefined ? "" : formatMs(Math.max(0, now - oldestReadyAt.getTime())),
    limitsText(limits),
    paused ? { text: "paused", paint: (text) => paint("yellow", text) } : "",
  ];
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
  return onQueues(options, async (engine) => {
    await engine.queue(name).pause();
    return said("pause", "paused", name, engine, options);
  });
}

export async function resumeQueue(name: string, options: GlobalOptions): Promise<number> {
  return onQueues(options, async (engine) => {
    await engine.queue(name).resume();
    return said("resume", "resumed", name, engine, options);
  });
}

export async function limitQueue(name: string, options: LimitOptions): Promise<number> {
  const own = limitOf(options.concurrency, options.rate, "--rate");
  const perKey = limitOf(options.keyConcurrency, options.keyRate, "--key-rate");
  const limits = { ...own, ...(perKey && { perKey }) };
  const isEmpty = own === undefined && perKey === undefined;
  if (isEmpty !== (options.none === true))
    throw new RepriseError("USAGE", "queue limit: give the new limits, or --none to take all of them away; not both.");
  return onQueues(options, async (engine) => {
    await engine.queue(name).limit(limits);
    return said("limit", "limited", name, engine, options);
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
      `${option}: expected a count and a time such as 100/1m, got ${JSON.stringify(text)}.`,
    );
  return { limit: Number(limit), per: toMs(per as Duration, option) };
}

async function said(
  action: string,
  past: string,
  name: string,
  engine: Engine,
  options: GlobalOptions,
): Promise<number> {
  const queue = (await engine.queues()).find((one) => one.name === name);
  if (options.json) await printJson({ action, queue: queue === undefined ? null : queueJson(queue) });
  else {
    const limits = queue === undefined || action !== "limit" ? "" : limitsText(queue.limits) || "no limits";
    await print(`${paint("green", past)} ${paint("bold", plain(name))}${limits === "" ? "" : `  ${limits}`}`);
  }
  return EXIT.ok;
}

function queueJson(queue: QueueInfo): Record<string, unknown> {
  return {
    name: queue.name,
    paused: queue.paused,
    ready: queue.ready,
    leased: queue.leased,
    delayed: queue.delayed,
    oldestReadyAt: isoOf(queue.oldestReadyAt),
    limits: queue.limits,
  };
}
