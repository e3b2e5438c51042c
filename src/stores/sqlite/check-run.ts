// Check run: one run's row, queue items, inbox and streams are consistent with its journal.

import { shellWord } from "../../base/index.ts";
import { commandTypeOf, hasEnded, QueueItemState, TurnDue, type Entry, type RunStatus } from "../../kernel/index.ts";
import { CheckpointCheck } from "./check-checkpoints.ts";
import { ContentCheck } from "./check-contents.ts";
import { FlowCheck } from "./check-flow.ts";
import { checkCommandFork, checkFork, forkIn } from "./check-fork.ts";
import { JournalCheck, type Fault } from "./check-journal.ts";
import { checkPromises } from "./check-promises.ts";
import { readJournal } from "../rules/read.ts";
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
  /** 1 when an earlier version created the run: its promises may have no rows. */
  readonly hasUnlisted: number;
  /** 1 when the run has ended and the sweep still deletes its rows. */
  readonly leftover: number;
}

interface Item {
  readonly item: string;
  readonly kind: string;
  readonly state: number;
  readonly token: string | null;
  readonly worker: number | null;
}

/** How many entries are in memory at a time. */
const PAGE = 256;

/** All problems of one run. Calls `pause` between the pages of a long journal. */
export async function checkRun(
  sql: CheckStatements,
  run: CheckedRun,
  pause: () => Promise<void>,
  isMirror = false,
): Promise<readonly Fault[]> {
  const checkpoints = run.kind === "graph" ? new CheckpointCheck(sql, run.run) : undefined;
  const flow = run.kind === "flow" ? new FlowCheck(sql, run.run) : undefined;
  const contents = new ContentCheck();
  const first = await checkJournal(sql, run, pause, new JournalCheck(), checkpoints ?? flow, contents);
  contents.seeRows(sql, run.run);
  const journal =
    first.retries.length === 0 ? first : await checkJournal(sql, run, pause, new JournalCheck(first.retries));
  journal.finish(run);
  // sqlite-session.X6. Nothing in a mirror moves: there are no leases, and no run can be stuck. Its flows lack what a bundle does not hold.
  if (isMirror) return [...contents.faults, ...journal.faults, ...(checkpoints?.finish() ?? [])];
  const items = sql.items.all(run.run) as unknown as Item[];
  const faults = [
    ...contents.faults,
    ...journal.faults,
    ...(checkpoints?.finish() ?? flow?.finish(run.status, items) ?? []),
  ];
  faults.push(...(run.kind === "graph" ? checkFork : checkCommandFork)(sql, run.run, first.started));
  if (run.kind !== "graph") checkNoCheckpoints(sql, run, faults);
  const fault = (invariant: string, message: string): void => void faults.push({ invariant, seq: undefined, message });
  if ((run.status === "expected") !== (run.head === 0))
    fault("I7 journal gap-free", `The run is ${run.status} and has ${run.head} entries.`);
  if (run.status === "expected" && (run.due !== TurnDue.no || items.length > 0))
    fault("I16 no stuck run", "The run is expected (not started), but its turn is due or it has queue items.");
  checkTurn(sql, run, fault);
  checkStreams(sql, run, fault);
  // fork.F2. A fork has its first step before it starts.
  checkStart(run, items, fault, forkIn(first.started) === undefined ? 1 : 2);
  for (const item of items) checkItem(sql, item, journal, fault);
  for (const [invariant, message] of checkPromises(sql, run, journal)) fault(invariant, message);
  if (hasEnded(run.status)) checkEnded(sql, run, items, fault);
  else if (isStuck(sql, run, items, journal))
    fault(
      "I16 no stuck run",
      `The run is ${run.status}, but no turn, queue item, open promise or child will wake it. Run \`reprise pause ${shellWord(run.id)}\`, then \`reprise resume ${shellWord(run.id)}\`.`,
    );
  return faults;
}

function checkNoCheckpoints(sql: CheckStatements, { run, kind }: CheckedRun, faults: Fault[]): void {
  const { count } = sql.checkpoints.get(run) as { count: number };
  if (count > 0)
    faults.push({
      invariant: "I12 committed rows never change",
      seq: undefined,
      message: `The run is a ${kind} and has ${count} checkpoints; only a graph has checkpoints.`,
    });
}

async function checkJournal(
  sql: CheckStatements,
  run: CheckedRun,
  pause: () => Promise<void>,
  journal: JournalCheck,
  alongside?: { see(entry: Entry, chain: string): void },
  contents?: ContentCheck,
): Promise<JournalCheck> {
  for (let after = 0; ;) {
    const page = readJournal(sql.rows, run.run, after, PAGE);
    for (const entry of page) {
      contents?.see(entry.data, entry.seq);
      journal.see(entry);
      alongside?.see(entry, journal.chain);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return journal;
    after = last.seq;
    await pause();
  }
}

type Report = (invariant: string, message: string) => void;

function checkTurn(sql: CheckStatements, run: CheckedRun, fault: Report): void {
  if ((run.token === null) !== (run.worker === null))
    fault("I14 leases have holders", "The turn must have both a token and a worker, or neither.");
  if (run.worker !== null && sql.worker.get(run.worker) === undefined)
    fault("I14 leases have holders", `The turn is held by worker ${run.worker}, which does not exist.`);
  if (run.token !== null && run.status !== "running" && run.status !== "paused")
    fault("I14 leases have holders", `A worker holds the turn although the run is ${run.status}.`);
  if (run.read > run.arrivals)
    fault("I23 inbound messages", `The run has read ${run.read} messages but received ${run.arrivals}.`);
  const { count, lowest } = sql.inbox.get(run.run, run.read) as { count: number; lowest: number | null };
  if (!hasEnded(run.status) && (count !== run.arrivals - run.read || (lowest !== null && lowest !== run.read + 1)))
    fault(
      "I23 inbound messages",
      `The inbox must hold ${run.arrivals - run.read} messages after message ${run.read}; it holds ${count}.`,
    );
}

function checkStreams(sql: CheckStatements, { run }: CheckedRun, fault: Report): void {
  for (const row of sql.chunks.all(run)) {
    const { stream, count, first, last } = row as { stream: string; count: number; first: number; last: number };
    if (first !== 1 || last !== count)
      fault("I7 streams gap-free", `Stream ${stream} has ${count} chunks, but its offsets are ${first} to ${last}.`);
  }
}

/** A run that has not started has an item `Start` that will start it. A started run has none, or an admitted one. */
function checkStart(run: CheckedRun, items: readonly Item[], fault: Report, head: number): void {
  const start = items.find(({ kind }) => kind === "start");
  const isPending = start !== undefined && start.state !== QueueItemState.admitted;
  if (run.due === TurnDue.notStarted && (!isPending || run.head !== head || run.status !== "queued"))
    fault(
      "I35 starts",
      `The run has not started (${run.status}, ${run.head} entries), but no queue item will start it.`,
    );
  if (isPending && run.head !== head)
    fault("I35 starts", `The run has started (${run.head} entries), but its item Start is not admitted.`);
  if (items.some(({ kind, state }) => state === QueueItemState.admitted && kind !== "start"))
    fault("I35 starts", "An item other than Start is in the state admitted.");
}

function checkItem(
  sql: CheckStatements,
  { item, state, token, worker }: Item,
  journal: JournalCheck,
  fault: Report,
): void {
  if ((state === QueueItemState.leased) !== (token !== null) || (token === null) !== (worker === null))
    fault(
      "I14 leases have holders",
      `${item} is in state ${state} (leased is ${QueueItemState.leased}) with token ${token} and worker ${worker}.`,
    );
  if (worker !== null && sql.worker.get(worker) === undefined)
    fault("I14 leases have holders", `${item} is held by worker ${worker}, which does not exist.`);
  if (journal.settled.has(item)) fault("I1 no duplicate enqueue", `${item} is queued although its result is recorded.`);
}

function checkEnded(sql: CheckStatements, run: CheckedRun, items: readonly Item[], fault: Report): void {
  if (run.due !== TurnDue.no || run.token !== null)
    fault("I17 no rows after the end", "The run has ended, but its turn is due or held.");
  if (run.leftover === 1) return;
  if (items.length > 0)
    fault("I17 no rows after the end", `The run has ended, but ${items.length} of its items are queued.`);
  const { count } = sql.inbox.get(run.run, 0) as { count: number };
  if (count > 0) fault("I17 no rows after the end", `The run has ended, but its inbox holds ${count} messages.`);
}

/** A stopped run waits for a resume. Any other run needs a due or held turn, an item, an open promise or child, or a budget. */
function isStuck(sql: CheckStatements, run: CheckedRun, items: readonly Item[], journal: JournalCheck): boolean {
  if (run.status !== "queued" && run.status !== "running" && run.status !== "waiting") return false;
  if (run.due !== TurnDue.no || run.token !== null) return false;
  // An unread message must make the turn due.
  if (run.arrivals > run.read) return true;
  if (items.length > 0 || journal.takesUpdates) return false;
  if (sql.requestsOf.get(run.run) !== undefined) return false;
  if (run.kind === "flow") return sql.liveChild.get(run.run) === undefined;
  for (const command of journal.open) {
    const type = commandTypeOf(command);
    if (type === "Promise" || type === "ChildWorkflow") return false;
  }
  return true;
}
