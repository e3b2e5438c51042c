// Rekey: every payload is read and written anew with today's codec, some megabytes per transaction, while work goes on.
//
// The text stays what it was, and with it every mark and every chain.

import type { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import type { Rekeyed } from "../../kernel/index.ts";
import { breathe } from "./patience.ts";
import { forgetOtherCodecs, type PayloadBorder } from "./payload-border.ts";
import { COLUMNS, type PayloadColumn, type PayloadField } from "./payload-columns.ts";
import type { Session } from "./session.ts";

const ROWS = 500;
const BYTES = 4_000_000;

export async function rekey(
  session: Session,
  onProgress: (done: number, total: number) => void = () => undefined,
): Promise<Rekeyed> {
  const border = await session.read("Rekeying", () => session.connection.border);
  if (border === undefined)
    throw new RepriseError("BAD_OPTIONS", "There is nothing to write payloads with: open the store with a `codec`.");
  if (!border.isOpen) border.refuse();
  border.unreadable = 0;
  const fields = Object.keys(COLUMNS) as PayloadField[];
  const total = await session.read("Rekeying", () =>
    fields.reduce((sum, field) => sum + countOf(session.connection.db, COLUMNS[field]), 0),
  );
  let payloads = 0;
  for (const field of fields)
    for await (const done of rewritten(session, field)) {
      payloads += done;
      onProgress(Math.min(payloads, total), total);
      await breathe(session.options);
    }
  const { unreadable } = border;
  if (unreadable === 0) await finish(session, border);
  return { payloads: payloads - unreadable, unreadable };
}

/** The old keys are not needed any more, and nothing of the old bytes is left in the log. */
async function finish(session: Session, border: PayloadBorder): Promise<void> {
  await session.transact("Rekeying", () => forgetOtherCodecs(session.connection.db, border));
  await session.read("Rekeying", () => session.connection.db.exec("pragma wal_checkpoint(truncate)"));
}

async function* rewritten(session: Session, field: PayloadField): AsyncGenerator<number> {
  const column: PayloadColumn = COLUMNS[field];
  const keys = column.key.join(", ");
  const marks = column.key.map(() => "?").join(", ");
  const next = `select ${keys}, length(${column.column}) as bytes from ${column.table}
    where ${column.column} is not null and (${keys}) > (${marks}) order by ${keys} limit ${ROWS}`;
  const update = `update ${column.table}
    set ${column.column} = reprise_reseal(${column.column}, ${column.run}, ${column.place}, '${field}')
    where (${keys}) = (${marks})`;
  // Numbers and texts both sort after this.
  let last: readonly (number | string)[] = column.key.map(() => Number.MIN_SAFE_INTEGER);
  for (;;) {
    const rows = await session.transact("Rekeying", () => {
      const { db } = session.connection;
      // What the old bytes leave behind in the file is overwritten.
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

/** As many rows as one transaction should rewrite, and at least one. */
function atMost(rows: readonly Row[]): readonly Row[] {
  let bytes = 0;
  const end = rows.findIndex((row, index) => (bytes += Number(row["bytes"])) > BYTES && index > 0);
  return end === -1 ? rows : rows.slice(0, end);
}

function countOf(db: DatabaseSync, { table, column }: PayloadColumn): number {
  const row = db.prepare(`select count(*) as count from ${table} where ${column} is not null`).get();
  return (row as { count: number }).count;
}
