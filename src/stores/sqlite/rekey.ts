// Rekey: decodes every payload and encodes it with the current codec, some megabytes per transaction, while workers run.
//
// The texts do not change, so every mark and every chain stays valid.

import type { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import type { Rekeyed } from "../../kernel/index.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import { deleteOtherCodecProbes, type SqlitePayloadCipher } from "./sqlite-payload-cipher.ts";
import { COLUMNS, type PayloadColumn, type PayloadField } from "./payload-columns.ts";
import type { SqliteSession } from "./sqlite-session.ts";

const ROWS = 500;
const BYTES = 4_000_000;

export async function rekey(
  session: SqliteSession,
  onProgress: (done: number, total: number) => void = () => undefined,
): Promise<Rekeyed> {
  const cipher = await session.read("Rekeying", () => session.connection.cipher);
  if (cipher === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      "Rekeying needs a codec, and the store was opened without one. Pass `codec`, or --codec to the command.",
    );
  if (!cipher.isUnlocked) cipher.refuse();
  cipher.unreadable = 0;
  const fields = Object.keys(COLUMNS) as PayloadField[];
  const total = await session.read("Rekeying", () =>
    fields.reduce((sum, field) => sum + countOf(session.connection.db, COLUMNS[field]), 0),
  );
  let payloads = 0;
  for (const field of fields)
    for await (const done of rewritten(session, field)) {
      payloads += done;
      onProgress(Math.min(payloads, total), total);
      await yieldToEventLoop(session.options);
    }
  const { unreadable } = cipher;
  if (unreadable === 0) await finish(session, cipher);
  return { payloads: payloads - unreadable, unreadable };
}

/** After this the old keys are no longer needed, and the log holds none of the old bytes. */
async function finish(session: SqliteSession, cipher: SqlitePayloadCipher): Promise<void> {
  await session.transact("Rekeying", () => deleteOtherCodecProbes(session.connection.db, cipher));
  await session.read("Rekeying", () => session.connection.db.exec("pragma wal_checkpoint(truncate)"));
}

async function* rewritten(session: SqliteSession, field: PayloadField): AsyncGenerator<number> {
  const column: PayloadColumn = COLUMNS[field];
  const keys = column.key.join(", ");
  const marks = column.key.map(() => "?").join(", ");
  const next = `select ${keys}, length(${column.column}) as bytes from ${column.table}
    where ${column.column} is not null and (${keys}) > (${marks}) order by ${keys} limit ${ROWS}`;
  const update = `update ${column.table}
    set ${column.column} = reprise_reencode(${column.column}, ${column.run}, ${column.place}, '${field}')
    where (${keys}) = (${marks})`;
  // Numbers and texts both sort after this.
  let last: readonly (number | string)[] = column.key.map(() => Number.MIN_SAFE_INTEGER);
  for (;;) {
    const rows = await session.transact("Rekeying", () => {
      const { db } = session.connection;
      // SQLite overwrites the old bytes in the file with zeros.
      db.exec("pragma secure_delete = on");
      try {
        const found = atMost(db.prepare(next).all(...last) as Row[]);
        const statement = db.prepare(update);
        for (const row of found) statement.run(...keyOf(row, column));
        return found;
      } finally {
        db.exec("pragma secure_delete = off");
      }
    });
    if (rows.length === 0) return;
    last = keyOf(rows.at(-1)!, column);
    yield rows.length;
  }
}

type Row = Readonly<Record<string, number | string>>;

function keyOf(row: Row, { key }: PayloadColumn): readonly (number | string)[] {
  return key.map((name) => row[name]!);
}

/** The rows that one transaction rewrites: at least one. */
function atMost(rows: readonly Row[]): readonly Row[] {
  let bytes = 0;
  const end = rows.findIndex((row, index) => (bytes += Number(row["bytes"])) > BYTES && index > 0);
  return end === -1 ? rows : rows.slice(0, end);
}

function countOf(db: DatabaseSync, { table, column }: PayloadColumn): number {
  const row = db.prepare(`select count(*) as count from ${table} where ${column} is not null`).get();
  return (row as { count: number }).count;
}
