// Flow statements: the arrivals and the readiness of flow nodes.
//
// Readiness is read first, then inserted or updated: the rules check it before they write. This is no slower than one upsert with
// RETURNING, which builds a table per call: 3.8 and 5.1 µs (100,000 arrivals at 50,000 nodes, medians of seven).

import { NODE_ROUTE_SEPARATOR, QueueItemState } from "../../kernel/index.ts";
import { ITEM, TURN } from "./row-state-sql.ts";

export const FLOW_SQL = {
  // completions
  flowRun: `select status, head, chain, arrivals, read, turn_token from runs where run = ? and ended_at is null`,
  insertArrival: `insert into arrivals (run, target, edge, idx, kind, seq) values (?, ?, ?, ?, ?, ?)
    on conflict do nothing`,
  hasArrived: "select 1 from arrivals where run = ? and target = ? and edge = ? and idx = ?",
  nodeReadiness:
    "select required, completed, queued, window, first_seq, per_entry from readiness where run = ? and node = ?",
  insertReadiness: `insert into readiness (run, node, required, completed, queued, window, first_seq, per_entry)
    values (?, ?, ?, ?, ?, ?, ?, ?)`,
  updateReadiness: "update readiness set completed = ?, queued = ? where run = ? and node = ?",
  hasTasks: "select 1 from queue where run = ? and kind = 'task' limit 1",

  // the run's row
  setFlowHead: "update runs set head = ?, chain = ? where run = ?",
  setFlowHeadAndStatus: "update runs set head = ?, chain = ?, status = ? where run = ?",
  releaseFlow: `update runs set head = ?1, chain = ?2, read = ?3, takeovers = 0,
      status = iif(status = 'paused', 'paused', ?4), turn_due = status <> 'paused' and arrivals > ?3, turn_token = null,
      turn_worker = null
    where run = ?5`,
  endFlow: `update runs set head = ?1, chain = ?2, read = ?3, takeovers = 0, status = ?4, ended_at = ?5,
      unread = arrivals - ?3, evidence = null, ${TURN.no}, turn_token = null, turn_worker = null
    where run = ?6`,
  stopFlow: `update runs set status = ?1, evidence = cast(?2 as blob), ${TURN.no}, turn_token = null, turn_worker = null
    where run = ?3`,
  stopItem: `update queue set ${ITEM.stopped}, token = null, worker = null where run = ? and item = ?`,
  // Only nodes: the tasks of a stopped workflow still run.
  stopNodes: `update queue set ${ITEM.stopped} where run = ? and kind = 'task' and state in (${QueueItemState.ready}, ${QueueItemState.suspect}, ${QueueItemState.parked})
    and instr(name, char(${NODE_ROUTE_SEPARATOR.charCodeAt(0)})) > 0`,

  // reading
  inputsOfNode: `select target, edge, idx, kind, arrivals.seq, cast(data as text) from arrivals cross join journal
      on journal.run = arrivals.run and journal.seq = arrivals.seq
    where arrivals.run = ? and target = ? order by edge, idx`,
  inputsOfNodes: `select target, edge, idx, kind, arrivals.seq, cast(data as text) from arrivals cross join journal
      on journal.run = arrivals.run and journal.seq = arrivals.seq
    where arrivals.run = ? and target in (select value from json_each(?)) order by target, edge, idx`,
  readinessOfRun: "select node, required, completed, queued from readiness where run = ? order by node",

  // maintenance
  hasFlowRows: `select 1 from arrivals where run = ?1 union all select 1 from readiness where run = ?1 limit 1`,
  clearArrivals: `delete from arrivals where (run, target, edge, idx) in (
    select run, target, edge, idx from arrivals where run = ?1 limit ?2)`,
  clearReadiness:
    "delete from readiness where run = ?1 and node in (select node from readiness where run = ?1 limit ?2)",
} as const;
