// Check outbox: the messages of each run are in order, and a worker delivers them.

import type { StatementSync } from "node:sqlite";
import type { EpochMs } from "../../base/index.ts";
import { eventLineOf, eventPlaceOf, isEventLine, OutboxState, type Problem } from "../../kernel/index.ts";

export const CHECK_OUTBOX_SQL = {
  outgoing: `select line, outbox.run, outbox.seq, destination, state, available_at as availableAt, attempt, token, worker,
      (select id from runs where runs.run = outbox.run) as id,
      (select type from journal where journal.run = outbox.run and journal.seq = outbox.seq) as entry,
      (select 1 from workers where workers.worker = outbox.worker) as hasHolder
    from outbox where (line, outbox.run, outbox.seq) > (?, ?, ?) order by line, outbox.run, outbox.seq limit ?`,
  living: "select count(*) as count from workers where until > ?",
} as const;

interface Outgoing {
  readonly line: number;
  readonly run: number;
  readonly seq: number;
  readonly destination: string;
  readonly state: number;
  readonly availableAt: number;
  readonly attempt: number;
  readonly token: string | null;
  readonly worker: number | null;
  readonly id: string | null;
  readonly entry: string | null;
  readonly hasHolder: number | null;
}

const PAGE = 200;
/** A worker with a handler claims a due message within seconds. */
const OVERDUE_MS = 5 * 60_000;

export function checkOutbox(
  sql: Readonly<Record<keyof typeof CHECK_OUTBOX_SQL, StatementSync>>,
  now: EpochMs,
): readonly Problem[] {
  const problems: Problem[] = [];
  const { count: living } = sql.living.get(now) as { count: number };
  let last: Pick<Outgoing, "line" | "run" | "seq"> = { line: Number.MIN_SAFE_INTEGER, run: 0, seq: 0 };
  for (;;) {
    const page = sql.outgoing.all(last.line, last.run, last.seq, PAGE) as unknown as Outgoing[];
    for (const message of page) {
      const { seq } = message;
      const run = message.id ?? undefined;
      const isEvent = isEventLine(message.line);
      const fault = isEvent ? eventFaultOf(message) : faultOf(message, message.line !== last.line);
      if (fault !== undefined) problems.push({ invariant: "I20 outbox in order", run, seq, message: fault });
      else if (living > 0 && message.state === OutboxState.next && now - message.availableAt > OVERDUE_MS)
        problems.push({
          invariant: "I21 outbox delivered",
          run,
          seq,
          message: isEvent ? eventOverdue(message) : overdue(message),
        });
      last = message;
    }
    if (page.length < PAGE) return problems;
  }
}

function faultOf(message: Outgoing, isFirst: boolean): string | undefined {
  const { state, destination, entry } = message;
  const what = `The message to ${destination}`;
  if (message.id === null) return `${what} belongs to run number ${message.run}, which does not exist.`;
  if (entry !== "MessageSent")
    return `${what} must have an entry MessageSent at its seq; the journal has ${entry ?? "no entry"} there.`;
  if (isFirst === (state === OutboxState.blocked))
    return isFirst
      ? `${what} is the first undelivered one of its run, and is not due.`
      : `${what} is due before an earlier message of its run is delivered.`;
  return leaseFaultOf(what, message);
}

/** run-event.E2: order does not matter. The event of a run that was deleted is gone with the next sweep. */
function eventFaultOf(message: Outgoing): string | undefined {
  const what = `The event for ${message.destination}`;
  const place = eventPlaceOf(message.seq);
  if (place === undefined || message.line !== eventLineOf(message.run))
    return `${what} has the line ${message.line} and the seq ${message.seq}, which name no event of run number ${message.run}.`;
  if (message.state === OutboxState.blocked) return `${what} waits for another one.`;
  return leaseFaultOf(what, message);
}

function leaseFaultOf(what: string, { state, token, worker, hasHolder }: Outgoing): string | undefined {
  if ((state === OutboxState.leased) !== (token !== null) || (token === null) !== (worker === null))
    return `${what} is in state ${state} (leased is ${OutboxState.leased}) with token ${token} and worker ${worker}.`;
  if (worker !== null && hasHolder === null) return `${what} is held by worker ${worker}, which does not exist.`;
  return undefined;
}

function overdue({ destination, availableAt }: Outgoing): string {
  return `A message to ${destination} has been due since ${new Date(availableAt).toISOString()}, and no live worker has a handler for ${destination}. Start a worker whose engine has outbox: { ${JSON.stringify(destination)}: … }.`;
}

function eventOverdue({ destination, availableAt }: Outgoing): string {
  return `An event for ${destination} has been due since ${new Date(availableAt).toISOString()}, and no live worker delivers to it. Start a worker whose engine has this webhook; without one, the event is deleted with its run.`;
}
