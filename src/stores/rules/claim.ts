// Claim: leases due turns and ready items to a worker, highest priority first, then oldest.
//
// Every select reads one partial index from its front, so a claim costs the same with ten rows and with a million. With several
// names, one skip scan first finds the names that have work: an idle poll is one statement.

import { invariant, type EpochMs } from "../../base/index.ts";
import {
  hasEnded,
  ISOLATED_AFTER,
  QueueItemState,
  SUSPECTS_SEEN,
  TurnDue,
  type ClaimedItem,
  type ClaimedTurn,
  type ClaimItemsOutcome,
  type ClaimItemsWrite,
  type ClaimTurnsWrite,
  type DefinitionVersion,
  type InboxRow,
  type RunRecord,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { QueueLimiter, dueRateGates, hasDueRateGates, openRateGates, type QueuedItem } from "./queue-limiter.ts";
import { MESSAGE, messageOf } from "./inbox.ts";
import { kindOf } from "./items.ts";
import { hasSlotLease, returnSlots } from "./leased-slots.ts";
import { isStopped, recordOf, RUN_COLUMNS } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { suspectGroups, type SampledSuspects } from "./suspect-groups.ts";

const DUE_TURN = ["run", "priority"] as const;
const RUN = ["run"] as const;
const TAKEOVERS = ["takeovers"] as const;
const WORKER = ["worker"] as const;
const SUMMARY = ["id", "definition", "generation", "status", "budget"] as const;
const WITH_TURN = [...RUN_COLUMNS, "turn_due", "turn_token"] as const;
const DATA = ["data"] as const;
const READY = ["run", "item", "name", "priority", "available_at", "seq", "attempt", "failures", "executions"] as const;
const READY_IN_QUEUE = [...READY, "queue", "key"] as const;
const SUSPECT = ["takeovers", "queue", "key"] as const;

const PEEK = { peek: true } as const;
const SAMPLE = { limit: SUSPECTS_SEEN, peek: true } as const;
const ISOLATED = { also: { takeovers: { least: ISOLATED_AFTER } }, peek: true } as const;

/** Whether a claim would find a turn, suspects included. */
export function hasDueTurns(rows: Rows, wanted: readonly DefinitionVersion[]): boolean {
  return (
    withTurns(rows, "runs_due", wanted).some(
      ({ name, version }) => rows.first("runs_due", [name, version], RUN, PEEK) !== undefined,
    ) ||
    withTurns(rows, "runs_suspect", wanted).some(
      ({ name, version }) => rows.first("runs_suspect", [name, version], RUN, PEEK) !== undefined,
    )
  );
}

/** The wanted definitions that may have turns; a definition may have them only in a version that is not wanted. */
function withTurns(
  rows: Rows,
  index: "runs_due" | "runs_suspect",
  wanted: readonly DefinitionVersion[],
): readonly DefinitionVersion[] {
  const found = rows.among(
    index,
    wanted.map(({ name }) => name),
  );
  if (found.length === 0) return NOTHING;
  const names = new Set(found);
  return wanted.filter(({ name }) => names.has(name));
}

/** Runs without a transaction. Undefined when there may be an item to claim. */
export function idleClaimItems(rows: Rows, now: number, write: ClaimItemsWrite): ClaimItemsOutcome | undefined {
  if (write.tokens.length === 0 && write.returnedSlots === undefined) return NO_ITEMS;
  if (hasReadyItems(rows, write.names) || hasDueRateGates(rows, now)) return undefined;
  if (write.returnedSlots !== undefined) return undefined;
  // queue.Q6. Applying the claim tells the worker about its slots.
  if (write.ahead?.some(({ queue }) => hasSlotLease(rows, queue, write.worker)) === true) return undefined;
  const limiter = new QueueLimiter(rows, now, "task", "poll", write);
  if (limiter.findOpenQueues(write.names).length > 0 || mayClaimSuspects(rows, limiter, write)) return undefined;
  return { ...(write.ahead === undefined ? NO_ITEMS : NO_SLOTS), ...limiter.heldBack() };
}

function hasReadyItems(rows: Rows, names: readonly string[]): boolean {
  const found = rows.among("queue_ready", names);
  // SQLite has found the items themselves.
  if (!rows.isConcurrent) return found.length > 0;
  return found.some((name) => rows.first("queue_ready", [name], RUN, PEEK) !== undefined);
}

const NOTHING: readonly never[] = [];
const NO_DATA = { data: "" };
const NO_ITEMS: ClaimItemsOutcome = { items: [], nextAt: undefined, held: false };
/** queue.Q6. The worker has leased no slots. */
const NO_SLOTS: ClaimItemsOutcome = { ...NO_ITEMS, slots: NOTHING };

export function applyClaimTurns(tx: Tx, write: ClaimTurnsWrite): readonly ClaimedTurn[] {
  const { rows } = tx;
  const limit = write.tokens.length;
  if (limit === 0 || !isRegistered(rows, write.worker)) return [];
  const suspects = takeSuspectTurns(tx, write);
  if (suspects.length > 0) return suspects;
  return withTurns(rows, "runs_due", write.definitions)
    .flatMap(({ name, version }) => rows.select("runs_due", [name, version], DUE_TURN, { limit }))
    .sort((a, b) => b.priority - a.priority || a.run - b.run)
    .slice(0, limit)
    .map(({ run }, index) => takeTurn(tx, run, write, index, 0));
}

/** store.S5. One group, or none. */
function takeSuspectTurns(tx: Tx, write: ClaimTurnsWrite): readonly ClaimedTurn[] {
  const { rows } = tx;
  const seen = withTurns(rows, "runs_suspect", write.definitions).map((of): SampledSuspects<DefinitionVersion> => ({
    of,
    suspects: rows.select("runs_suspect", [of.name, of.version], TAKEOVERS, SAMPLE),
  }));
  const groups = suspectGroups(seen, write.tokens.length);
  if (groups.length === 0 || holdsIsolated(rows, write.worker)) return NOTHING;
  const claimed: ClaimedTurn[] = [];
  for (const { level, size, parts } of groups) {
    for (const { of, limit } of parts) {
      const most = Math.min(limit, size - claimed.length);
      if (most === 0) break;
      const group = { limit: most, also: { takeovers: level } };
      for (const { run } of rows.select("runs_suspect", [of.name, of.version], RUN, group))
        claimed.push(takeTurn(tx, run, write, claimed.length, level));
    }
    if (claimed.length > 0) break;
  }
  return claimed;
}

/** suspects.S3. Whether the worker holds an isolated turn or item. */
function holdsIsolated(rows: Rows, worker: number): boolean {
  return (
    rows.first("runs_held", [worker], RUN, ISOLATED) !== undefined ||
    rows.first("queue_leased", [worker], RUN, ISOLATED) !== undefined
  );
}

function takeTurn(
  { rows, now }: Tx,
  run: number,
  write: ClaimTurnsWrite,
  index: number,
  suspicion: number,
): ClaimedTurn {
  const token = write.tokens[index];
  invariant(token !== undefined, "A claim must not take more turns than it has tokens.");
  const isClaimed = rows.change("runs", [run], {
    status: "running",
    turn_due: TurnDue.no,
    turn_token: token,
    turn_worker: write.worker,
    turn_at: now,
  });
  const row = rows.get("runs", [run], RUN_COLUMNS);
  invariant(isClaimed && row !== undefined, "A due turn must have a row to claim.");
  // No invariant `arrivals >= read`: one damaged row must not stop the claims of all other runs. `doctor` reports it.
  const inbox = row.arrivals <= row.read ? [] : unreadOf(rows, run, row.read);
  return { record: recordOf(rows, row), token, inbox, suspicion };
}

/** The messages after a number: all that the inbox of a live run has, so that one lookup reads those of many runs. */
function unreadOf(rows: Rows, run: number, read: number): readonly InboxRow[] {
  return rows
    .select("inbox", [run], MESSAGE)
    .filter(({ arrival }) => arrival > read)
    .map(messageOf);
}

type ReadyItem = Part<"queue", (typeof READY)[number]> & {
  /** Only for an item of a named queue. */
  readonly queue?: string | null;
  readonly key?: string | null;
};
type RunOfItem = Part<"runs", (typeof SUMMARY)[number]>;
type WaitingRun = Part<"runs", (typeof WITH_TURN)[number]>;

export function applyClaimItems(tx: Tx, write: ClaimItemsWrite): ClaimItemsOutcome {
  const { rows, now } = tx;
  const { worker, tokens, refills } = write;
  for (const queue of write.returnedSlots ?? NOTHING) returnSlots(rows, queue, worker);
  if (tokens.length === 0) return NO_ITEMS;
  const isAhead = write.ahead !== undefined;
  if (!isRegistered(rows, worker)) return isAhead ? NO_SLOTS : NO_ITEMS;
  const limiter = new QueueLimiter(rows, now, "task", refills === undefined ? "claim" : "refill", write);
  const claim = new ItemClaim(tx, write);
  // Suspects may wait for the same slots, and go first. A guess reads what the answer may need.
  if (refills !== undefined && hasSuspectItems(rows, write.names) && !rows.isGuess)
    return { ...(isAhead ? NO_SLOTS : NO_ITEMS), held: true };
  if (refills === undefined) claimAnywhere(tx, limiter, write, claim);
  else refill(rows, limiter, write, refills, claim);
  const slots = limiter.leaseSlots();
  return { items: claim.claimed, ...limiter.heldBack(), ...((isAhead || slots.length > 0) && { slots }) };
}

function claimAnywhere(tx: Tx, limiter: QueueLimiter, write: ClaimItemsWrite, claim: ItemClaim): void {
  const { rows } = tx;
  openRateGates(tx, dueRateGates(tx));
  takeSuspectItems(rows, limiter, write, claim);
  if (claim.claimed.length > 0) return;
  const hasSuspects = write.ahead !== undefined && hasSuspectItems(rows, write.names);
  for (const { queue } of write.ahead ?? NOTHING)
    if (hasSuspects || hasOthers(limiter, queue, write.names)) limiter.closeAhead(queue);
  const names = rows.among("queue_ready", write.names);
  takeReadyItems(rows, limiter, names, () => limiter.findOpenQueues(write.names), write.tokens.length, claim);
}

/** queue.Q5. Other claims fill queues with items that this worker does not claim. */
function refill(
  rows: Rows,
  limiter: QueueLimiter,
  { tokens, names }: ClaimItemsWrite,
  refills: readonly string[],
  claim: ItemClaim,
): void {
  const forOthers = refills.filter((queue) => hasOthers(limiter, queue, names));
  for (const queue of forOthers) limiter.holdBack(queue);
  const queues = rows.isGuess
    ? refills.flatMap((queue) => names.map((name) => ({ queue, name })))
    : refills.filter((queue) => !forOthers.includes(queue)).flatMap((queue) => limiter.waitingIn(queue));
  const openQueues: OpenQueues = () => queues.filter(({ queue }) => limiter.isOpen(queue));
  takeReadyItems(rows, limiter, NOTHING, openQueues, tokens.length, claim);
}

/** The items of tasks that only other workers have must not starve. */
function hasOthers(limiter: QueueLimiter, queue: string, names: readonly string[]): boolean {
  return limiter.waitingIn(queue).some(({ name }) => !names.includes(name));
}

function hasSuspectItems(rows: Rows, names: readonly string[]): boolean {
  return rows
    .among("queue_suspect", names)
    .some((name) => !rows.isConcurrent || rows.first("queue_suspect", [name], RUN, PEEK) !== undefined);
}

type OpenQueues = () => readonly { readonly queue: string; readonly name: string }[];

/** Claims the first ready items, without a queue and in open queues, up to `limit`. */
function takeReadyItems(
  rows: Rows,
  limiter: QueueLimiter,
  names: readonly string[],
  openQueues: OpenQueues,
  limit: number,
  claim: ItemClaim,
): void {
  // When items leave the index without being claimed, others may follow them there.
  let removed: number;
  do {
    removed = claim.cleared + limiter.parked;
    for (const item of readyItems(rows, names, openQueues(), limiter, limit - claim.claimed.length)) {
      if (claim.claimed.length === limit) break;
      if (!claim.mayTake(item)) continue;
      // Before the item's run is looked up: most items of a limited queue wait.
      if (!isInQueue(item)) claim.take(item, 0, () => true);
      else if (limiter.isOpen(item.queue)) claim.take(item, 0, () => limiter.admit(item));
    }
  } while (claim.cleared + limiter.parked > removed && !rows.isGuess && claim.claimed.length < limit);
}

/** The items of one claim. */
class ItemClaim {
  readonly claimed: ClaimedItem[] = [];
  /** How many items were removed from the index instead of being claimed. */
  cleared = 0;
  readonly #rows: Rows;
  readonly #now: EpochMs;
  readonly #write: ClaimItemsWrite;
  /** Items of one run often come together: the run's row is read once. */
  readonly #runs = new Map<number, RunOfItem | undefined>();
  /** queue.Q6. How many more items of other queues than those of `ahead` may be claimed. */
  #leftForOthers: number;
  /** Those whose turns may be taken. */
  readonly #waiting = new Map<number, WaitingRun>();

  constructor({ rows, now }: Tx, write: ClaimItemsWrite) {
    this.#rows = rows;
    this.#now = now;
    this.#write = write;
    this.#leftForOthers = (write.ahead ?? NOTHING).reduce((left, { count }) => left - count, write.tokens.length);
  }

  /** Whether there is a token left for the item. */
  mayTake(item: ReadyItem): boolean {
    return this.#leftForOthers > 0 || this.#isAhead(item);
  }

  #isAhead({ queue }: ReadyItem): boolean {
    return this.#write.ahead?.some((one) => one.queue === queue) === true;
  }

  /** False when the item was not claimed. */
  take(item: ReadyItem, suspicion: number, mayAdmit: () => boolean): boolean {
    const rows = this.#rows;
    const key = [item.run, item.item];
    const run = this.#runOf(item.run);
    if (run === undefined || hasEnded(run.status)) {
      // The run ended with more items than one transaction deletes.
      rows.drop("queue", key);
      this.cleared += 1;
      return false;
    }
    const kind = kindOf(item.name);
    if (isStopped(run.status) && kind === "node") {
      // completion.C7. The node became ready while its run was stopped: after a takeover, or after a backoff.
      rows.set("queue", key, { state: QueueItemState.stopped, token: null, worker: null });
      this.cleared += 1;
      return false;
    }
    if (!mayAdmit()) return false;
    const token = this.#write.tokens[this.claimed.length];
    invariant(token !== undefined, "A claim must not take more items than it has tokens.");
    if (!this.#isAhead(item)) this.#leftForOthers -= 1;
    const execution = (item.executions ?? item.attempt) + 1;
    const isClaimed = rows.change("queue", key, {
      state: QueueItemState.leased,
      token,
      worker: this.#write.worker,
      executions: execution,
      leased_at: this.#now,
    });
    invariant(isClaimed, "A ready item must have a row to claim.");
    // Items of a spread share large entries; the worker reads each entry once.
    // No invariant that a task has its entry: one damaged journal must not stop the claims of all other runs. The worker cannot
    // decode the missing entry and fails the task; the replay of the run finds the damage.
    const entry = kind === "node" ? NO_DATA : (rows.get("journal", [item.run, item.seq], DATA) ?? NO_DATA);
    this.claimed.push({
      run: item.run,
      runId: run.id,
      definition: run.definition,
      generation: run.generation,
      item: item.item,
      kind,
      name: item.name,
      token,
      attempt: item.attempt,
      execution,
      failures: item.failures ?? undefined,
      seq: item.seq,
      data: entry.data,
      suspicion,
      ...(run.budget !== null && { budget: run.budget }),
      ...(isInQueue(item) && { slot: { queue: item.queue, ...(item.key !== null && { key: item.key }) } }),
      ...(kind === "task" && suspicion === 0 && this.#takeTurn(item.run, token)),
    });
    return true;
  }

  #runOf(run: number): RunOfItem | undefined {
    if (!this.#runs.has(run)) this.#runs.set(run, this.#readRun(run));
    return this.#runs.get(run);
  }

  #readRun(run: number): RunOfItem | undefined {
    const rows = this.#rows;
    const { turnsOf } = this.#write;
    // Locked first, if no other transaction has it: the turn may be taken.
    if (turnsOf === undefined || !rows.own("runs", [run])) return rows.get("runs", [run], SUMMARY);
    const row = rows.get("runs", [run], WITH_TURN);
    if (row !== undefined && isWaiting(row) && turnsOf.some((one) => isOf(row, one))) this.#waiting.set(run, row);
    return row;
  }

  /** Leases the turn of a waiting run with the first of its items. */
  #takeTurn(run: number, token: string): { readonly turn: RunRecord } | undefined {
    const row = this.#waiting.get(run);
    if (row === undefined) return undefined;
    this.#waiting.delete(run);
    const held = { status: "running", turn_token: token, turn_worker: this.#write.worker, turn_at: this.#now } as const;
    this.#rows.set("runs", [run], held);
    return { turn: recordOf(this.#rows, { ...row, status: "running" }) };
  }
}

/** No worker holds its turn, and nothing makes it due. A flow has no code that waits. */
function isWaiting({ status, turn_due: due, turn_token: holder, kind }: WaitingRun): boolean {
  return status === "waiting" && due === TurnDue.no && holder === null && kind !== "flow";
}

function isOf(row: WaitingRun, { name, version }: DefinitionVersion): boolean {
  return row.definition === name && row.version === version;
}

function seeSuspectItems(
  rows: Rows,
  limiter: QueueLimiter,
  wanted: readonly string[],
): readonly SampledSuspects<string>[] {
  return rows.among("queue_suspect", wanted).map((of) => {
    const suspects = rows.select("queue_suspect", [of], SUSPECT, SAMPLE).map(({ takeovers, queue, key }) => ({
      takeovers,
      isHeldBack: queue !== null && !limiter.canAdmit({ queue, key }),
    }));
    return { of, suspects };
  });
}

/** store.S5. One group, or none. A suspect whose queue has no free slot stays where it is and does not block other suspects. */
function takeSuspectItems(rows: Rows, limiter: QueueLimiter, write: ClaimItemsWrite, claim: ItemClaim): void {
  let cleared: number;
  do {
    cleared = claim.cleared;
    const groups = suspectGroups(seeSuspectItems(rows, limiter, write.names), write.tokens.length);
    if (groups.length === 0 || holdsIsolated(rows, write.worker)) return;
    for (const { level, size, parts } of groups) {
      for (const { of, limit } of parts) {
        if (claim.claimed.length === size) break;
        for (const item of rows.select("queue_suspect", [of], READY_IN_QUEUE, { limit, also: { takeovers: level } }))
          if (claim.claimed.length < size)
            claim.take(item, level, () => !isInQueue(item) || limiter.admitSuspect(item));
      }
      if (claim.claimed.length > 0) return;
    }
  } while (claim.cleared > cleared);
}

/** Runs without a transaction: whether a claim may find a suspect. */
function mayClaimSuspects(rows: Rows, limiter: QueueLimiter, { worker, names, tokens }: ClaimItemsWrite): boolean {
  return suspectGroups(seeSuspectItems(rows, limiter, names), tokens.length).length > 0 && !holdsIsolated(rows, worker);
}

function isInQueue(item: ReadyItem): item is ReadyItem & QueuedItem {
  return item.queue !== null && item.queue !== undefined;
}

function readyItems(
  rows: Rows,
  names: readonly string[],
  queues: readonly { readonly queue: string; readonly name: string }[],
  limiter: QueueLimiter,
  limit: number,
): readonly ReadyItem[] {
  const ready: ReadyItem[] = [];
  const span = { limit };
  for (const name of names) ready.push(...rows.select("queue_ready", [name], READY, span));
  for (const { queue, name } of queues) {
    const most = limiter.readLimit(queue, limit);
    ready.push(...rows.select("queue_lined", ["task", queue, name], READY_IN_QUEUE, { limit: most }));
  }
  return ready.sort((a, b) => b.priority - a.priority || a.available_at - b.available_at || a.run - b.run);
}

/** A worker whose lease was taken over gets no work: no other worker would take that work over. */
function isRegistered(rows: Rows, worker: number): boolean {
  return rows.get("workers", [worker], WORKER) !== undefined;
}
