// Begin: runs that exist and have not begun, because they were asked to wait or their queue has no room yet.
//
// B1. Such a run has its turn held back (`turn_due` 3) and an item `Start`; no message wakes it but a cancel or its deadline.
// B2. Until it begins, its first entry may be replaced by that of a later start (debounce); afterwards no entry changes.
// B3. Beginning with room in a queue, the item stays until the run ends: it is the run's place.

import {
  CHAIN_START,
  chainAfter,
  DEADLINE_ITEM,
  hasEnded,
  markOf,
  type AdmitOutcome,
  type AdmitWrite,
  type DefinitionVersion,
  type Entry,
  type Line,
  type NewRun,
  type RunNumber,
  type Status,
} from "../../kernel/index.ts";
import { lineName } from "./backlog.ts";
import { freeKey, Gates, hasDueLanes, openLanes, type LinedItem, type LineKind } from "./gates.ts";
import { insertDeadline } from "./items.ts";
import type { RunRow } from "./rows.ts";
import type { Statements, Tx } from "./statements.ts";

export const START_ITEM = "Start";
const DELAYED = 0;
const READY = 1;
const ADMITTED = 6;

/** B1 */
export function insertStart({ sql, now }: Tx, number: RunNumber, run: NewRun, delayMs: number | undefined): void {
  const { line, definition, version, priority } = run;
  const at = now + (delayMs ?? 0);
  const state = delayMs === undefined ? READY : DELAYED;
  sql.insertLined.run(
    number,
    START_ITEM,
    "start" satisfies LineKind,
    lineName(definition, version),
    priority,
    at,
    1,
    state,
    line?.queue ?? null,
    line?.key ?? null,
  );
}

/** B3. For a run that goes on: a place, whether the queue has room or not. */
export function insertPlace({ sql, now }: Tx, { run, definition, version, priority }: RunRow, line: Line): void {
  const name = lineName(definition, version);
  const kind: LineKind = "start";
  sql.insertLined.run(run, START_ITEM, kind, name, priority, now, 1, ADMITTED, line.queue, line.key ?? null);
}

/** A delayed run whose time has come; false while its queue still has to let it in. */
export function beginDelayed(tx: Tx, run: RunNumber): boolean {
  if (findUnbegun(tx, run)?.queue !== null) {
    tx.sql.readyItem.run(run, START_ITEM);
    return false;
  }
  tx.sql.dropItem.run(run, START_ITEM);
  begin(tx, run);
  return true;
}

/** B1. It leaves its line: all it will do is end. False when it has begun. */
export function beginCancelled(tx: Tx, run: RunNumber): boolean {
  const unbegun = findUnbegun(tx, run);
  if (unbegun === undefined) return false;
  tx.sql.dropItem.run(run, START_ITEM);
  freeKey(tx, "start", unbegun);
  begin(tx, run);
  return true;
}

interface Unbegun {
  readonly queue: string | null;
  readonly key: string | null;
}

function findUnbegun({ sql }: Tx, run: RunNumber): Unbegun | undefined {
  return sql.isUnbegun.get(run) as Unbegun | undefined;
}

function begin({ sql, now }: Tx, run: RunNumber): void {
  sql.beginRun.run(run);
  sql.beginEntry.run(now, run);
}

interface Candidate extends LinedItem {
  readonly priority: number;
  readonly availableAt: number;
}

export function applyAdmit(tx: Tx, { definitions, limit }: AdmitWrite): AdmitOutcome {
  const { sql, now } = tx;
  openLanes(tx);
  const gates = new Gates(sql, now, "start");
  const names = lineNames(definitions);
  const runs: RunNumber[] = [];
  for (let going = true; going && runs.length < limit;) {
    const candidates = gates
      .openLines(names)
      .flatMap(({ queue, name }) => {
        const most = Math.min(limit - runs.length, gates.room(queue));
        return sql.linedItems.all("start", queue, name, most) as unknown as Candidate[];
      })
      .sort((a, b) => b.priority - a.priority || a.availableAt - b.availableAt || a.run - b.run)
      .slice(0, limit - runs.length);
    going = candidates.length > 0;
    for (const candidate of candidates) {
      const { run } = candidate;
      const row = sql.runOfItem.get(run) as { status: Status } | undefined;
      if (row === undefined || hasEnded(row.status)) sql.dropItem.run(run, START_ITEM);
      else if (gates.pass(candidate)) {
        sql.admitRun.run(run);
        begin(tx, run);
        runs.push(run);
      }
    }
  }
  return { runs, ...gates.waiting() };
}

function lineNames(definitions: readonly DefinitionVersion[]): readonly string[] {
  return definitions.map(({ name, version }) => lineName(name, version));
}

/** Without a transaction: undefined when there may be something to do. */
export function idleAdmit(sql: Statements, now: number, write: AdmitWrite): AdmitOutcome | undefined {
  const gates = new Gates(sql, now, "start");
  if (hasDueLanes(sql, now) || gates.openLines(lineNames(write.definitions)).length > 0) return undefined;
  return { runs: [], ...gates.waiting() };
}

/** B2. Answers the new first entry, undefined when the run has begun. */
export function rewriteStart(tx: Tx, number: RunNumber, run: NewRun, delayMs: number): Entry | undefined {
  const { sql, now } = tx;
  const unbegun = findUnbegun(tx, number);
  if (unbegun === undefined) return undefined;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", run.started);
  const mark = markOf(chain);
  sql.rewriteRun.run(run.version, run.priority, chain, run.runtime, number);
  sql.rewriteFirst.run(run.started, now, mark, number);
  const { line, definition, version, priority } = run;
  const name = lineName(definition, version);
  sql.postponeStart.run(now + delayMs, name, priority, line?.queue ?? null, line?.key ?? null, number);
  freeKey(tx, "start", unbegun);
  sql.dropItem.run(number, DEADLINE_ITEM);
  if (run.deadlineMs !== undefined) insertDeadline(tx, number, now + run.deadlineMs);
  sql.dropTags.run(number);
  for (const tag of run.tags) sql.insertTag.run(number, tag);
  return { seq: 1, type: "RunStarted", command: "", data: run.started, at: now, mark };
}
