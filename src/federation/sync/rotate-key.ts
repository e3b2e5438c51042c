// Rotate key: the log names the next key under a checkpoint of the key before (key-history.H2).
//
// rotate-key.K1. The record is appended first, and signed with the current key afterwards. A rotation that stopped in between is finished
//   by calling it again with the same two keys.

import { invariant } from "../../base/index.ts";
import type { Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Home } from "../home/home.ts";
import type { LogRecord } from "../log/record.ts";
import { appendOwn, readOwnEnd } from "./own-log.ts";
import { copyLog } from "./take-own.ts";

const PAGE = 1_000;

/** Makes `next` the key of the log; returns the number of the record that names it. The caller keeps `next` safe before it calls. */
export async function rotateKey(store: Store, home: Home, current: SigningKey, next: SigningKey): Promise<number> {
  const { origin } = await readOwnEnd(store, current);
  const { vkey } = next.forOrigin(origin);
  const named = (): number | undefined =>
    home.origin(origin) && home.keys(origin).terms.find(({ n, key }) => n > 0 && key.vkey === vkey)?.n;
  const before = named();
  if (before !== undefined) return before;
  await copyLog(store, home, current, { stopAtKey: true });
  const finished = named();
  if (finished !== undefined) return finished;
  const signed = home.origin(origin)?.size ?? 0;
  await appendOwn(store, current, async ({ rows, size }) => {
    const isNamed = (await findKeyRecord(store, rows - size + signed, vkey)) !== undefined;
    return { records: isNamed ? [] : [{ body: { op: "key", v: vkey } }] };
  });
  // rotate-key.K1
  await copyLog(store, home, current, { stopAtKey: true });
  const n = named();
  invariant(n !== undefined, "rotate-key.K1: the record of the next key is signed");
  return n;
}

/** The number of the row after `after` that names a key. */
async function findKeyRecord(store: Store, after: number, vkey: string): Promise<number | undefined> {
  for (let at = after; ;) {
    const rows = await store.readLog(at, PAGE);
    for (const { n, rec } of rows) if ((JSON.parse(rec) as LogRecord).v === vkey) return n;
    if (rows.length < PAGE) return undefined;
    at = rows.at(-1)!.n;
  }
}
