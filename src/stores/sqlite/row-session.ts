// Row session: a SQLite session as the rules use it.

import type { Rows, RowSession } from "../rows/rows.ts";
import type { FirstNumbers, ThreadNumbers } from "../rules/threads.ts";
import type { SqliteSession } from "./sqlite-session.ts";

export function rowSession(session: SqliteSession, isStored = false): RowSession {
  const rowsOf = (rows: Rows): Rows => (isStored ? session.connection.storedRows : rows);
  return {
    // One snapshot for all statements, also while another process writes.
    read: (what, body) =>
      session.read(what, (sql, rows) => {
        sql.beginReading.run();
        try {
          return body(rowsOf(rows), session.clock.now());
        } finally {
          sql.rollback.run();
        }
      }),
    transact: (what, body) => session.transact(what, (tx) => body({ ...tx, rows: rowsOf(tx.rows) })),
    get stored() {
      return isStored ? this : rowSession(session, true);
    },
  };
}

const CHECKPOINT = ["checkpoint"] as const;
const VALUE = ["value"] as const;
const LAST = { backwards: true } as const;

/** One process writes at a time: the next numbers are read in the transaction. */
export const threadNumbers: ThreadNumbers = {
  reserve: () => Promise.resolve(nextNumbers),
};

function nextNumbers(rows: Rows): FirstNumbers {
  const checkpoint = rows.first("langgraph_checkpoints", [], CHECKPOINT, LAST)?.checkpoint ?? 0;
  const value = rows.first("langgraph_values", [], VALUE, LAST)?.value ?? 0;
  return { checkpoint: checkpoint + 1, value: value + 1 };
}
