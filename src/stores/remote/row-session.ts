// Row session: a remote session as the rules use it.

import type { RowSession } from "../rows/rows.ts";
import { rulesWork } from "./rules-work.ts";
import type { RemoteSession } from "./session.ts";

export function rowSession(session: Pick<RemoteSession, "reader" | "runner">): RowSession {
  return {
    read: (what, body) => session.reader.withRows(what, body),
    transact: (what, body) => session.runner.run(rulesWork(what, body)),
  };
}
