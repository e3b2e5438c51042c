// Check run: what must be true of one run's row, queue and inbox, given its journal.

import { commandTypeOf, hasEnded, type Entry, type RunStatus } from "../../kernel/index.ts";
import { CheckpointCheck } from "./check-checkpoints.ts";
import { FlowCheck } from "./check-flow.ts";
import { checkFork, forkIn } from "./check-fork.ts";
import { JournalCheck, type Fault } from "./check-journal.ts";
import type { CheckStatements } from "./check-store.ts";

export interface CheckedRun {
  readonly run: number;
  readonly id: string;
  readonly kind: string;
  readonly status: RunStatus;
  readonly head: number;
  readonly chain: string;
  readonly arrivals: number;
  readonly read: number;
  readonly due: number;
  readonly token: string | null;
  readonly worker: number | null;
  /** Ended, with rows that wait to be swept. */
  readonly leftover: number;
}

interface Item {
  readonly item: string;
  readonly kind: string;
  readonly state: number;
  readonly token: string | null;
  readonly worker: number | null;
}

/** Entries in memory at a time. */
const PAGE = 256;
const LEASED = 2;
const ADMITTED = 6;
/** Of a turn: the run has not begun. */
const UNBEGUN = 3;

/** Everything wrong with one run. Between pages of a long journal it pauses. */
export async function checkRun(
  sql: CheckStatements,
  run: CheckedRun,
  breathe: () => Promise<void>,
): Promise<readonly Fault[]> {
  const checkpoints = run.kind === "graph" ? new CheckpointCheck(sql, run.run) : undefined;
  const flow = run.kind === "flow" ? new FlowCheck(sql, run.run) : undefined;
  const first = await walkJournal(sql, run, breathe, new JournalCheck(), checkpoints ?? flow);
  const walk =
    first.retries.length === 0 ? first : await walkJournal(sql, run, breathe, new JournalCheck(first.retries));
  walk.finish(run);
  const items = sql.items.all(run.run) as unknown as Item[];
  const faults = [...walk.faults, ...(checkpoints?.finish() ?? flow?.finish(run.status, items) ?? [])];
  if (run.kind === "graph") faults.push(...checkFork(sql, run.run, first.started));
  else checkNoCheckpoints(sql, run, faults);
  const fault = (invariant: string, message: string): void => void faults.push({ invariant, seq: undefined, message });
  if ((run.status === "expected") !== (run.head === 0))
    fault("I7 journal gap-free", `The run is ${run.status} and has ${run.head} entries.`);
  if (run.status === "expected" && (run.due !== 0 || items.length > 0))
    fault("I16 no stuck run", "The run is only expected, and yet a turn is due or an item is queued.");
  checkTurn(sql, run, fault);
  checkStreams(sql, run, fault);
  // FK2. A fork has its first step before it begins.
  checkBeginning(run, items, fault, forkIn(first.started) === undefined ? 1 : 2);
  for (const item of items) checkItem(sql, item, walk, fault);
  if (hasEnded(run.status)) checkEnded(sql, run, items, fault);
  else if (isStuck(sql, run, items, walk))
    fault("I16 no stuck run", `The run is ${run.status}, and nothing will ever wake it.`);
  return faults;
}

function checkNoCheckpoints(sql: CheckStatements, { run, kind }: CheckedRun, faults: Fault[]): void {
  const { count } = sql.checkpoints.get(run) as { count: number };
  if (count > 0)
    faults.push({
      invariant: "I12 committed rows never change",
      seq: undefined,
      message: `A run of a ${kind} has ${count} checkpoints.`,
    });
}

async function walkJournal(
  sql: CheckStatements,
  run: CheckedRun,
  breathe: () => Promise<void>,
  walk: JournalCheck,
  beside?: { see(entry: Entry, chain: string): void },
): Promise<JournalCheck> {
  for (let after = 0; ;) {
    const page = sql.entries.all(run.run, after, PAGE) as unknown as Entry[];
    for (const entry of page) {
      walk.see(entry);
      beside?.see(entry, walk.chain);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return walk;
    after = last.seq;
    await breathe();
  }
}

type Report = (invariant: string, message: string) => void;

function checkTurn(sql: CheckStatements, run: CheckedRun, fault: Report): void {
  if ((run.token === null) !== (run.worker === null))
    fault("I14 leases have holders", "The turn has a token without a worker, or a worker without a token.");
  if (run.worker !== null && sql.worker.get(run.worker) === undefined)
    fault("I14 leases have holders", `The turn is held by worker ${run.worker}, which does not exist.`);
  if (run.token !== null && run.status !== "running" && run.status !== "paused")
    fault("I14 leases have holders", `The turn is held although the run is ${run.status}.`);
  if (run.read > run.arrivals)
    fault("I23 inbound messages", `The run has read ${run.read} messages of ${run.arrivals}.`);
  const { count, lowest } = sql.inbox.get(run.run, run.read) as { count: number; lowest: number | null };
  if (!hasEnded(run.status) && (count !== run.arrivals - run.read || (lowest !== null && lowest !== run.read + 1)))
    fault("I23 inbound messages", `${run.arrivals - run.read} messages should wait after ${run.read}; ${count} do.`);
}

function checkStreams(sql: CheckStatements, { run }: CheckedRun, fault: Report): void {
  for (const row of sql.chunks.all(run)) {
    const { stream, count, first, last } = row as { stream: string; count: number; first: number; last: number };
    if (first !== 1 || last !== count)
      fault("I7 streams gap-free", `Stream ${stream} has ${count} chunks at offsets ${first} to ${last}.`);
  }
}

/** A run that has not begun has an item that will let it; one that has, has none but its place. */
function checkBeginning(run: CheckedRun, items: readonly Item[], fault: Report, head: number): void {
  const start = items.find(({ kind }) => kind === "start");
  const waits = start !== undefined && start.state !== ADMITTED;
  if (run.due === UNBEGUN && (!waits || run.head !== head || run.status !== "queued"))
    fault("I35 beginnings", `The run waits to begin (${run.status}, ${run.head} entries), and nothing will let it.`);
  if (waits && run.head !== head) fault("I35 beginnings", "The run has begun, yet it waits to be let in.");
  if (items.some(({ kind, state }) => state === ADMITTED && kind !== "start"))
    fault("I35 beginnings", "Something that is no run has a run's place.");
}

function checkItem(
  sql: CheckStatements,
  { item, state, token, worker }: Item,
  walk: JournalCheck,
  fault: Report,
): void {
  if ((state === LEASED) !== (token !== null) || (token === null) !== (worker === null))
    fault("I14 leases have holders", `${item} is in state ${state} with token ${token} and worker ${worker}.`);
  if (worker !== null && sql.worker.get(worker) === undefined)
    fault("I14 leases have holders", `${item} is held by worker ${worker}, which does not exist.`);
  if (walk.settled.has(item)) fault("I1 no duplicate enqueue", `${item} is queued although its result is recorded.`);
}

function checkEnded(sql: CheckStatements, run: CheckedRun, items: readonly Item[], fault: Report): void {
  if (run.due !== 0 || run.token !== null) fault("I17 nothing alive after the end", "A turn is due or held.");
  if (run.leftover === 1) return;
  if (items.length > 0) fault("I17 nothing alive after the end", `${items.length} items are queued.`);
  const { count } = sql.inbox.get(run.run, 0) as { count: number };
  if (count > 0) fault("I17 nothing alive after the end", `${count} messages wait.`);
}

/** Stopped runs wait for a person; the others need a turn, an item, or an answer that is still to come. */
function isStuck(sql: CheckStatements, run: CheckedRun, items: readonly Item[], walk: JournalCheck): boolean {
  if (run.status !== "queued" && run.status !== "running" && run.status !== "waiting") return false;
  if (run.due !== 0 || run.token !== null) return false;
  // A message that nobody is woken for.
  if (run.arrivals > run.read) return true;
  if (items.length > 0 || walk.takesUpdates) return false;
  if (run.kind === "flow") return sql.liveChild.get(run.run) === undefined;
  for (const command of walk.open) {
    const type = commandTypeOf(command);
    if (type === "Promise" || type === "ChildWorkflow") return false;
  }
  return true;
}
