// Row session: a remote session as the rules use it.

import type { RowSession } from "../rows/rows.ts";
import type { ThreadNumbers } from "../rules/threads.ts";
import { rulesWork } from "./rules-work.ts";
import type { RemoteSession } from "./session.ts";

export function rowSession(session: Pick<RemoteSession, "reader" | "runner" | "now">, isStored = false): RowSession {
  return {
    read: (what, body) => session.reader.withRows(what, (rows) => body(rows, session.now()), isStored),
    transact: (what, body) => session.runner.run({ ...rulesWork(what, body), isStored }),
    get stored() {
      return isStored ? this : rowSession(session, true);
    },
  };
}

/** Numbers are reserved before the transaction (number-allocator.N1). */
export function threadNumbers(session: RemoteSession): ThreadNumbers {
  const checkpoints = session.numbers("checkpoints");
  const values = session.numbers("values");
  return {
    async reserve(count) {
      const { next: value } = await values.take(count);
      const { next: checkpoint } = await checkpoints.take(1);
      return () => ({ checkpoint, value });
    },
  };
}
