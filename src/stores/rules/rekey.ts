// Rekey: decodes every payload and encodes it with the current codec, some megabytes per transaction, while workers run.
//
// rekey.K1. The texts do not change, so every mark and every chain stays valid.
// rekey.K2. A payload that cannot be decoded stays as it is, and so do the probes of all codecs: its key is still required.
// rekey.K3. Rows are rewritten under the lock of their run, or under their own in tables without runs: no other transaction
//   changes them meanwhile.
// rekey.K4. References and contents are rewritten each by itself: a payload is not assembled, and shares what it shared before.

import { RepriseError, unreadableReason } from "../../base/index.ts";
import type { OnProgress, Rekeyed } from "../../kernel/index.ts";
import { CODEC_KEY_PREFIX, CODEC_KEYS_END, type PayloadCipher } from "../payload-cipher.ts";
import { reencodeSecret } from "./memo.ts";
import type { AnyFilter } from "../rows/indexes.ts";
import type { AnyRows, Key, Rows, RowSession } from "../rows/rows.ts";
import { keyColumns, PAYLOADS, type TableName } from "../rows/tables.ts";

const WHAT = "Rekeying";
/** Rows per transaction: the first one, and at most. */
const FIRST_ROWS = 25;
const MAX_ROWS = 500;
/** Characters of text per transaction; one payload may be longer. */
const MAX_TEXT = 4_000_000;

/** A table with payloads. The lists are kept, because a store finds its statements by them. */
interface PayloadTable {
  readonly table: TableName;
  readonly column: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
  readonly hasPayload: AnyFilter;
}

const PAYLOAD_TABLES: readonly PayloadTable[] = (Object.keys(PAYLOADS) as TableName[]).map((table) => {
  const { column } = PAYLOADS[table]!;
  return { table, column, columns: [column], key: keyColumns(table), hasPayload: { [column]: { not: null } } };
});

/** Rewrites the contents that are outside of the store; undefined: there are none. */
export type RekeyOutside = () => Promise<Rekeyed> | undefined;

export async function rekey(
  { stored: session }: RowSession,
  cipher: PayloadCipher | undefined,
  onProgress: OnProgress = () => undefined,
  outside: RekeyOutside = () => undefined,
): Promise<Rekeyed> {
  if (cipher === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      "Rekeying needs a codec, and the store was opened without one. Pass `codec`, or --codec to the command.",
    );
  if (!cipher.isUnlocked) cipher.refuse();
  const total = await session.read(WHAT, countPayloads);
  let { payloads, unreadable } = (await outside()) ?? { payloads: 0, unreadable: 0 };
  for (const table of PAYLOAD_TABLES)
    for await (const page of rewritePages(session, table)) {
      payloads += page.payloads;
      unreadable += page.unreadable;
      onProgress(Math.min(payloads + unreadable, total), total);
    }
  if (unreadable === 0)
    await session.transact(WHAT, ({ rows }) => {
      reencodeSecret(rows, cipher);
      deleteOtherProbes(rows, cipher);
    });
  return { payloads, unreadable };
}

function countPayloads(rows: AnyRows): number {
  return PAYLOAD_TABLES.reduce((sum, { table, hasPayload }) => sum + rows.count(table, [], undefined, hasPayload), 0);
}

interface Page extends Rekeyed {
  readonly rows: number;
}

/** The keys are read first, without their payloads where the store can: a transaction then stops at its size. */
async function* rewritePages(session: RowSession, table: PayloadTable): AsyncGenerator<Page> {
  let last: Key | undefined;
  for (let limit = FIRST_ROWS; ;) {
    const keys = await session.read(WHAT, (rows) => nextKeys(rows, table, last, limit));
    if (keys.length === 0) return;
    const page = await session.transact(WHAT, ({ rows }) => rewrite(rows, table, keys));
    yield page;
    if (page.rows === keys.length && keys.length < limit) return;
    last = keys[page.rows - 1];
    limit = page.rows < keys.length ? page.rows : Math.min(limit * 2, MAX_ROWS);
  }
}

/** The keys of the next rows with a payload, in the order of the primary key. */
function nextKeys(rows: AnyRows, of: PayloadTable, last: Key | undefined, limit: number): Key[] {
  const { table, key, hasPayload: also } = of;
  const keyOf = (row: Readonly<Record<string, number | string | null>>): Key => key.map((name) => row[name] ?? 0);
  if (last === undefined) return rows.select(table, [], key, { limit, also }).map(keyOf);
  const keys: Key[] = [];
  // Rows that share all but the last column of the last key, then fewer: each is a range of the primary key.
  for (let same = key.length - 1; same >= 0 && keys.length < limit && !rows.isGuess; same -= 1) {
    const span = { after: last[same], limit: limit - keys.length, also };
    keys.push(...rows.select(table, last.slice(0, same), key, span).map(keyOf));
  }
  return keys;
}

/** rekey.K3 */
function rewrite(rows: AnyRows, { table, column, columns, key }: PayloadTable, keys: readonly Key[]): Page {
  for (const one of keys) {
    if (key[0] === "run") rows.own("runs", one.slice(0, 1));
    else rows.own(table, one);
  }
  rows.barrier();
  let [payloads, unreadable, length] = [0, 0, 0];
  for (const [index, one] of keys.entries()) {
    const text = rows.get(table, one, columns)?.[column];
    if (typeof text !== "string") continue;
    length += text.length;
    if (length > MAX_TEXT && index > 0) return { payloads, unreadable, rows: index };
    // rekey.K2
    if (unreadableReason(text) !== undefined) unreadable += 1;
    else {
      rows.set(table, one, { [column]: text });
      payloads += 1;
    }
  }
  return { payloads, unreadable, rows: keys.length };
}

const PROBE_COLUMNS = ["key"] as const;

/** The keys of other codecs are no longer needed. */
function deleteOtherProbes(rows: Rows, cipher: PayloadCipher): void {
  const probes = rows.select("meta", [], PROBE_COLUMNS, { after: CODEC_KEY_PREFIX, before: CODEC_KEYS_END });
  for (const { key } of probes) if (key !== CODEC_KEY_PREFIX + cipher.codec.name) rows.drop("meta", [key]);
}
