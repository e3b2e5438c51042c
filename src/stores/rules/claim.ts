// Claim: takes due turns and ready items for a worker, most urgent first, then oldest.
//
// Every select below walks one partial index from its front, so a claim costs the same with ten rows and with a million.
// With several names, one skip scan first finds which of them have anything at all: an idle poll is one statement.

import type {
  ClaimedItem,
  ClaimedTurn,
  ClaimItemsOutcome,
  ClaimItemsWrite,
  ClaimTurnsWrite,
  DefinitionVersion,
  InboxRow,
} from "../../kernel/index.ts";
import { hasEnded, SUSPECTS_SEEN, type Status } from "../../kernel/index.ts";
import { Gates, hasDueLanes, openLanes, type LinedItem } from "./gates.ts";
import { kindOf } from "./items.ts";
import { isStopped, plain, recordOf, type RunRow } from "./rows.ts";
import type { Statements, Tx } from "./statements.ts";
import { suspectGroups, type Seen } from "./suspect-groups.ts";

interface DueTurn {
  readonly run: number;
  readonly priority: number;
}

/** The wanted versions of definitions that have something to take. */
function withDueTurns(sql: Statements, wanted: readonly DefinitionVersion[]): readonly DefinitionVersion[] {
  return pickVersions(sql.dueDefinitions.all(), wanted);
}

export function namesWithReadyItems(sql: Statements, wanted: readonly string[]): readonly string[] {
  return pick(sql.readyNames.all(), wanted);
}

/** Whether a claim would find anything, suspects included. */
export function hasDueTurns(sql: Statements, wanted: readonly DefinitionVersion[]): boolean {
  return (
    withDueTurns(sql, wanted).some(({ name, version }) => sql.dueTurns.get(name, version, 1) !== undefined) ||
    pickVersions(sql.suspectDefinitions.all(), wanted).some(
      ({ name, version }) => sql.suspectTurns.get(name, version, SUSPECTS_SEEN) !== undefined,
    )
  );
}

/** Without a transaction: undefined when there may be something to take. */
export function idleClaimItems(sql: Statements, now: number, write: ClaimItemsWrite): ClaimItemsOutcome | undefined {
  if (write.tokens.length === 0) return NOTHING;
  if (namesWithReadyItems(sql, write.names).length > 0 || hasDueLanes(sql, now)) return undefined;
  const gates = new Gates(sql, now, "task");
  if (gates.openLines(write.names).length > 0 || maySuspectsPass(sql, gates, write)) return undefined;
  return { items: [], ...gates.waiting() };
}

const NO_DATA = { data: "" };
const NOTHING: ClaimItemsOutcome = { items: [], nextAt: undefined, held: false };

/** A definition that has something may have it in a version that nobody wants. */
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

export function applyClaimTurns({ sql }: Tx, write: ClaimTurnsWrite): readonly ClaimedTurn[] {
  const limit = write.tokens.length;
  if (limit === 0 || !isRegistered(sql, write.worker)) return [];
  const suspects = takeSuspectTurns(sql, write);
  if (suspects.length > 0) return suspects;
  const due: DueTurn[] = [];
  for (const { name, version } of withDueTurns(sql, write.definitions))
    due.push(...(sql.dueTurns.all(name, version, limit) as unknown as DueTurn[]));
  due.sort((a, b) => b.priority - a.priority || a.run - b.run);
  return due.slice(0, limit).map(({ run }, index) => takeTurn(sql, run, write, index, 0));
}

/** S5. One group, or none. */
function takeSuspectTurns(sql: Statements, write: ClaimTurnsWrite): readonly ClaimedTurn[] {
  const seen = pickVersions(sql.suspectDefinitions.all(), write.definitions).map((of): Seen<DefinitionVersion> => {
    const suspects = sql.suspectTurns.all(of.name, of.version, SUSPECTS_SEEN);
    return { of, suspects: suspects as { takeovers: number }[] };
  });
  const claimed: ClaimedTurn[] = [];
  const groups = suspectGroups(seen, write.tokens.length);
  if (groups.length === 0 || holdsIsolated(sql, write.worker)) return claimed;
  for (const { level, size, parts } of groups) {
    for (const { of, limit } of parts) {
      const most = Math.min(limit, size - claimed.length);
      const group = most === 0 ? [] : sql.suspectTurnGroup.all(of.name, of.version, level, most);
      for (const { run } of group as { run: number }[]) claimed.push(takeTurn(sql, run, write, claimed.length, level));
    }
    if (claimed.length > 0) break;
  }
  return claimed;
}

/** SU3. Whether it is a turn or an item. */
function holdsIsolated(sql: Statements, worker: number): boolean {
  return sql.heldIsolated.get(worker) !== undefined || sql.leasedIsolated.get(worker) !== undefined;
}

function takeTurn(sql: Statements, run: number, write: ClaimTurnsWrite, index: number, suspicion: number): ClaimedTurn {
  const token = write.tokens[index] as string;
  sql.claimTurn.run(token, write.worker, run);
  // Two statements: RETURNING the whole row takes longer than reading it.
  const row = sql.run.get(run) as unknown as RunRow;
  const inbox = row.arrivals === row.read ? [] : plain<InboxRow>(sql.inboxAfter.all(run, row.read));
  return { record: recordOf(sql, row), token, inbox, suspicion };
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
  /** Only of items in a named queue. */
  readonly queue?: string | null;
  readonly key?: string | null;
}

interface RunOfItem {
  readonly id: string;
  readonly generation: number;
  readonly status: Status;
}

export function applyClaimItems(tx: Tx, write: ClaimItemsWrite): ClaimItemsOutcome {
  const { sql, now } = tx;
  const limit = write.tokens.length;
  if (limit === 0 || !isRegistered(sql, write.worker)) return NOTHING;
  openLanes(tx);
  const gates = new Gates(sql, now, "task");
  const taking = new TakingItems(sql, write);
  takeSuspectItems(sql, gates, write, taking);
  if (taking.claimed.length > 0) return { items: taking.claimed, ...gates.waiting() };
  const names = namesWithReadyItems(sql, write.names);
  // Some could not be taken: there may be others behind them.
  let passedOver: boolean;
  do {
    passedOver = false;
    for (const item of readyItems(sql, names, gates.openLines(write.names), limit - taking.claimed.length))
      if (!taking.take(item, 0, () => !isLined(item) || gates.pass(item))) passedOver = true;
  } while (passedOver && taking.claimed.length < limit);
  return { items: taking.claimed, ...gates.waiting() };
}

/** What one claim takes. */
class TakingItems {
  readonly claimed: ClaimedItem[] = [];
  /** Items that only looked as if they could be taken are gone from where they were found. */
  cleared = 0;
  readonly #sql: Statements;
  readonly #write: ClaimItemsWrite;
  /** A wide run's items come together: its row is read once, not once per item. */
  readonly #runs = new Map<number, RunOfItem | undefined>();

  constructor(sql: Statements, write: ClaimItemsWrite) {
    this.#sql = sql;
    this.#write = write;
  }

  /** False when it was not taken. */
  take(item: ReadyItem, suspicion: number, mayPass: () => boolean): boolean {
    const sql = this.#sql;
    const run = this.#runOf(item.run);
    if (run === undefined || hasEnded(run.status)) {
      // A leftover of a run with too many items to delete at its end.
      sql.dropItem.run(item.run, item.item);
      this.cleared += 1;
      return false;
    }
    const kind = kindOf(item.name);
    if (isStopped(run.status) && kind === "node") {
      // CN7. It came back while its run was stopped: from a worker that is gone, or after a pause between attempts.
      sql.stopItem.run(item.run, item.item);
      this.cleared += 1;
      return false;
    }
    if (!mayPass()) return false;
    const token = this.#write.tokens[this.claimed.length] as string;
    sql.claimItem.run(token, this.#write.worker, item.run, item.item);
    // Items of a spread share large entries, which whoever runs them reads once.
    const { data } = kind === "node" ? NO_DATA : (sql.dataAt.get(item.run, item.seq) as { data: string });
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
      data,
      suspicion,
      ...(isLined(item) && { line: { queue: item.queue, ...(item.key !== null && { key: item.key }) } }),
    });
    return true;
  }

  #runOf(run: number): RunOfItem | undefined {
    if (!this.#runs.has(run)) this.#runs.set(run, this.#sql.runOfItem.get(run) as RunOfItem | undefined);
    return this.#runs.get(run);
  }
}

interface SuspectItem {
  readonly takeovers: number;
  readonly queue: string | null;
  readonly key: string | null;
}

function seeSuspectItems(sql: Statements, gates: Gates, wanted: readonly string[]): readonly Seen<string>[] {
  return pick(sql.suspectNames.all(), wanted).map((of) => {
    const items = sql.suspectItems.all(of, SUSPECTS_SEEN) as unknown as readonly SuspectItem[];
    const suspects = items.map(({ takeovers, queue, key }) => ({
      takeovers,
      isHeldBack: queue !== null && !gates.mayPass({ queue, key }),
    }));
    return { of, suspects };
  });
}

/** S5. One group, or none. A suspect whose queue has no room stays where it is, and keeps nobody else waiting. */
function takeSuspectItems(sql: Statements, gates: Gates, write: ClaimItemsWrite, taking: TakingItems): void {
  let cleared: number;
  do {
    cleared = taking.cleared;
    const groups = suspectGroups(seeSuspectItems(sql, gates, write.names), write.tokens.length);
    if (groups.length === 0 || holdsIsolated(sql, write.worker)) return;
    for (const { level, size, parts } of groups) {
      for (const { of, limit } of parts) {
        if (taking.claimed.length === size) break;
        for (const item of sql.suspectItemGroup.all(of, level, limit) as ReadyItem[])
          if (taking.claimed.length < size) taking.take(item, level, () => !isLined(item) || gates.passSuspect(item));
      }
      if (taking.claimed.length > 0) return;
    }
  } while (taking.cleared > cleared);
}

/** Without a transaction: whether a claim may find a suspect. */
function maySuspectsPass(sql: Statements, gates: Gates, { worker, names, tokens }: ClaimItemsWrite): boolean {
  return suspectGroups(seeSuspectItems(sql, gates, names), tokens.length).length > 0 && !holdsIsolated(sql, worker);
}

function isLined(item: ReadyItem): item is ReadyItem & LinedItem {
  return item.queue !== null && item.queue !== undefined;
}

function readyItems(
  sql: Statements,
  names: readonly string[],
  lines: readonly { readonly queue: string; readonly name: string }[],
  limit: number,
): readonly ReadyItem[] {
  const ready: ReadyItem[] = [];
  for (const name of names) ready.push(...(sql.readyItems.all(name, limit) as unknown as ReadyItem[]));
  for (const { queue, name } of lines)
    ready.push(...(sql.linedItems.all("task", queue, name, limit) as unknown as ReadyItem[]));
  ready.sort((a, b) => b.priority - a.priority || a.availableAt - b.availableAt || a.run - b.run);
  return ready.slice(0, limit);
}

/** A worker that was taken over gets nothing more: nobody would ever take it back. */
function isRegistered(sql: Statements, worker: number): boolean {
  return sql.worker.get(worker) !== undefined;
}
