// Row session: rows of a remote store for rules that are not part of a list of writes.

import type { RowSession } from "../rows/rows.ts";
import type { ThreadNumbers } from "../rules/threads.ts";
import { rulesWork } from "./rules-work.ts";
import type { RemoteSession } from "./session.ts";

export function rowSession({ reader, runner }: RemoteSession): RowSession {
  return {
    read: (what, body) => reader.withRows(what, body),
    transact: (what, body) => runner.run(rulesWork(what, (tx) => body(tx))),
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
