// Memo: the rows of the results of pure steps (kernel/memo.ts).
//
// A row is inserted without a look at others of its key: transactions that write the same key at the same time do not wait for each
// other, and every reader of the key finds a divergence (memo.M3). A worker reads the key before it executes, so a known key gets no
// more rows.

import type { Random } from "../../base/index.ts";
import {
  judgeMemo,
  type MemoAnswer,
  type MemoFilter,
  type MemoGroup,
  type MemoKeys,
  type MemoPage,
  type MemoRecord,
  type NewMemo,
  type RunNumber,
} from "../../kernel/index.ts";
import type { PayloadCipher } from "../payload-cipher.ts";
import type { Part, Rows, RowSession } from "../rows/rows.ts";

/** `entry`: the entry that the row is written with. */
export function insertMemo(rows: Rows, run: RunNumber, entry: number, { seq = entry, memo, value, by }: NewMemo): void {
  rows.insert("memo", { run, seq, memo, value, by });
}

const VALUE = ["value"] as const;

export function readMemos(rows: Rows, keys: readonly string[]): readonly (MemoAnswer | undefined)[] {
  return keys.map((key) => {
    const found = rows.select("memo_by_key", [key], VALUE);
    // Most keys have no row or one.
    if (found.length === 0) return undefined;
    return judgeMemo(found.map(({ value }) => value));
  });
}

// ── for people ──

const MEMO = ["run", "seq", "memo", "value", "by"] as const;
const RUN = ["id", "definition"] as const;
const ENTRY = ["type", "command", "data"] as const;

type MemoRow = Part<"memo", (typeof MEMO)[number]>;

/** Less than every key: with a bound, every database walks the index. */
const NO_KEY = "";

export function listMemos(rows: Rows, { after = NO_KEY, limit, off = false, run }: MemoFilter): MemoPage {
  if (run !== undefined) return memosOf(rows, run, limit);
  const read = rows.select("memo_by_key", [], MEMO, { after, limit });
  const byKey = Map.groupBy(read, ({ memo }) => memo);
  // The next page has all rows of a key that this one may have cut off.
  if (read.length >= limit && byKey.size > 1) byKey.delete(read.at(-1)!.memo);
  const groups = [...byKey].map(([memo, found]) => ({ memo, found, status: judgeMemo(valuesOf(found))!.status }));
  const wanted = off ? groups.filter(({ status }) => status !== "known") : groups;
  const recorded = wanted.map(({ memo, found, status }): MemoGroup => ({ memo, status, rows: recordsOf(rows, found) }));
  return { groups: recorded, next: read.length < limit ? undefined : [...byKey.keys()].at(-1) };
}

/** Judged by the rows of the run alone. */
function memosOf(rows: Rows, run: RunNumber, limit: number): MemoPage {
  const byKey = Map.groupBy(rows.select("memo", [run], MEMO, { limit }), ({ memo }) => memo);
  const groups = [...byKey].map(([memo, found]) => ({
    memo,
    status: judgeMemo(valuesOf(found))!.status,
    rows: recordsOf(rows, found),
  }));
  return { groups, next: undefined };
}

function valuesOf(found: readonly MemoRow[]): readonly string[] {
  return found.map(({ value }) => value);
}

/** Without rows of runs that are being deleted. */
function recordsOf(rows: Rows, found: readonly MemoRow[]): readonly MemoRecord[] {
  return found
    .map((row) => ({
      row,
      of: rows.get("runs", [row.run], RUN),
      entry: rows.get("journal", [row.run, row.seq], ENTRY),
    }))
    .flatMap(({ row, of, entry }) =>
      of === undefined || entry === undefined ? [] : [{ ...row, runId: of.id, definition: of.definition, entry }],
    );
}

const WHAT = "Clearing the memo";
const PLACE = ["run", "seq", "memo"] as const;
/** Rows per transaction. */
const PAGE = 500;

export async function clearMemos(session: RowSession, keys: readonly string[] | "all"): Promise<number> {
  let count = 0;
  for (const key of keys === "all" ? [undefined] : keys) {
    const [prefix, span] = key === undefined ? [[], { after: NO_KEY, limit: PAGE }] : [[key], { limit: PAGE }];
    for (;;) {
      const found = await session.read(WHAT, (rows) => rows.select("memo_by_key", prefix, PLACE, span));
      if (found.length === 0) break;
      await session.transact(WHAT, ({ rows }) => deleteMemos(rows, found));
      count += found.length;
    }
  }
  return count;
}

/** Under the locks of the runs, as everything that belongs to a run changes. */
function deleteMemos(rows: Rows, found: readonly Part<"memo", (typeof PLACE)[number]>[]): void {
  const runs = [...new Set(found.map(({ run }) => run))].toSorted((a, b) => a - b);
  for (const run of runs) rows.own("runs", [run]);
  rows.barrier();
  for (const { run, seq, memo } of found) rows.drop("memo", [run, seq, memo]);
}

// ── the secret (memo.M5) ──

const SECRET_KEY = "memo secret";
const SECRET_CONTEXT = { run: 0, field: "memo secret", place: "0" } as const;
const META = ["value"] as const;
const OPENING = "Opening the memo";

export async function openMemoKeys(
  session: RowSession,
  cipher: PayloadCipher | undefined,
  random: Random,
): Promise<MemoKeys> {
  if (cipher === undefined) return { status: "plain" };
  if (!cipher.isUnlocked) return { status: "unavailable", reason: "The process has no codec." };
  const found = await session.read(OPENING, (rows) => rows.get("meta", [SECRET_KEY], META)?.value);
  const encoded = found ?? (await createSecret(session, cipher, random));
  try {
    return { status: "secret", secret: decodeSecret(cipher, encoded) };
  } catch (error) {
    return { status: "unavailable", reason: (error as Error).message };
  }
}

async function createSecret(session: RowSession, cipher: PayloadCipher, random: Random): Promise<string> {
  // Rows from before the codec have keys without a secret, from which inputs can be guessed.
  await clearMemos(session, "all");
  const value = encodeSecret(cipher, Buffer.from(random.bytes(32)).toString("hex"));
  return session.transact(OPENING, ({ rows }) => {
    if (rows.add("meta", { key: SECRET_KEY, value })) return value;
    return rows.get("meta", [SECRET_KEY], META)?.value ?? value;
  });
}

function encodeSecret(cipher: PayloadCipher, secret: string): string {
  return Buffer.from(cipher.encode(JSON.stringify(secret), SECRET_CONTEXT)).toString("base64");
}

function decodeSecret(cipher: PayloadCipher, encoded: string): string {
  return JSON.parse(cipher.decodeOrThrow(Buffer.from(encoded, "base64"), SECRET_CONTEXT)) as string;
}

/** Encrypts the secret with the current codec; one that cannot be read is replaced when it is needed. */
export function reencodeSecret(rows: Rows, cipher: PayloadCipher): void {
  const encoded = rows.get("meta", [SECRET_KEY], META)?.value;
  if (encoded === undefined) return;
  let secret: string;
  try {
    secret = decodeSecret(cipher, encoded);
  } catch {
    return rows.drop("meta", [SECRET_KEY]);
  }
  rows.set("meta", [SECRET_KEY], { value: encodeSecret(cipher, secret) });
}
