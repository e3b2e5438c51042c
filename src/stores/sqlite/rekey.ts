// Rekey: what only a SQLite file needs. SQLite overwrites the old bytes in the file with zeros, and at the end its log holds none
// of them.

import type { OnProgress, Rekeyed } from "../../kernel/index.ts";
import type { RowSession } from "../rows/rows.ts";
import { rekey, type RekeyOutside } from "../rules/rekey.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import { rowSession } from "./row-session.ts";
import type { SqliteSession } from "./sqlite-session.ts";

export async function rekeyFile(
  session: SqliteSession,
  onProgress?: OnProgress,
  outside?: RekeyOutside,
): Promise<Rekeyed> {
  const cipher = await session.read("Rekeying", () => session.connection.cipher);
  const rekeyed = await rekey(erasing(session), cipher, onProgress, outside);
  if (rekeyed.unreadable === 0)
    await session.read("Rekeying", () => session.connection.db.exec("pragma wal_checkpoint(truncate)"));
  return rekeyed;
}

function erasing(session: SqliteSession, isStored = false): RowSession {
  const plain = rowSession(session, isStored);
  return {
    get stored() {
      return isStored ? this : erasing(session, true);
    },
    read: (what, body) => plain.read(what, body),
    async transact(what, body) {
      const result = await plain.transact(what, (tx) => {
        const { db } = session.connection;
        db.exec("pragma secure_delete = on");
        try {
          return body(tx);
        } finally {
          db.exec("pragma secure_delete = off");
        }
      });
      await yieldToEventLoop(session.options);
      return result;
    },
  };
}
