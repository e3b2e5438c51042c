// Row states: the numbers in the state columns of `runs`, `queue` and `outbox`. Every database stores the same numbers.
//
// row-states.S1. A number never changes its meaning: rows written by an older version hold it, and partial indexes name it.

/** `runs.turn_due`: whether a worker may claim the run's turn. A held turn also has a `turn_token`. */
export const TurnDue = {
  /** Nothing to do, or the run is stopped. */
  no: 0,
  /** There is something to do. While a worker holds the turn: it has unread messages. */
  yes: 1,
  /** As `yes`, for a suspect: workers claim it in small groups (suspects.ts). */
  suspect: 2,
  /** The run has not started: it waits for its delay or for room in its queue. A message does not wake it. */
  notStarted: 3,
} as const;
export type TurnDue = (typeof TurnDue)[keyof typeof TurnDue];

/** Whether a worker may claim the turn of this row: the one definition of "the run is due". */
export function isTurnClaimable(due: number, token: string | null | undefined): boolean {
  return (due === TurnDue.yes || due === TurnDue.suspect) && (token ?? null) === null;
}

/** `turn_due` of a run whose turn is due, by how often workers lost it in a row. */
export function dueOrSuspect(isSuspect: boolean): TurnDue {
  return isSuspect ? TurnDue.suspect : TurnDue.yes;
}

/** `queue.state`: where an item stands. */
export const QueueItemState = {
  /** Not before `available_at`. */
  delayed: 0,
  /** A worker may claim it, as far as its queue's limits allow. */
  ready: 1,
  /** A worker holds it, under `token`. */
  leased: 2,
  /** Its run is paused or blocked. */
  stopped: 3,
  /** As `ready`, for a suspect: workers claim it in small groups (suspects.ts). */
  suspect: 4,
  /** Its key has no free slot. A claim does not scan it. */
  parked: 5,
  /** Only for the item `Start`: the run has started and holds a slot of its queue until it ends. */
  admitted: 6,
} as const;
export type QueueItemState = (typeof QueueItemState)[keyof typeof QueueItemState];

/** Whether an item `Start` in this state belongs to a run that has not started. */
export function isStartPending(state: number): boolean {
  return state === QueueItemState.delayed || state === QueueItemState.ready || state === QueueItemState.parked;
}

/** `budget_reservations.state`: where a reservation stands. */
export const ReservationState = {
  /** An execution may be paid from it. */
  open: 0,
  /** The budget is reached: the call has not begun. */
  waiting: 1,
  /** A person declined: the next execution fails. */
  declined: 2,
} as const;
export type ReservationState = (typeof ReservationState)[keyof typeof ReservationState];

/** `outbox.state`: where a message stands. */
export const OutboxState = {
  /** An earlier message of the same run is not delivered yet. */
  blocked: 0,
  /** The next one of its run: due at `available_at`. */
  next: 1,
  /** A worker delivers it, under `token`. */
  leased: 2,
} as const;
export type OutboxState = (typeof OutboxState)[keyof typeof OutboxState];
