// reprise schedule: manages schedules. Only `create` needs the code; the other commands need only the store.

import { formatMs, RepriseError, systemClock, type Duration } from "../base/index.ts";
import { createClient, type Client, type ScheduleHandle, type ScheduleInfo } from "../engine/index.ts";
import { scheduleTag, type CatchUp, type Overlap, type Store } from "../kernel/index.ts";
import { withClient } from "./client.ts";
import { CommandError } from "./command-error.ts";
import { confirm } from "./confirm.ts";
import type { GlobalOptions } from "./global-options.ts";
import { RunTable } from "./list.ts";
import { checkWorkflow, loadDefinitions } from "./load-definitions.ts";
import { withStore, withStoreToRead } from "./open-store.ts";
import { explainSchedule } from "../explain/index.ts";
import { EXIT } from "./exit-codes.ts";
import { explanationLines, reasonJson } from "./explanation.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { payloadOptions } from "./payload-module.ts";
import { readInput } from "./read-input.ts";
import { isoOf, paintStatus, runJson } from "./run-format.ts";
import { Table, type Cell } from "./table.ts";
import { pluralize, plain } from "./text.ts";
import { exitCodeOf, remarkSkipped } from "./unchanged.ts";
import { refuseMemoryStore } from "./worker.ts";

export interface CreateOptions extends GlobalOptions {
  readonly cron?: string;
  readonly every?: Duration;
  readonly timeZone?: string;
  readonly overlap?: Overlap;
  readonly catchUp?: CatchUp;
  readonly jitter?: Duration;
  readonly inputFile?: string;
}

const LAST_RUNS = 10;

function withSchedulesToRead<T>(
  options: GlobalOptions,
  work: (client: Client, store: Store) => Promise<T>,
): Promise<T> {
  return withStoreToRead(options.store, (store) => withClient(store, [], (client) => work(client, store)));
}

function withSchedules<T>(options: GlobalOptions, work: (client: Client, store: Store) => Promise<T>): Promise<T> {
  return withStore(options.store, (store) => withClient(store, [], (client) => work(client, store)));
}

export async function listSchedules(options: GlobalOptions): Promise<number> {
  return withSchedulesToRead(options, async (client, store) => {
    const found: ScheduleInfo[] = [];
    for await (const info of client.listSchedules()) found.push(info);
    if (options.json) for (const info of found) await printJson(scheduleJson(info));
    else if (found.length === 0) remark("No schedules. Create one: `reprise schedule create --help`");
    else {
      const table = new Table([
        { title: "SCHEDULE" },
        { title: "DEFINITION", minWidth: 10 },
        { title: "WHEN", minWidth: 10 },
        { title: "NEXT" },
        { title: "LAST RUN", dropOrder: 1 },
      ]);
      for (const line of table.render(found.map((info) => scheduleCells(info, store.now())))) await print(line);
    }
    return EXIT.ok;
  });
}

function scheduleCells(info: ScheduleInfo, now: number): Cell[] {
  const next: Cell = info.paused ? { text: "paused", paint: (text) => paint("yellow", text) } : nextText(info, now);
  const { lastStatus, lastAt } = info;
  const last: Cell =
    lastAt === undefined
      ? ""
      : {
          text: `${formatMs(Math.max(0, now - lastAt.getTime()))} ago${lastStatus === undefined ? "" : `, ${lastStatus}`}`,
          paint: (text) => (lastStatus === undefined ? text : paintStatus(paint, lastStatus, text)),
        };
  return [info.name, info.definition, whenText(info), next, last];
}

function nextText({ nextAt }: ScheduleInfo, now: number): string {
  if (nextAt === undefined) return "never";
  const ms = nextAt.getTime() - now;
  return ms > 0 ? `in ${formatMs(ms)}` : `overdue by ${formatMs(-ms)}`;
}

function whenText({ cron, timeZone, everyMs }: ScheduleInfo): string {
  return cron === undefined ? `every ${formatMs(everyMs ?? 0)}` : `${cron} (${timeZone ?? "UTC"})`;
}

export async function showSchedule(name: string, options: GlobalOptions): Promise<number> {
  return withSchedulesToRead(options, async (client, store) => {
    const info = await (await requireSchedule(client, name)).info();
    const runs = await store.listRuns({ tags: [scheduleTag(name)], limit: LAST_RUNS });
    const record = await store.findSchedule(name);
    const waitsFor = record === undefined ? [] : await explainSchedule(store, record);
    if (options.json) {
      await printJson({ ...scheduleJson(info), runs: runs.map(runJson), waitsFor: waitsFor.map(reasonJson) });
      return EXIT.ok;
    }
    const now = store.now();
    const row = (title: string, text: string): Promise<void> => print(`${paint("dim", title.padEnd(12))}${text}`);
    await print(`${paint("bold", plain(name))}  starts ${plain(info.definition)}`);
    await row("when", plain(whenText(info)));
    await row("next", info.paused ? paint("yellow", "paused") : `${isoOf(info.nextAt) ?? "-"}  ${nextText(info, now)}`);
    await row("overlap", info.overlap);
    await row("catch up", info.catchUp);
    if (info.jitterMs > 0) await row("jitter", `up to ${formatMs(info.jitterMs)}`);
    if (info.waiting.length > 0) await row("queued", pluralize(info.waiting.length, "planned time", "planned times"));
    await print(`\n${explanationLines(waitsFor).join("\n")}`);
    if (runs.length === 0) return EXIT.ok;
    await print("");
    for (const line of new RunTable(runs, now).render(runs)) await print(line);
    return EXIT.ok;
  });
}

export async function createSchedule(
  name: string,
  file: string,
  workflow: string,
  inputText: string | undefined,
  options: CreateOptions,
): Promise<number> {
  const input = await readInput(inputText, options.inputFile);
  const definitions = await loadDefinitions(file);
  checkWorkflow(definitions, workflow, file);
  refuseMemoryStore(options.store);
  // Creates the store if it does not exist, like `run`.
  await using client = await createClient({ store: options.store, definitions, ...payloadOptions() });
  const isNew = (await client.findSchedule(name)) === undefined;
  const schedule = await client.schedule(name, workflow, input as undefined, timingOf(options));
  return isNew
    ? printChanged("create", "created", schedule, options)
    : printChanged("update", "updated", schedule, options);
}

function timingOf({ cron, every, timeZone, overlap, catchUp, jitter }: CreateOptions) {
  return {
    ...(cron !== undefined && { cron }),
    ...(every !== undefined && { every }),
    ...(timeZone !== undefined && { timeZone }),
    ...(overlap !== undefined && { overlap }),
    ...(catchUp !== undefined && { catchUp }),
    ...(jitter !== undefined && { jitter }),
  };
}

export async function pauseSchedule(name: string, options: GlobalOptions): Promise<number> {
  return withSchedules(options, async (client) => {
    const schedule = await requireSchedule(client, name);
    const isPaused = (await schedule.info()).paused;
    if (!isPaused) await schedule.pause();
    return printChanged("pause", "paused", schedule, options, isPaused ? "already paused" : undefined);
  });
}

export async function resumeSchedule(name: string, options: GlobalOptions): Promise<number> {
  return withSchedules(options, async (client) => {
    const schedule = await requireSchedule(client, name);
    const isPaused = (await schedule.info()).paused;
    if (isPaused) await schedule.resume();
    return printChanged("resume", "resumed", schedule, options, isPaused ? undefined : "it is not paused");
  });
}

async function printChanged(
  action: string,
  past: string,
  schedule: ScheduleHandle,
  options: GlobalOptions,
  unchanged?: string,
): Promise<number> {
  const info = await schedule.info();
  if (options.json) await printJson({ action, skipped: unchanged ?? null, schedule: scheduleJson(info) });
  else if (unchanged !== undefined) remarkSkipped(info.name, unchanged);
  else {
    const next = info.paused ? "" : paint("dim", `  next ${nextText(info, systemClock.now())}`);
    await print(`${paint("green", past)} ${paint("bold", plain(info.name))}${next}`);
  }
  return exitCodeOf(unchanged === undefined ? 0 : 1);
}

export async function triggerSchedule(name: string, options: GlobalOptions): Promise<number> {
  return withSchedules(options, async (client) => {
    const { id, status } = await (await requireSchedule(client, name)).trigger();
    if (options.json) await printJson({ action: "trigger", name, id, status });
    else await print(`${paint("green", "started")} ${plain(id)}`);
    return EXIT.ok;
  });
}

export interface BackfillOptions extends GlobalOptions {
  readonly from: string;
  readonly to: string;
}

export async function backfillSchedule(name: string, options: BackfillOptions): Promise<number> {
  const from = dateOf(options.from, "--from");
  const to = dateOf(options.to, "--to");
  return withSchedules(options, async (client) => {
    const { count } = await (await requireSchedule(client, name)).backfill(from, to);
    const skipped = count > 0 ? null : "no planned time in this period is without a run";
    if (options.json) await printJson({ action: "backfill", name, from: isoOf(from), to: isoOf(to), count, skipped });
    else if (skipped !== null) remarkSkipped(name, skipped);
    else await print(`${paint("green", "started")} ${pluralize(count, "run", "runs")} of ${plain(name)}`);
    return exitCodeOf(skipped === null ? 0 : 1);
  });
}

/** Requires a zone: a time without one is another moment on every machine. */
function dateOf(text: string, option: string): Date {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const date = new Date(text);
  if (Number.isNaN(date.getTime()) || !(isDay || /(?:Z|[+-]\d\d:?\d\d)$/.test(text)))
    throw new RepriseError(
      "USAGE",
      `${option}: ${JSON.stringify(text)} is not a time. Use a day such as 2026-11-16 (UTC), or a time with its zone such as 2026-11-16T09:00Z.`,
    );
  return date;
}

export async function removeSchedule(
  name: string,
  options: GlobalOptions & { readonly yes?: boolean },
): Promise<number> {
  return withSchedules(options, async (client) => {
    const schedule = await requireSchedule(client, name);
    if (!(await confirm(`Remove the schedule ${plain(name)}? Its runs stay.`, options.yes, ""))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    await schedule.remove();
    if (options.json) await printJson({ action: "remove", name });
    else await print(`${paint("green", "removed")} ${paint("bold", plain(name))}`);
    return EXIT.ok;
  });
}

async function requireSchedule(client: Client, name: string): Promise<ScheduleHandle> {
  if ((await client.findSchedule(name)) !== undefined) return client.getSchedule(name);
  throw new CommandError("SCHEDULE_NOT_FOUND", `There is no schedule ${name} in this store.`, "reprise schedule list");
}

function scheduleJson(info: ScheduleInfo): Record<string, unknown> {
  return {
    name: info.name,
    definition: info.definition,
    cron: info.cron ?? null,
    timeZone: info.timeZone ?? null,
    everyMs: info.everyMs ?? null,
    overlap: info.overlap,
    catchUp: info.catchUp,
    jitterMs: info.jitterMs,
    paused: info.paused,
    nextAt: isoOf(info.nextAt),
    lastAt: isoOf(info.lastAt),
    lastRun: info.lastRun ?? null,
    lastStatus: info.lastStatus ?? null,
    waiting: info.waiting.map((at) => isoOf(at)),
    createdAt: isoOf(info.createdAt),
  };
}
