// Check of the outbox: whether each line is in order, and whether somebody delivers it.

import type { StatementSync } from "node:sqlite";
import type { EpochMs } from "../../base/index.ts";
import type { Problem } from "../../kernel/index.ts";

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
const BEHIND = 0;
const NEXT = 1;
const LEASED = 2;
/** A worker takes what is due within moments; who has not come by now does not come. */
const NEGLECTED_MS = 5 * 60_000;

export function checkOutbox(
  sql: Readonly<Record<keyof typeof CHECK_OUTBOX_SQL, StatementSync>>,
  now: EpochMs,
): readonly Problem[] {
  const problems: Problem[] = [];
  const { count: living } = sql.living.get(now) as { count: number };
  let last: Pick<Outgoing, "line" | "run" | "seq"> = { line: 0, run: 0, seq: 0 };
  for (;;) {
    const page = sql.outgoing.all(last.line, last.run, last.seq, PAGE) as unknown as Outgoing[];
    for (const message of page) {
      const { seq } = message;
      const run = message.id ?? undefined;
      const fault = faultOf(message, message.line !== last.line);
      if (fault !== undefined) problems.push({ invariant: "I20 outbox is causal", run, seq, message: fault });
      else if (living > 0 && message.state === NEXT && now - message.availableAt > NEGLECTED_MS)
        problems.push({ invariant: "I21 outbox delivered", run, seq, message: neglect(message) });
      last = message;
    }
    if (page.length < PAGE) return problems;
  }
}

function faultOf(message: Outgoing, isFirst: boolean): string | undefined {
  const { state, token, worker, destination, entry, hasHolder } = message;
  const what = `The message to ${destination}`;
  if (message.id === null) return `${what} belongs to run number ${message.run}, which does not exist.`;
  if (entry !== "MessageSent") return `${what} has no entry of its own; the journal has ${entry ?? "nothing"} there.`;
  if (isFirst === (state === BEHIND))
    return isFirst ? `${what} is the first of its run and is never due.` : `${what} is due before the one ahead of it.`;
  if ((state === LEASED) !== (token !== null) || (token === null) !== (worker === null))
    return `${what} is in state ${state} with token ${token} and worker ${worker}.`;
  if (worker !== null && hasHolder === null) return `${what} is held by worker ${worker}, which does not exist.`;
  return undefined;
}

function neglect({ destination, availableAt }: Outgoing): string {
  return `A message to ${destination} has been due since ${new Date(availableAt).toISOString()} and nobody delivers it, although workers are alive: none of them has a handler for ${destination}. Start one with outbox: { ${JSON.stringify(destination)}: … }.`;
}
