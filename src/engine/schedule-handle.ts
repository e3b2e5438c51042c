// Schedules: created, read, paused, triggered, backfilled and removed by callers. Workers start their runs.
//
// schedule-handle.S1. A change reads the schedule, decides, and writes under the token it has read; when another process changed
//   the schedule meanwhile, it starts over.

import { checkName, checkRunId, RepriseError, type EpochMs, type Random } from "../base/index.ts";
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
import { waitFor, type WaitOptions } from "./abort.ts";
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

/** The new state of a schedule and the runs to start; `undefined`: no change. */
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
  const requested = {
    ...checked,
    name: checkedName,
    definition: body.name,
    version: body.version,
    input: entryData.encodeNamed(`The input of ${body.kind} ${body.name}`, parsed),
  };
  await change(host, checkedName, (present) => {
    const state = present === undefined ? newState(requested, now) : updated(present, requested, now);
    return state && { state };
  });
  return new StoredSchedule(host, checkedName);
}

type RequestedSchedule = CheckedSchedule & Pick<ScheduleState, "name" | "definition" | "version" | "input">;

function newState(requested: RequestedSchedule, now: EpochMs): ScheduleState {
  return {
    ...requested,
    paused: false,
    ...timesFrom(requested, now),
    lastAt: undefined,
    lastRun: undefined,
    queued: [],
  };
}

/** Undefined if nothing changes: a deployment of the same code writes nothing. */
function updated(present: ScheduleRecord, requested: RequestedSchedule, now: EpochMs): ScheduleState | undefined {
  const keepsTime = isSameTiming(present.timing, requested.timing) && present.jitterMs === requested.jitterMs;
  const { definition, version, input, overlap, catchUp } = requested;
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
  const { timing, jitterMs } = requested;
  const next = timesFrom(requested, now);
  return { ...state, timing, jitterMs, ...next, dueAt: present.paused ? undefined : next.dueAt };
}

/** The anchor of an interval, the time it was first created, is not compared. */
function isSameTiming(present: Timing, requested: Timing): boolean {
  if ("cron" in present)
    return "cron" in requested && present.cron === requested.cron && present.timeZone === requested.timeZone;
  return "everyMs" in requested && present.everyMs === requested.everyMs;
}

function timesFrom(
  { name, timing, jitterMs }: Pick<ScheduleState, "name" | "timing" | "jitterMs">,
  now: EpochMs,
): Pick<ScheduleState, "nextAt" | "dueAt"> {
  const nextAt = timesOf(timing).after(now);
  return { nextAt, dueAt: dueTimeOf(name, nextAt, jitterMs) };
}

/** schedule-handle.S1 */
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

export async function* listSchedules(host: SchedulesHost): AsyncGenerator<ScheduleInfo, void, undefined> {
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

  info(options?: WaitOptions): Promise<ScheduleInfo> {
    return waitFor(options, "info", async () => {
      this.#host.checkOpen();
      return scheduleInfoOf(this.#present(await this.#host.store.findSchedule(this.name)));
    });
  }

  pause(options?: WaitOptions): Promise<void> {
    return waitFor(options, "pause", async () => {
      await this.#change((present) =>
        present.paused ? undefined : { state: { ...scheduleStateOf(present), paused: true, dueAt: undefined } },
      );
    });
  }

  resume(options?: WaitOptions): Promise<void> {
    const now = this.#host.store.now();
    return waitFor(options, "resume", async () => {
      await this.#change((present) =>
        present.paused
          ? { state: { ...scheduleStateOf(present), paused: false, ...timesFrom(present, now) } }
          : undefined,
      );
    });
  }

  trigger(options: WaitOptions & { id?: string } = {}): Promise<RunInfo> {
    const { id = this.#host.random.id(), ...rest } = options;
    return waitFor(rest, "trigger", () => this.#trigger(checkName(id, "trigger: id")));
  }

  async #trigger(name: string): Promise<RunInfo> {
    const id = checkRunId(`${this.name}/triggered-${name}`);
    const outcome = await this.#change((present) => ({
      state: scheduleStateOf(present),
      starts: [scheduledRun(this.#host, present, id)],
    }));
    // A run with this id was started before: the store keeps it.
    return infoOf(outcome!.started[0] ?? (await this.#host.store.findRun(id))!);
  }

  backfill(from: Date, to: Date, options?: WaitOptions): Promise<{ readonly count: number }> {
    return waitFor(options, "backfill", () => this.#backfill(from, to));
  }

  async #backfill(from: Date, to: Date): Promise<{ readonly count: number }> {
    const { store } = this.#host;
    this.#host.checkOpen();
    checkRange(from, to, store.now());
    const present = this.#present(await store.findSchedule(this.name));
    const times = timesOf(present.timing).within(from.getTime(), to.getTime() - 1, MAX_CATCH_UP + 1);
    if (times.length > MAX_CATCH_UP)
      throw new RepriseError(
        "BAD_OPTIONS",
        `backfill: more than ${MAX_CATCH_UP} planned times lie between ${from.toISOString()} and ${to.toISOString()}. Use a shorter range.`,
      );
    let count = 0;
    const outcome = await this.#change(async (record) => {
      const free = await this.#withoutRun(times);
      // With overlap `queue` they wait for each other, so that no two run at the same time.
      if (record.overlap === "queue") {
        const added = free.filter((at) => !record.queued.includes(at));
        checkQueued(record, added.length);
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

  remove(options?: WaitOptions): Promise<void> {
    return waitFor(options, "remove", async () => {
      this.#host.checkOpen();
      await this.#host.worker.submit({ write: "remove-schedule", name: this.name });
    });
  }

  #change(decide: (present: ScheduleRecord) => Awaitable<Change>): Promise<Committed | undefined> {
    return change(this.#host, this.name, (present) => decide(this.#present(present)));
  }

  #present(record: ScheduleRecord | undefined): ScheduleRecord {
    if (record !== undefined) return record;
    throw new RepriseError(
      "SCHEDULE_NOT_FOUND",
      `There is no schedule ${this.name}. Create it with engine.schedule(name, what, input, options).`,
    );
  }
}

function checkQueued({ name, queued }: ScheduleRecord, added: number): void {
  if (queued.length + added <= MAX_CATCH_UP) return;
  throw new RepriseError(
    "BAD_OPTIONS",
    `backfill: ${queued.length} planned times of ${name} are queued and ${added} more exceed the maximum of ${MAX_CATCH_UP}. Wait until some have run, or use a shorter range.`,
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
      `backfill: expected times that have passed, but \`to\` is ${(to as Date).toISOString()}. Workers start future times automatically.`,
    );
}
