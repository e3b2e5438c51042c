// Hot rows: inserts into the tables of the hot path with their columns written out. The generic form reads the columns of a row by
// name, one by one, which takes 0.3 to 1 µs per row more (`npm run bench -- writes`).
//
// hot-rows.H1. The columns are those of the table, in its order; a test compares the rows that both forms insert.

import type { StatementSync } from "node:sqlite";
import type { RowOf, TableName } from "../rows/tables.ts";

type Inserted = ReturnType<StatementSync["run"]>;

/** Undefined: the table has no special form. */
export function bindHotRow(statement: StatementSync, table: TableName, row: object): Inserted | undefined {
  switch (table) {
    case "journal":
      return bindEntry(statement, row as RowOf<"journal">);
    case "queue":
      return bindItem(statement, row as RowOf<"queue">);
    case "runs":
      return bindRun(statement, row as RowOf<"runs">);
    case "arrivals":
      return bindArrival(statement, row as RowOf<"arrivals">);
    case "readiness":
      return bindReadiness(statement, row as RowOf<"readiness">);
    case "checkpoints":
      return bindCheckpoint(statement, row as RowOf<"checkpoints">);
    case "inbox":
      return bindMessage(statement, row as RowOf<"inbox">);
    default:
      return undefined;
  }
}

function bindEntry(statement: StatementSync, row: RowOf<"journal">): Inserted {
  return statement.run(
    row.run,
    row.seq,
    row.type,
    row.command,
    row.data,
    row.at,
    row.mark,
    row.took_ms,
    row.worker,
    row.execution,
    row.started_at,
  );
}

function bindItem(statement: StatementSync, row: RowOf<"queue">): Inserted {
  return statement.run(
    row.run,
    row.item,
    row.kind,
    row.name,
    row.priority,
    row.available_at,
    row.seq,
    row.attempt,
    row.state,
    row.token,
    row.worker,
    row.takeovers,
    row.failures,
    row.queue,
    row.key,
    row.executions,
    row.leased_at,
  );
}

function bindRun(statement: StatementSync, row: RowOf<"runs">): Inserted {
  return statement.run(
    row.run,
    row.id,
    row.generation,
    row.definition,
    row.kind,
    row.version,
    row.status,
    row.parent,
    row.parent_command,
    row.root,
    row.priority,
    row.head,
    row.chain,
    row.arrivals,
    row.read,
    row.unread,
    row.turn_due,
    row.turn_token,
    row.turn_worker,
    row.takeovers,
    row.created_at,
    row.ended_at,
    row.runtime,
    row.evidence,
    row.lost_turns,
    row.turn_at,
    row.error_code,
    row.budget,
  );
}

function bindArrival(statement: StatementSync, row: RowOf<"arrivals">): Inserted {
  return statement.run(row.run, row.target, row.edge, row.idx, row.kind, row.seq);
}

function bindReadiness(statement: StatementSync, row: RowOf<"readiness">): Inserted {
  const { run, node, required, completed, queued, window } = row;
  return statement.run(run, node, required, completed, queued, window, row.first_seq, row.per_entry);
}

function bindCheckpoint(statement: StatementSync, row: RowOf<"checkpoints">): Inserted {
  return statement.run(row.run, row.step, row.seq, row.chain, row.key, row.label, row.state);
}

function bindMessage(statement: StatementSync, row: RowOf<"inbox">): Inserted {
  return statement.run(
    row.run,
    row.arrival,
    row.type,
    row.target,
    row.data,
    row.worker,
    row.execution,
    row.started_at,
    row.took_ms,
  );
}
