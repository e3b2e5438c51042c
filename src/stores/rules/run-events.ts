// Run events: writes the events of webhooks to the outbox, in the transaction that they report (run-event.E1 to run-event.E4).

import type { EpochMs } from "../../base/index.ts";
import {
  EVALUATION_TAG,
  EVENT_MS,
  eventLineOf,
  eventPlaceOf,
  eventSeqLimits,
  eventSeqOf,
  eventTypeOf,
  OutboxState,
  type ClaimedEvent,
  type EventSubscription,
  type NewPromise,
  type RunEventKind,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import { tagsOf } from "./tags.ts";
import type { Tx } from "./transaction.ts";

const DEFINITION = ["definition"] as const;
const HEAD = ["head"] as const;
const ORIGIN = ["origin"] as const;
const SEQ = ["seq"] as const;
const LAST = { backwards: true, peek: true } as const;

/** The end of a run; `continued` is none. */
export function noteEndEvent(tx: Tx, run: RunNumber, status: string, head: number): void {
  if (tx.subscriptions === undefined) return;
  if (status === "completed" || status === "cancelled" || status === "failed") noteEvent(tx, run, status, head);
}

/** Promises that open with their entries. A retry opens none: they were reported when they opened first. */
export function notePromiseEvents(tx: Tx, run: RunNumber, opened: readonly NewPromise[]): void {
  if (tx.subscriptions === undefined) return;
  for (const { seq } of opened) noteEvent(tx, run, "promise", seq);
}

/** A call that waits for its budget. */
export function noteBudgetEvent(tx: Tx, run: RunNumber): void {
  noteHeadEvent(tx, run, "budget");
}

/** A run that stopped with evidence. */
export function noteStopEvent(tx: Tx, run: RunNumber, kind: "blocked" | "determinism_violation"): void {
  noteHeadEvent(tx, run, kind);
}

function noteHeadEvent(tx: Tx, run: RunNumber, kind: RunEventKind): void {
  if (tx.subscriptions === undefined) return;
  const head = tx.rows.get("runs", [run], HEAD)?.head ?? 0;
  // run-event.E3. The same may have happened at this head before, and that event may be undelivered.
  const { from, before } = eventSeqLimits(head, kind);
  const last = tx.rows.first("outbox", [eventLineOf(run), run], SEQ, { after: from - 1, before, ...LAST });
  noteEvent(tx, run, kind, head, last === undefined ? 0 : last.seq - from + 1);
}

function noteEvent(tx: Tx, run: RunNumber, kind: RunEventKind, entry: number, first = 0): void {
  const { rows, now } = tx;
  const type = eventTypeOf(kind);
  const asked = tx.subscriptions?.filter(({ types }) => types.includes(type)) ?? [];
  if (asked.length === 0) return;
  const definition = asked.some(isPartial) ? rows.get("runs", [run], DEFINITION)?.definition : undefined;
  const wanted = asked.filter(({ definitions }) => definitions?.includes(definition ?? "") ?? true);
  if (wanted.length === 0 || isOfEvaluation(rows, run)) return;
  for (const [index, { destination }] of wanted.entries())
    rows.insert("outbox", {
      line: eventLineOf(run),
      run,
      seq: eventSeqOf({ entry, kind, n: first + index }),
      destination,
      state: OutboxState.next,
      available_at: now,
      sent_at: now,
      attempt: 0,
      token: null,
      worker: null,
    });
}

/** fork.F9 */
function isOfEvaluation(rows: Rows, run: RunNumber): boolean {
  if (rows.get("forks", [run], ORIGIN) === undefined) return false;
  return tagsOf(rows, run).some((tag) => tag.startsWith(EVALUATION_TAG));
}

function isPartial({ definitions }: EventSubscription): boolean {
  return definitions !== undefined;
}

const SENDER = ["id", "generation", "definition", "version", "created_at"] as const;

export interface FoundEvent {
  readonly runId: string;
  readonly generation: number;
  readonly event: ClaimedEvent;
}

/** What a row of an event says; undefined: its run is gone, or the row is damaged. */
export function readEvent(rows: Rows, run: RunNumber, seq: number, at: EpochMs): FoundEvent | undefined {
  const place = eventPlaceOf(seq);
  const row = rows.get("runs", [run], SENDER);
  if (row === undefined || place === undefined) return undefined;
  const { id: runId, generation, definition, version, created_at: runCreatedAt } = row;
  return { runId, generation, event: { ...place, definition, version, runCreatedAt, at } };
}

const SENT = ["sent_at"] as const;

/** run-event.E4 */
export function isReporting(rows: Rows, run: RunNumber, now: EpochMs): boolean {
  return rows.select("outbox", [eventLineOf(run)], SENT, { peek: true }).some(({ sent_at: at }) => at + EVENT_MS > now);
}
