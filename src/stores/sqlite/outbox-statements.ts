// Outbox statements: part of `Statements`.

import { distinctScan } from "./distinct-scan.ts";
import { OUTGOING } from "./row-state-sql.ts";

const FENCED = "where line = ?1 and run = ?2 and seq = ?3 and token = ?4";

export const OUTBOX_SQL = {
  hasOutgoing: "select 1 from outbox where line = ? limit 1",
  insertOutgoing: `insert into outbox (line, run, seq, destination, state, available_at, sent_at)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?6)`,
  nextOutgoing: `select line, run, seq, destination, attempt from outbox indexed by outbox_next
    where ${OUTGOING.next} and destination = ? and available_at <= ? order by available_at, line limit ?`,
  outgoingDueAt: `select min(available_at) as at from outbox indexed by outbox_next
    where ${OUTGOING.next} and destination = ? and available_at > ?`,
  claimOutgoing: `update outbox set ${OUTGOING.leased}, token = ?4, worker = ?5 where line = ?1 and run = ?2 and seq = ?3`,
  deleteOutgoing: `delete from outbox ${FENCED}`,
  // Due from now on: it was blocked before.
  promoteOutgoing: `update outbox set ${OUTGOING.next}, available_at = ?2 where line = ?1 and (run, seq) =
      (select run, seq from outbox where line = ?1 order by run, seq limit 1)`,
  returnOutgoing: `update outbox set ${OUTGOING.next}, token = null, worker = null, attempt = ?5, available_at = ?6 ${FENCED}`,
  outgoingHolders: distinctScan("worker", "outbox indexed by outbox_leased", OUTGOING.leased),
  heldOutgoing: `select line, run, seq, token, attempt from outbox indexed by outbox_leased
    where ${OUTGOING.leased} and worker = ? order by line, run, seq`,
  returnWorkerOutgoing: `update outbox indexed by outbox_leased set ${OUTGOING.next}, token = null, worker = null
    where ${OUTGOING.leased} and worker = ?`,
  // The delay doubles up to a minute, so that a handler that kills its worker does so less and less often.
  takeOverOutgoing: `update outbox indexed by outbox_leased set ${OUTGOING.next}, token = null, worker = null, attempt = attempt + 1,
      available_at = ?1 + min(60000, 1000 * (1 << min(attempt, 6)))
    where ${OUTGOING.leased} and worker = ?2`,
  countOutgoing: `select destination, count(*) as pending, count(*) filter (where attempt > 0) as failing,
      max(attempt) as attempts, min(sent_at) as oldestAt
    from outbox group by destination order by destination`,
} as const;
