// Erase run: what a person asks for: a run of this site, or one content, goes for good (sync/erase.ts), and a link says why.
//
// erase-run.E1. A run that has not ended is refused, and so is a child, which goes with its parent.
// erase-run.E2. The reason is a link of the type `erased` from what was erased. The log has its key; its text goes to those who may have it.

import { mediaType, RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord, type Store } from "../kernel/index.ts";
import type { SigningKey } from "../receipts/index.ts";
import type { EraseReport } from "./api.ts";
import type { Home } from "./home/home.ts";
import { contentOf } from "./log/content.ts";
import { linkText, MAX_LINK_ENDS, slotOf, type Link } from "./log/link.ts";
import { eraseKeys, eraseRun } from "./sync/erase.ts";
import { appendOwn } from "./sync/own-log.ts";

export interface EraseParts {
  readonly store: Store;
  readonly home: Home;
  readonly key: SigningKey;
}

const KEY = /^[0-9a-f]{64}$/;

/** Logs the erasure; the caller brings the log into the home and hands it out. */
export async function erase(
  { store, home, key }: EraseParts,
  what: string,
  { reason, all = false }: { readonly reason: string; readonly all?: boolean },
): Promise<EraseReport> {
  if (KEY.test(what)) {
    const cells = await eraseKeys(store, home, key, [what]);
    await explain({ store, home, key }, cells, reason);
    return { cells, runs: 0 };
  }
  const known = await store.findRun(what);
  if (known === undefined && home.findRuns({ run: what }).length === 0)
    throw new RepriseError(
      "RUN_NOT_FOUND",
      `There is no run ${what} in this store, and its log publishes none. Name a run of this site, or the key of a content.`,
    );
  if (known !== undefined) refuseUnended(known);
  const { cells, deleted } = await eraseRun(store, home, key, what, { withReceipts: all });
  await explain({ store, home, key }, cells, reason);
  return { cells, runs: deleted };
}

/** erase-run.E1 */
function refuseUnended({ id, status, parent }: RunRecord): void {
  if (parent !== undefined)
    throw new RepriseError("USAGE", `Run ${id} is a child: it is erased with its parent. Erase that one.`);
  if (!hasEnded(status))
    throw new RepriseError("USAGE", `Run ${id} is ${status}. End it first: \`reprise terminate ${id}\`.`);
}

/** erase-run.E2 */
async function explain({ store, home, key }: EraseParts, cells: readonly string[], reason: string): Promise<void> {
  for (let at = 0; at < cells.length; at += MAX_LINK_ENDS) {
    const from = cells.slice(at, at + MAX_LINK_ENDS).map((cell) => cell.slice(2));
    const link: Link = { type: "erased", from, to: [], data: { reason }, v: 1 };
    const content = contentOf(mediaType("link"), linkText(link));
    home.putContents([content]);
    await appendOwn(store, key, async () => ({ records: [{ body: { op: "put", k: content.key, s: slotOf(link) } }] }));
  }
}
