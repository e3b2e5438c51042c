// Schedules as callers see them: made, looked at, paused, triggered, backfilled, removed.
//
// H1. Every change is read, decided and written under the token that was read; when somebody was faster, it is done anew.

import { RepriseError, type EpochMs, type Random } from "../base/index.ts";
import {
  dueTimeOf,
  MAX_CATCH_UP,
  parse,
  plannedRunId,
  scheduleStateOf,
  type Awaitable,
  type NewRun,
  type PutScheduleOutcome,
  type ScheduleRecord,
  type ScheduleState,
  type Store,
  type Timing,
} from "../kernel/index.ts";
import { entryData, type WorkflowBody } from "../workflow/index.ts";
import { plannedRun, scheduledRun, timesOf, type NewRunHost } from "../process/index.ts";
import type { WorkerPort } from "./worker-port.ts";
import type { RunInfo, ScheduleHandle, ScheduleInfo, ScheduleOptions } from "./api.ts";
import { checkSchedule, checkScheduleName, type CheckedSchedule } from "./check-schedule.ts";
import { infoOf } from "./run-info.ts";

export interface SchedulesHost extends NewRunHost {
  readonly store: Store;
  readonly random: Random;
  readonly worker: WorkerPort;
  checkOpen(): void;
}

/** What a change makes of a schedule; `undefined`: nothing. */
type Change = { readonly state: ScheduleState; readonly starts?: readonly NewRun[] } | undefined;
type Committed = PutScheduleOutcome & { readonly status: "committed" };

const PAGE = 100;

export async function putSchedule(
  host: SchedulesHost,
  name: unknown,
  body: WorkflowBody,
  input: unknown,
  options: ScheduleOptions,
): Promise<ScheduleHandle> {
  const checkedName = checkScheduleName(name);
  const now = host.store.now();
  const checked = checkSchedule(options, now);
  const parsed = await parse(body.schema, input, `${body.kind} ${body.name}`);
  const asked = {
    ...checked,
    name: checkedName,
    definition: body.name,
    version: body.version,
    input: entryData.encodeNamed(`The input of ${body.kind} ${body.name}`, parsed),
  };
  await change(host, checkedName, (present) => {
    const state = present === undefined ? newState(asked, now) : updated(present, asked, now);
    return state && { state };
  });
  return new StoredSchedule(host, checkedName);
}

type Asked = CheckedSchedule & Pick<ScheduleState, "name" | "definition" | "version" | "input">;

function newState(asked: Asked, now: EpochMs): ScheduleState {
  return {
    ...asked,
    paused: false,
    ...timesFrom(asked, now),
    lastAt: undefined,
    lastRun: undefined,
    queued: [],
  };
}

/** Undefined when nothing would change: deploying the same code again writes nothing. */
function updated(present: ScheduleRecord, asked: Asked, now: EpochMs): ScheduleState | undefined {
  const keepsTime = isSameTiming(present.timing, asked.timing) && present.jitterMs === asked.jitterMs;
  const { definition, version, input, overlap, catchUp } = asked;
  if (
    keepsTime &&
    present.definition === definition &&
    present.version === version &&
    present.input === input &&
    present.overlap === overlap &&
    present.catchUp === catchUp
  )
    return undefined;
  const state = { ...scheduleStateOf(present), definition, version, input, overlap, catchUp };
  if (keepsTime) return state;
  const { timing, jitterMs } = asked;
  const next = timesFrom(asked, now);
  return { ...state, timing, jitterMs, ...next, dueAt: present.paused ? undefined : next.dueAt };
}

/** The anchor is the moment at which the interval was first asked for. */
function isSameTiming(present: Timing, asked: Timing): boolean {
  if ("cron" in present) return "cron" in asked && present.cron === asked.cron && present.timeZone === asked.timeZone;
  return "everyMs" in asked && present.everyMs === asked.everyMs;
}

function timesFrom(
  { name, timing, jitterMs }: Pick<ScheduleState, "name" | "timing" | "jitterMs">,
  now: EpochMs,
): Pick<ScheduleState, "nextAt" | "dueAt"> {
  const nextAt = timesOf(timing).after(now);
  return { nextAt, dueAt: dueTimeOf(name, nextAt, jitterMs) };
}

/** H1 */
async function change(
  host: SchedulesHost,
  name: string,
  decide: (present: ScheduleRecord | undefined) => Awaitable<Change>,
): Promise<Committed | undefined> {
  for (;;) {
    host.checkOpen();
    const present = await host.store.findSchedule(name);
    const wanted = await decide(present);
    if (wanted === undefined) return undefined;
    const outcome = await host.worker.submit({
      write: "put-schedule",
      fence: present?.token,
      token: host.random.token(),
      schedule: wanted.state,
      starts: wanted.starts ?? [],
    });
    if (outcome.status === "changed") continue;
    host.worker.wake();
    return outcome;
  }
}

export async function findSchedule(host: SchedulesHost, name: unknown): Promise<ScheduleInfo | undefined> {
  host.checkOpen();
  const record = await host.store.findSchedule(checkScheduleName(name));
  return record && scheduleInfoOf(record);
}

export async function* listSchedules(host: SchedulesHost): AsyncIterable<ScheduleInfo> {
  host.checkOpen();
  for (let after = ""; ;) {
    const page = await host.store.listSchedules(after, PAGE);
    for (const record of page) yield scheduleInfoOf(record);
    if (page.length < PAGE) return;
    after = page.at(-1)!.name;
  }
}

function scheduleInfoOf(record: ScheduleRecord): ScheduleInfo {
  const { timing, paused, nextAt, lastAt, lastRun, lastStatus } = record;
  return {
    name: record.name,
    definition: record.definition,
    ...timingInfo(timing),
    overlap: record.overlap,
    catchUp: record.catchUp,
    jitterMs: record.jitterMs,
    paused,
    ...(nextAt !== undefined && !paused && { nextAt: new Date(nextAt) }),
    ...(lastAt !== undefined && { lastAt: new Date(lastAt) }),
    ...(lastRun !== undefined && { lastRun }),
    ...(lastStatus !== undefined && { lastStatus }),
    waiting: record.queued.map((at) => new Date(at)),
    createdAt: new Date(record.createdAt),
  };
}

function timingInfo(timing: Timing): Pick<ScheduleInfo, "cron" | "timeZone" | "everyMs"> {
  return "cron" in timing ? { cron: timing.cron, timeZone: timing.timeZone } : { everyMs: timing.everyMs };
}

export class StoredSchedule implements ScheduleHandle {
  readonly name: string;
  readonly #host: SchedulesHost;

  constructor(host: SchedulesHost, name: string) {
    this.#host = host;
    this.name = name;
  }

  async info(): Promise<ScheduleInfo> {
    this.#host.checkOpen();
    return scheduleInfoOf(this.#present(await this.#host.store.findSchedule(this.name)));
  }

  async pause(): Promise<void> {
    await this.#change((present) =>
      present.paused ? undefined : { state: { ...scheduleStateOf(present), paused: true, dueAt: undefined } },
    );
  }

  async resume(): Promise<void> {
    const now = this.#host.store.now();
    await this.#change((present) =>
      present.paused
        ? { state: { ...scheduleStateOf(present), paused: false, ...timesFrom(present, now) } }
        : undefined,
    );
  }

  async trigger(): Promise<RunInfo> {
    const id = `${this.name}/triggered-${this.#host.random.id()}`;
    const outcome = await this.#change((present) => ({
      state: scheduleStateOf(present),
      starts: [scheduledRun(this.#host, present, id)],
    }));
    return infoOf(outcome!.started[0]!);
  }

  async backfill(from: Date, to: Date): Promise<{ readonly count: number }> {
    const { store } = this.#host;
    this.#host.checkOpen();
    checkRange(from, to, store.now());
    const present = this.#present(await store.findSchedule(this.name));
    const times = timesOf(present.timing).within(from.getTime(), to.getTime() - 1, MAX_CATCH_UP + 1);
    if (times.length > MAX_CATCH_UP)
      throw new RepriseError(
        "BAD_OPTIONS",
        `backfill: more than ${MAX_CATCH_UP} planned times lie between ${from.toISOString()} and ${to.toISOString()}; take a shorter stretch at a time.`,
      );
    let count = 0;
    const outcome = await this.#change(async (record) => {
      const free = await this.#withoutRun(times);
      // Under `queue` they go through the line, so that none of them runs beside another.
      if (record.overlap === "queue") {
        const added = free.filter((at) => !record.queued.includes(at));
        checkLine(record, added.length);
        count = added.length;
        return {
          state: { ...scheduleStateOf(record), queued: [...record.queued, ...added].toSorted((a, b) => a - b) },
        };
      }
      return { state: scheduleStateOf(record), starts: free.map((at) => plannedRun(this.#host, record, at)) };
    });
    return { count: count + outcome!.started.length };
  }

  async #withoutRun(times: readonly EpochMs[]): Promise<readonly EpochMs[]> {
    const free: EpochMs[] = [];
    for (const at of times)
      if ((await this.#host.store.findRun(plannedRunId(this.name, at))) === undefined) free.push(at);
    return free;
  }

  async remove(): Promise<void> {
    this.#host.checkOpen();
    await this.#host.worker.submit({ write: "remove-schedule", name: this.name });
  }

  #change(decide: (present: ScheduleRecord) => Awaitable<Change>): Promise<Committed | undefined> {
    return change(this.#host, this.name, (present) => decide(this.#present(present)));
  }

  #present(record: ScheduleRecord | undefined): ScheduleRecord {
    if (record !== undefined) return record;
    throw new RepriseError(
      "SCHEDULE_NOT_FOUND",
      `There is no schedule ${this.name}; it was removed, or never made. Make it with engine.schedule.`,
    );
  }
}

function checkLine({ name, queued: line }: ScheduleRecord, added: number): void {
  if (line.length + added <= MAX_CATCH_UP) return;
  throw new RepriseError(
    "BAD_OPTIONS",
    `backfill: ${line.length} planned times of ${name} wait in line already; at most ${MAX_CATCH_UP} may, so ${added} more do not fit. Wait, or take a shorter stretch.`,
  );
}

function checkRange(from: unknown, to: unknown, now: EpochMs): void {
  for (const [what, date] of [
    ["from", from],
    ["to", to],
  ] as const)
    if (!(date instanceof Date) || Number.isNaN(date.getTime()))
      throw new RepriseError("BAD_OPTIONS", `backfill: expected a valid Date as ${what}, got ${String(date)}.`);
  if ((from as Date) > (to as Date))
    throw new RepriseError("BAD_OPTIONS", "backfill: expected `from` to be before `to`.");
  if ((to as Date).getTime() > now)
    throw new RepriseError(
      "BAD_OPTIONS",
      `backfill: expected times that have passed, but \`to\` is ${(to as Date).toISOString()}; what is to come is fired by itself.`,
    );
}
