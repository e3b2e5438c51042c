// Rekey: reads every payload and writes it with the current codec, some rows per transaction, while workers run. The decoded text
// does not change, so neither does any mark or hash chain.

import { RepriseError, unreadableReason } from "../../base/index.ts";
import type { OnProgress, Rekeyed, RunNumber } from "../../kernel/index.ts";
import { CODEC_KEY_PREFIX, type PayloadCipher } from "../payload-cipher.ts";
import { PAYLOAD_COLUMNS } from "./encode-payloads.ts";
import { readCodecNotes } from "./describe.ts";
import { pagesOf } from "./pages.ts";
import type { Reader } from "./reader.ts";
import type { TransactionRunner } from "./runner.ts";
import { rulesWork } from "./rules-work.ts";
import { keyColumns, type AnyRow, type RowOf, type TableName, type Value } from "../rows/tables.ts";
import type { WorkingSet } from "./working-set.ts";

const ROWS = 200;
const WHAT = "Rekeying";

export async function rekey(
  runner: TransactionRunner,
  reader: Reader,
  cipher: PayloadCipher | undefined,
  onProgress: OnProgress = () => undefined,
): Promise<Rekeyed> {
  if (cipher === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      "Rekeying needs a codec to write payloads with, and the store was opened without one. Pass `codec`.",
    );
  if (!cipher.isUnlocked) cipher.refuse();
  const counts = await reader.read(
    WHAT,
    [...PAYLOAD_COLUMNS].map(([table, column]) => ({ kind: "count", table, where: [{ column, is: "not null" }] })),
  );
  const total = counts.reduce((sum, [row]) => sum + Number(row!["count"]), 0);
  let payloads = 0;
  let unreadable = 0;
  for (const [table, column] of PAYLOAD_COLUMNS)
    for await (const page of pagesOf(async (query) => (await reader.read(WHAT, [query]))[0]!, table, ROWS)) {
      const rows = (page as readonly AnyRow[]).filter((row) => row[column] !== null);
      if (rows.length === 0) continue;
      const done = await runner.run(rulesWork(WHAT, (_tx, ws) => rewrite(ws, table, column, rows)));
      payloads += done.payloads;
      unreadable += done.unreadable;
      onProgress(Math.min(payloads + unreadable, total), total);
    }
  if (unreadable === 0) await forgetOthers(runner, reader, cipher);
  return { payloads, unreadable };
}

/** Under the locks of their runs, so that no other transaction changes them meanwhile. */
function rewrite(ws: WorkingSet, table: TableName, column: string, rows: readonly AnyRow[]): Rekeyed {
  const keys = rows.map((row) => keyColumns(table).map((name) => row[name]!));
  const isOfRuns = keyColumns(table)[0] === "run";
  if (isOfRuns) {
    const runs = [...new Set(keys.map(([run]) => run as RunNumber))].toSorted((a, b) => a - b);
    ws.require(() =>
      ws.prefetchRows(
        "runs",
        "update",
        runs.map((run) => [run]),
      ),
    );
  }
  const lock = isOfRuns && table !== "runs" ? "none" : "update";
  ws.require(() => ws.prefetchRows(table, lock, keys));
  let payloads = 0;
  let unreadable = 0;
  for (const key of keys) {
    const row = ws.get(table, lock, ...(key as Value[])) as AnyRow | undefined;
    const text = row?.[column];
    if (typeof text !== "string") continue;
    if (unreadableReason(text) !== undefined) unreadable += 1;
    else {
      ws.update(table, row as never, { [column]: text } as never);
      payloads += 1;
    }
  }
  return { payloads, unreadable };
}

/** Deletes the probes of old codecs: their keys are not needed any more. */
async function forgetOthers(runner: TransactionRunner, reader: Reader, cipher: PayloadCipher): Promise<void> {
  const others = (await readCodecNotes(reader)).filter(({ name }) => name !== cipher.codec.name);
  await runner.run(
    rulesWork(WHAT, (_tx, ws) => {
      for (const { name } of others) {
        const row = ws.get("meta", "update", CODEC_KEY_PREFIX + name) as RowOf<"meta"> | undefined;
        if (row !== undefined) ws.remove("meta", row);
      }
    }),
  );
}
