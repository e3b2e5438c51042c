// Replay in the mode `resume`: replays the journal up to a checkpoint, then executes a copy of the run. live-copy.ts does the same
// for any place of a journal.
//
// resume-replay.R1. The run's own store is only read. The copy is in a store in memory that is dropped afterwards. It has
//   the same id, so the same keys and the same random seed; it delivers no messages and has no deadline.
// resume-replay.R2. The journal up to the checkpoint is replayed first: if the code does not match it, nothing is executed.
// resume-replay.R3. Messages that the run received after the checkpoint are sent to the copy. When the copy waits for
//   anything else that only time or a caller can bring, the replay ends.

import { InvariantError, RepriseError, systemRandom, systemTimers, type Duration } from "../base/index.ts";
import {
  chainAfter,
  decodeData,
  hasEnded,
  isDeliveredMessage,
  rebuildCheckpoints,
  type Arrival,
  type Entry,
  type NewItem,
  type NewRun,
  type RunRecord,
  type Store,
  type TurnWrite,
} from "../kernel/index.ts";
import type { Worker } from "../worker/index.ts";
import { unlessAborted } from "./abort.ts";
import type { ReplayEnd } from "../workflow/index.ts";

/** An engine on a store in memory; its worker has not started. */
export interface Scratch {
  readonly store: Store;
  readonly worker: Worker;
  begin(): Promise<void>;
  get(definition: string, id: string): ScratchRun;
  close(options?: { grace?: Duration }): Promise<void>;
}

interface ScratchRun {
  result(): Promise<unknown>;
  pause(): Promise<void>;
  resume(): Promise<void>;
}

export interface Resumed {
  readonly end: ReplayEnd;
  /** The number of operations and tasks that were executed. */
  readonly live: number;
}

/** Messages of which a run can receive several with one target. */
const REPEATABLE: ReadonlySet<string> = new Set(["SignalReceived", "UpdateRequested"]);

/** After this time without a change, the copy is considered to wait for something that will not come. */
const QUIET_MS = 250;
const LEASE_MS = 60_000;

/** What a copy starts with. */
export interface CopiedPast {
  /** The journal up to the checkpoint. */
  readonly recorded: readonly Entry[];
  /** What the run waited for there. */
  readonly items?: readonly NewItem[];
  /** resume-replay.R3. The messages that it received later. */
  readonly arrivals: readonly Arrival[];
  /** How long the copy waits for a timer or the next attempt of a task; default: not at all. */
  readonly timerWaitMs?: number;
}

/** The messages among the entries of a graph after its checkpoint. */
export function graphMessages(after: readonly Entry[]): readonly Arrival[] {
  return after.flatMap(({ type, data }) => {
    if (!isDeliveredMessage(type) || type === "CancelRequested") return [];
    return [{ type, target: type === "DeadlineExceeded" ? "" : decodeData(type, data).promiseId, data }];
  });
}

/** The run that is copied. */
export type CopiedRun = Pick<RunRecord, "id" | "definition" | "kind" | "version" | "priority" | "tags">;

export async function resumeLive(
  scratch: Scratch,
  record: CopiedRun,
  past: CopiedPast,
  signal?: AbortSignal,
): Promise<Resumed> {
  try {
    const { store } = scratch;
    const copy = await copyRun(store, record, past);
    for (const arrival of past.arrivals)
      await store.write([{ write: "message", to: record.id, arrival, once: !REPEATABLE.has(arrival.type) }]);
    await scratch.begin();
    const run = scratch.get(record.definition, record.id);
    // A released run becomes due when a message arrives or when it is resumed.
    await run.pause();
    await run.resume();
    const ended = run.result().then(
      (output): ReplayEnd => ({ status: "completed", output }),
      (error: unknown): ReplayEnd => failureEnd(error),
    );
    const quiet = untilQuiet(scratch, past.timerWaitMs).then((): ReplayEnd => ({ status: "waiting" }));
    // An aborted replay executes nothing more: the copy is closed below.
    const end = await unlessAborted(signal, Promise.race([ended, quiet]));
    return { end, live: await countCalls(store, copy, past.recorded.length) };
  } finally {
    await scratch.close(signal?.aborted === true ? { grace: 0 } : {});
  }
}

/** resume-replay.R1. Writes the copy as a worker would have written it. */
async function copyRun(store: Store, record: CopiedRun, { recorded, items = [] }: CopiedPast): Promise<RunRecord> {
  const [first, ...entries] = recorded;
  if (first === undefined)
    throw new RepriseError("STORE_CORRUPT", `Run ${record.id} has no entries; run reprise doctor.`);
  const { id, definition, kind, version, priority, tags } = record;
  const run: NewRun = { id, definition, kind, version, priority, tags, started: first.data, runtime: "replay" };
  const token = systemRandom.token();
  const claim = { worker: await store.registerWorker("replay", LEASE_MS), token };
  const [started] = await store.write([{ write: "start", run, claim }]);
  if (started.status !== "started") throw new InvariantError("A new store already has the run.");
  const turn: TurnWrite = {
    write: "turn",
    run: started.record.run,
    token,
    head: 1,
    previousChain: started.record.chain,
    entries,
    chain: entries.reduce(
      (chain, { type, command, data }) => chainAfter(chain, type, command, data),
      started.record.chain,
    ),
    read: 0,
    finished: [],
    items,
    dropped: [],
    children: [],
    messages: [],
    chunks: [],
    outgoing: [],
    checkpoints: rebuildCheckpoints(recorded),
    then: "release",
  };
  const [written] = await store.write([turn]);
  if (written.status !== "committed")
    throw new InvariantError(`The copy of run ${id} was not written: ${written.status}.`);
  return started.record;
}

function failureEnd(error: unknown): ReplayEnd {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (code === "CANCELLED") return { status: "cancelled" };
  return { status: "failed", error: code === "RUN_FAILED" && cause !== undefined ? cause : error };
}

/** resume-replay.R3 */
async function untilQuiet({ store, worker }: Scratch, timerWaitMs = 0): Promise<void> {
  for (let before = ""; ;) {
    await worker.settled();
    await worker.idle();
    await new Promise<void>((resolve) => void systemTimers.set(QUIET_MS, resolve));
    const live = (await store.listRuns({ limit: 1_000 })).filter(({ status }) => !hasEnded(status));
    const now = live.map(({ run, head, arrivals, status }) => `${run} ${head} ${arrivals} ${status}`).join("\n");
    const allWait = live.every(({ status }) => status === "waiting");
    if (allWait && now === before && worker.isSettled && worker.runningCount === 0)
      if (timerWaitMs === 0 || !(await isDueWithin(store, live, timerWaitMs))) return;
    before = now;
  }
}

async function isDueWithin(store: Store, live: readonly RunRecord[], ms: number): Promise<boolean> {
  for (const { run } of live) {
    const { items = [] } = (await store.readRunWork(run)) ?? {};
    if (items.some(({ state, availableAt }) => state === "delayed" && availableAt <= store.now() + ms)) return true;
  }
  return false;
}

const CALLS: ReadonlySet<string> = new Set(["OperationCompleted", "OperationFailed", "TaskCompleted", "TaskFailed"]);

async function countCalls(store: Store, copy: RunRecord, recorded: number): Promise<number> {
  let count = 0;
  for (const { run } of await store.listRuns({ limit: 1_000 }))
    for (const { type, seq } of await store.readJournal(run, 0))
      if (CALLS.has(type) && (run !== copy.run || seq > recorded)) count += 1;
  return count;
}
