// Claim: leases due turns and ready items to a worker, highest priority first, then oldest.
//
// Every select reads one partial index from its front, so a claim costs the same with ten rows and with a million. With several
// names, one skip scan first finds the names that have work: an idle poll is one statement.

import { invariant } from "../../base/index.ts";
import {
  hasEnded,
  SUSPECTS_SEEN,
  type ClaimedItem,
  type ClaimedTurn,
  type ClaimItemsOutcome,
  type ClaimItemsWrite,
  type ClaimTurnsWrite,
  type DefinitionVersion,
  type InboxRow,
  type RunStatus,
} from "../../kernel/index.ts";
import { QueueLimiter, hasDueRateGates, openRateGates, type QueuedItem } from "./queue-limiter.ts";
import { kindOf } from "./items.ts";
import { isStopped, plainRows, recordOf, RUN_COLUMNS } from "./run-rows.ts";
import type { Statements, Tx } from "./statements.ts";
import { suspectGroups, type SampledSuspects } from "./suspect-groups.ts";

interface DueTurn {
  readonly run: number;
  readonly priority: number;
}

/** The wanted versions of definitions that have due turns. */
function withDueTurns(sql: Statements, wanted: readonly DefinitionVersion[]): readonly DefinitionVersion[] {
  return pickVersions(sql.dueDefinitions.all(), wanted);
}

export function namesWithReadyItems(sql: Statements, wanted: readonly string[]): readonly string[] {
  return pick(sql.readyNames.all(), wanted);
}

/** Whether a claim would find a turn, suspects included. */
export function hasDueTurns(sql: Statements, wanted: readonly DefinitionVersion[]): boolean {
  return (
    withDueTurns(sql, wanted).some(({ name, version }) => sql.dueTurns.get(name, version, 1) !== undefined) ||
    pickVersions(sql.suspectDefinitions.all(), wanted).some(
      ({ name, version }) => sql.suspectTurns.get(name, version, SUSPECTS_SEEN) !== undefined,
    )
  );
}

/** Runs without a transaction. Undefined when there may be an item to claim. */
export function idleClaimItems(sql: Statements, now: number, write: ClaimItemsWrite): ClaimItemsOutcome | undefined {
  if (write.tokens.length === 0) return NO_ITEMS;
  if (namesWithReadyItems(sql, write.names).length > 0 || hasDueRateGates(sql, now)) return undefined;
  const limiter = new QueueLimiter(sql, now, "task");
  if (limiter.findOpenQueues(write.names).length > 0 || mayClaimSuspects(sql, limiter, write)) return undefined;
  return { items: [], ...limiter.heldBack() };
}

const NO_DATA = { data: "" };
const NO_ITEMS: ClaimItemsOutcome = { items: [], nextAt: undefined, held: false };

/** A definition in `rows` may have work only in a version that is not wanted. */
function pickVersions(rows: readonly unknown[], wanted: readonly DefinitionVersion[]): readonly DefinitionVersion[] {
  if (rows.length === 0) return [];
  const names = new Set((rows as { value: string }[]).map(({ value }) => value));
  return wanted.filter(({ name }) => names.has(name));
}

function pick(rows: readonly unknown[], wanted: readonly string[]): readonly string[] {
  if (rows.length === 0) return [];
  const names = new Set(wanted);
  return (rows as { value: string }[]).map(({ value }) => value).filter((value) => names.has(value));
}

export function applyClaimTurns(tx: Tx, write: ClaimTurnsWrite): readonly ClaimedTurn[] {
  const { sql } = tx;
  const limit = write.tokens.length;
  if (limit === 0 || !isRegistered(sql, write.worker)) return [];
  const suspects = takeSuspectTurns(tx, write);
  if (suspects.length > 0) return suspects;
  const due: DueTurn[] = [];
  for (const { name, version } of withDueTurns(sql, write.definitions))
    due.push(...(sql.dueTurns.all(name, version, limit) as unknown as DueTurn[]));
  due.sort((a, b) => b.priority - a.priority || a.run - b.run);
  return due.slice(0, limit).map(({ run }, index) => takeTurn(tx, run, write, index, 0));
}

/** store.S5. One group, or none. */
function takeSuspectTurns(tx: Tx, write: ClaimTurnsWrite): readonly ClaimedTurn[] {
  const { sql } = tx;
  const seen = pickVersions(sql.suspectDefinitions.all(), write.definitions).map(
    (of): SampledSuspects<DefinitionVersion> => {
      const suspects = sql.suspectTurns.all(of.name, of.version, SUSPECTS_SEEN);
      return { of, suspects: suspects as { takeovers: number }[] };
    },
  );
  const claimed: ClaimedTurn[] = [];
  const groups = suspectGroups(seen, write.tokens.length);
  if (groups.length === 0 || holdsIsolated(sql, write.worker)) return claimed;
  for (const { level, size, parts } of groups) {
    for (const { of, limit } of parts) {
      const most = Math.min(limit, size - claimed.length);
      const group = most === 0 ? [] : sql.suspectTurnGroup.all(of.name, of.version, level, most);
      for (const { run } of group as { run: number }[]) claimed.push(takeTurn(tx, run, write, claimed.length, level));
    }
    if (claimed.length > 0) break;
  }
  return claimed;
}

/** suspects.S3. Whether the worker holds an isolated turn or item. */
function holdsIsolated(sql: Statements, worker: number): boolean {
  return sql.holdsIsolatedTurn.get(worker) !== undefined || sql.holdsIsolatedItem.get(worker) !== undefined;
}

function takeTurn({ sql, rows }: Tx, run: number, write: ClaimTurnsWrite, index: number, suspicion: number): ClaimedTurn {
  const token = write.tokens[index];
  invariant(token !== undefined, "A claim must not take more turns than it has tokens.");
  const { changes } = sql.claimTurn.run(token, write.worker, run);
  invariant(changes === 1, "A due turn must have a row to claim.");
  // Two statements: RETURNING the whole row takes longer than reading it.
  const row = rows.get("runs", [run], RUN_COLUMNS);
  invariant(row !== undefined, "A due turn must have a row to claim.");
  // No invariant `arrivals >= read`: one damaged row must not stop the claims of all other runs. `doctor` reports it.
  const inbox = row.arrivals <= row.read ? [] : plainRows<InboxRow>(sql.inboxAfter.all(run, row.read));
  return { record: recordOf(rows, row), token, inbox, suspicion };
}

interface ReadyItem {
  readonly run: number;
  readonly item: string;
  readonly name: string;
  readonly priority: number;
  readonly availableAt: number;
  readonly seq: number;
  readonly attempt: number;
  readonly failures: string | null;
  /** Only for an item of a named queue. */
  readonly queue?: string | null;
  readonly key?: string | null;
}

interface RunOfItem {
  readonly id: string;
  readonly generation: number;
  readonly status: RunStatus;
}

export function applyClaimItems(tx: Tx, write: ClaimItemsWrite): ClaimItemsOutcome {
  const { sql, now } = tx;
  const limit = write.tokens.length;
  if (limit === 0 || !isRegistered(sql, write.worker)) return NO_ITEMS;
  openRateGates(tx);
  const limiter = new QueueLimiter(sql, now, "task");
  const claim = new ItemClaim(sql, write);
  takeSuspectItems(sql, limiter, write, claim);
  if (claim.claimed.length > 0) return { items: claim.claimed, ...limiter.heldBack() };
  const names = namesWithReadyItems(sql, write.names);
  // When an item cannot be claimed, others may follow it in the index.
  let hasSkipped: boolean;
  do {
    hasSkipped = false;
    for (const item of readyItems(sql, names, limiter.findOpenQueues(write.names), limit - claim.claimed.length))
      if (!claim.take(item, 0, () => !isInQueue(item) || limiter.admit(item))) hasSkipped = true;
  } while (hasSkipped && claim.claimed.length < limit);
  return { items: claim.claimed, ...limiter.heldBack() };
}

/** The items of one claim. */
class ItemClaim {
  readonly claimed: ClaimedItem[] = [];
  /** How many items were removed from the index instead of being claimed. */
  cleared = 0;
  readonly #sql: Statements;
  readonly #write: ClaimItemsWrite;
  /** Items of one run often come together: the run's row is read once. */
  readonly #runs = new Map<number, RunOfItem | undefined>();

  constructor(sql: Statements, write: ClaimItemsWrite) {
    this.#sql = sql;
    this.#write = write;
  }

  /** False when the item was not claimed. */
  take(item: ReadyItem, suspicion: number, mayAdmit: () => boolean): boolean {
    const sql = this.#sql;
    const run = this.#runOf(item.run);
    if (run === undefined || hasEnded(run.status)) {
      // The run ended with more items than one transaction deletes.
      sql.deleteItem.run(item.run, item.item);
      this.cleared += 1;
      return false;
    }
    const kind = kindOf(item.name);
    if (isStopped(run.status) && kind === "node") {
      // completion.C7. The node became ready while its run was stopped: after a takeover, or after a backoff.
      sql.stopItem.run(item.run, item.item);
      this.cleared += 1;
      return false;
    }
    if (!mayAdmit()) return false;
    const token = this.#write.tokens[this.claimed.length];
    invariant(token !== undefined, "A claim must not take more items than it has tokens.");
    const { changes } = sql.claimItem.run(token, this.#write.worker, item.run, item.item);
    invariant(changes === 1, "A ready item must have a row to claim.");
    // Items of a spread share large entries; the worker reads each entry once.
    const entry = kind === "node" ? NO_DATA : (sql.entryData.get(item.run, item.seq) as { data: string } | undefined);
    invariant(entry !== undefined, "A task must have the entry that scheduled it.");
    this.claimed.push({
      run: item.run,
      runId: run.id,
      generation: run.generation,
      item: item.item,
      kind,
      name: item.name,
      token,
      attempt: item.attempt,
      failures: item.failures ?? undefined,
      seq: item.seq,
      data: entry.data,
      suspicion,
      ...(isInQueue(item) && { slot: { queue: item.queue, ...(item.key !== null && { key: item.key }) } }),
    });
    return true;
  }

  #runOf(run: number): RunOfItem | undefined {
    if (!this.#runs.has(run)) this.#runs.set(run, this.#sql.runSummary.get(run) as RunOfItem | undefined);
    return this.#runs.get(run);
  }
}

interface SuspectItem {
  readonly takeovers: number;
  readonly queue: string | null;
  readonly key: string | null;
}

function seeSuspectItems(
  sql: Statements,
  limiter: QueueLimiter,
  wanted: readonly string[],
): readonly SampledSuspects<string>[] {
  return pick(sql.suspectNames.all(), wanted).map((of) => {
    const items = sql.suspectItems.all(of, SUSPECTS_SEEN) as unknown as readonly SuspectItem[];
    const suspects = items.map(({ takeovers, queue, key }) => ({
      takeovers,
      isHeldBack: queue !== null && !limiter.canAdmit({ queue, key }),
    }));
    return { of, suspects };
  });
}

/** store.S5. One group, or none. A suspect whose queue has no free slot stays where it is and does not block other suspects. */
function takeSuspectItems(sql: Statements, limiter: QueueLimiter, write: ClaimItemsWrite, claim: ItemClaim): void {
  let cleared: number;
  do {
    cleared = claim.cleared;
    const groups = suspectGroups(seeSuspectItems(sql, limiter, write.names), write.tokens.length);
    if (groups.length === 0 || holdsIsolated(sql, write.worker)) return;
    for (const { level, size, parts } of groups) {
      for (const { of, limit } of parts) {
        if (claim.claimed.length === size) break;
        for (const item of sql.suspectItemGroup.all(of, level, limit) as ReadyItem[])
          if (claim.claimed.length < size)
            claim.take(item, level, () => !isInQueue(item) || limiter.admitSuspect(item));
      }
      if (claim.claimed.length > 0) return;
    }
  } while (claim.cleared > cleared);
}

/** Runs without a transaction: whether a claim may find a suspect. */
function mayClaimSuspects(sql: Statements, limiter: QueueLimiter, { worker, names, tokens }: ClaimItemsWrite): boolean {
  return suspectGroups(seeSuspectItems(sql, limiter, names), tokens.length).length > 0 && !holdsIsolated(sql, worker);
}

function isInQueue(item: ReadyItem): item is ReadyItem & QueuedItem {
  return item.queue !== null && item.queue !== undefined;
}

function readyItems(
  sql: Statements,
  names: readonly string[],
  queues: readonly { readonly queue: string; readonly name: string }[],
  limit: number,
): readonly ReadyItem[] {
  const ready: ReadyItem[] = [];
  for (const name of names) ready.push(...(sql.readyItems.all(name, limit) as unknown as ReadyItem[]));
  for (const { queue, name } of queues)
    ready.push(...(sql.readyItemsInQueue.all("task", queue, name, limit) as unknown as ReadyItem[]));
  ready.sort((a, b) => b.priority - a.priority || a.availableAt - b.availableAt || a.run - b.run);
  return ready.slice(0, limit);
}

/** A worker whose lease was taken over gets no work: no other worker would take that work over. */
function isRegistered(sql: Statements, worker: number): boolean {
  return sql.worker.get(worker) !== undefined;
}
