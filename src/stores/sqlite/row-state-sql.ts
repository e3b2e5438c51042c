// Row state SQL: the states of rows as SQL text. `state = 1` is a condition after `where` and an assignment after `set`.

import { OutboxState, QueueItemState, TurnDue } from "../../kernel/index.ts";

function equals<K extends string>(column: string, states: Readonly<Record<K, number>>): Readonly<Record<K, string>> {
  const texts = Object.entries<number>(states).map(([name, number]) => [name, `${column} = ${number}`]);
  return Object.fromEntries(texts) as Record<K, string>;
}

/** Of a row in `queue`. */
export const ITEM: Readonly<Record<keyof typeof QueueItemState, string>> = equals("state", QueueItemState);
/** Of a row in `outbox`. */
export const OUTGOING: Readonly<Record<keyof typeof OutboxState, string>> = equals("state", OutboxState);
/** Of a row in `runs`. */
export const TURN: Readonly<Record<keyof typeof TurnDue, string>> = equals("turn_due", TurnDue);

/** Ready items of the default queue: the condition of the index `queue_ready`. */
export const READY_IN_DEFAULT_QUEUE: string = `${ITEM.ready} and queue is null`;
/** Ready items of named queues: the condition of the index `queue_lined`. */
export const READY_IN_NAMED_QUEUE: string = `${ITEM.ready} and queue is not null`;
/** Items that hold a slot of a named queue: the condition of the index `queue_busy`. */
export const HOLDS_SLOT: string = `state in (${QueueItemState.leased}, ${QueueItemState.admitted}) and queue is not null`;
/** An item `Start` of a run that has not started. */
export const START_IS_PENDING: string = `state in (${QueueItemState.delayed}, ${QueueItemState.ready}, ${QueueItemState.parked})`;
/** A turn that a worker can claim: the condition of the index `runs_due`. */
export const TURN_IS_DUE: string = `${TURN.yes} and turn_token is null`;
/** The turn of a suspect that a worker can claim. */
export const SUSPECT_TURN_IS_DUE: string = `${TURN.suspect} and turn_token is null`;
