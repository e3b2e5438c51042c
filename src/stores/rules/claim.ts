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
import { hasEnded, type Status } from "../../kernel/index.ts";
import { Gates, hasDueLanes, openLanes, type LinedItem } from "./gates.ts";
import { kindOf } from "./items.ts";
import { isStopped, plain, recordOf, type RunRow } from "./rows.ts";
import type { Statements, Tx } from "./statements.ts";

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
      ({ name, version }) => sql.suspectTurns.get(name, version) !== undefined,
    )
  );
}

/** Without a transaction: undefined when there may be something to take. */
export function idleClaimItems(sql: Statements, now: number, write: ClaimItemsWrite): ClaimItemsOutcome | undefined {
  if (write.tokens.length === 0) return NOTHING;
  if (namesWithReadyItems(sql, write.names).length > 0 || hasDueLanes(sql, now)) return undefined;
  const gates = new Gates(sql, now, "task");
  if (gates.openLines(write.names).length > 0 || findSuspectItem(sql, gates, write) !== undefined) return undefined;
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
  const suspect = findSuspectTurn(sql, write);
  if (suspect !== undefined) return [takeTurn(sql, suspect, write, 0, true)];
  const due: DueTurn[] = [];
  for (const { name, version } of withDueTurns(sql, write.definitions))
    due.push(...(sql.dueTurns.all(name, version, limit) as unknown as DueTurn[]));
  due.sort((a, b) => b.priority - a.priority || a.run - b.run);
  return due.slice(0, limit).map(({ run }, index) => takeTurn(sql, run, write, index, false));
}

/** S5. Undefined also while this worker holds another one. */
function findSuspectTurn(sql: Statements, { worker, definitions }: ClaimTurnsWrite): number | undefined {
  const wanted = pickVersions(sql.suspectDefinitions.all(), definitions);
  if (wanted.length === 0 || sql.heldSuspect.get(worker) !== undefined) return undefined;
  for (const { name, version } of wanted) {
    const suspect = sql.suspectTurns.get(name, version) as { run: number } | undefined;
    if (suspect !== undefined) return suspect.run;
  }
  return undefined;
}

function takeTurn(sql: Statements, run: number, write: ClaimTurnsWrite, index: number, suspect: boolean): ClaimedTurn {
  const token = write.tokens[index] as string;
  sql.claimTurn.run(token, write.worker, run);
  // Two statements: RETURNING the whole row takes longer than reading it.
  const row = sql.run.get(run) as unknown as RunRow;
  const inbox = row.arrivals === row.read ? [] : plain<InboxRow>(sql.inboxAfter.all(run, row.read));
  return { record: recordOf(sql, row), token, inbox, suspect };
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
  const claimed: ClaimedItem[] = [];
  if (limit === 0 || !isRegistered(sql, write.worker)) return NOTHING;
  openLanes(tx);
  const gates = new Gates(sql, now, "task");
  const suspect = findSuspectItem(sql, gates, write);
  // A wide run's items come together: its row is read once, not once per item.
  const runs = new Map<number, RunOfItem | undefined>();
  const findRunOf = (run: number): RunOfItem | undefined => {
    if (!runs.has(run)) runs.set(run, sql.runOfItem.get(run) as RunOfItem | undefined);
    return runs.get(run);
  };
  const names = namesWithReadyItems(sql, write.names);
  // Some could not be taken: there may be others behind them.
  let passedOver: boolean;
  do {
    passedOver = false;
    const lines = suspect === undefined ? gates.openLines(write.names) : [];
    for (const item of suspect === undefined ? readyItems(sql, names, lines, limit - claimed.length) : [suspect]) {
      const run = findRunOf(item.run);
      if (run === undefined || hasEnded(run.status)) {
        // A leftover of a run with too many items to delete at its end.
        sql.dropItem.run(item.run, item.item);
        passedOver = true;
        continue;
      }
      if (isStopped(run.status) && kindOf(item.name) === "node") {
        // CN7. It came back while its run was stopped: from a worker that is gone, or after a pause between attempts.
        sql.stopItem.run(item.run, item.item);
        passedOver = true;
        continue;
      }
      if (isLined(item)) {
        if (suspect !== undefined) gates.count(item);
        else if (!gates.pass(item)) {
          passedOver = true;
          continue;
        }
      }
      const token = write.tokens[claimed.length] as string;
      sql.claimItem.run(token, write.worker, item.run, item.item);
      const kind = kindOf(item.name);
      // Items of a spread share large entries, which whoever runs them reads once.
      const { data } = kind === "node" ? NO_DATA : (sql.dataAt.get(item.run, item.seq) as { data: string });
      claimed.push({
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
        suspect: suspect !== undefined,
        ...(isLined(item) && { line: { queue: item.queue, ...(item.key !== null && { key: item.key }) } }),
      });
    }
  } while (passedOver && suspect === undefined && claimed.length < limit);
  if (passedOver && suspect !== undefined) return applyClaimItems(tx, write);
  return { items: claimed, ...gates.waiting() };
}

/** S5. Undefined also while this worker holds another one, or the suspect's queue has no room. */
function findSuspectItem(sql: Statements, gates: Gates, { worker, names }: ClaimItemsWrite): ReadyItem | undefined {
  const suspects = pick(sql.suspectNames.all(), names);
  if (suspects.length === 0 || sql.leasedSuspect.get(worker) !== undefined) return undefined;
  for (const name of suspects) {
    const item = sql.suspectItems.get(name) as ReadyItem | undefined;
    if (item !== undefined && (!isLined(item) || gates.mayPass(item))) return item;
  }
  return undefined;
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
