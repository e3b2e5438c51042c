// Row session: a SQLite session as the rules use it.

import type { RowSession } from "../rows/rows.ts";
import type { SqliteSession } from "./sqlite-session.ts";

export function rowSession(session: SqliteSession): RowSession {
  return {
    read: (what, body) => session.read(what, (_sql, rows) => body(rows)),
    transact: (what, body) => session.transact(what, body),
  };
}
