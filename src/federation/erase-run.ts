// Erase run: deletes the contents of a run, or one content, for good (F-31).
//
// erase-run.E1. Of a run its journal goes, which holds every value; with `all` also claim, statement and run record. The records of the log
//   stay. A link of the type `erased` says why, to those who may have it.
// erase-run.E2. The log says it first, then the run is forgotten at home: repeated after a kill, it does the rest.
// erase-run.E3. A journal has no record of its own. The origin puts its root before it erases it: so other sites see whose it is.

import { mediaType, RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord, type Store } from "../kernel/index.ts";
import type { SigningKey } from "../receipts/index.ts";
import type { EraseReport } from "./api.ts";
import type { Home } from "./home/home.ts";
import { contentOf } from "./log/content.ts";
import { linkText, slotOf, type Link } from "./log/link.ts";
import { firstEpoch } from "./log/origin.ts";
import { appendOwn, type NewRecord } from "./sync/own-log.ts";
import { statementFacts } from "./sync/publish.ts";

export interface EraseParts {
  readonly store: Store;
  readonly home: Home;
  readonly key: SigningKey;
}

const KEY = /^[0-9a-f]{64}$/;

/** Logs the erasure; the caller brings the log into the home and hands it out. */
export async function erase(
  parts: EraseParts,
  what: string,
  { reason, all = false }: { readonly reason: string; readonly all?: boolean },
): Promise<EraseReport> {
  const { store, home, key } = parts;
  const run = KEY.test(what) ? undefined : what;
  const family = run === undefined ? [] : await readFamily(store, run);
  const keys = run === undefined ? [what] : family.flatMap((id) => keysOfRun(home, key, id, all));
  const known = run === undefined ? undefined : await store.findRun(run);
  if (run !== undefined && known === undefined && keys.length === 0)
    throw new RepriseError(
      "RUN_NOT_FOUND",
      `There is no run ${run} in this store, and its log publishes none. Name a run of this site, or the key of a content.`,
    );
  if (known !== undefined) refuseUnended(known);
  const cells = [...new Set(keys)].map((one) => `a:${one}`).filter((cell) => home.cell(cell)?.state !== "erased");
  if (cells.length > 0) await append(parts, cells, reason);
  // erase-run.E2
  const outcome = known === undefined ? undefined : await store.forget(known.id);
  return { cells, runs: outcome?.status === "deleted" ? outcome.runs : 0 };
}

function refuseUnended({ id, status, parent }: RunRecord): void {
  if (parent !== undefined)
    throw new RepriseError("USAGE", `Run ${id} is a child: it is erased with its parent. Erase the parent.`);
  if (!hasEnded(status))
    throw new RepriseError(
      "USAGE",
      `Run ${id} is ${status}. Cancel or terminate it first: \`reprise terminate ${id}\`.`,
    );
}

const PAGE = 200;

/** The run, its children, and theirs: they are forgotten together. */
async function readFamily(store: Store, run: string): Promise<readonly string[]> {
  const family = [run];
  for (const parent of family)
    for (let before: number | undefined; ;) {
      const page = await store.listRuns({ parent, ...(before !== undefined && { before }), limit: PAGE });
      for (const { id } of page) if (!family.includes(id)) family.push(id);
      if (page.length < PAGE) break;
      before = page.at(-1)?.run;
    }
  return family;
}

/** erase-run.E1 */
function keysOfRun(home: Home, { origin }: SigningKey, run: string, all: boolean): string[] {
  const own = firstEpoch(origin);
  const keys = home
    .findRuns({ run })
    .filter((found) => firstEpoch(found.origin) === own)
    .flatMap(({ statement, record }) => {
      const content = statement === undefined ? undefined : home.content(statement);
      const facts = content && statementFacts(content);
      if (facts === undefined || statement === undefined) return all ? [record] : [];
      return [facts.journal.root, ...(all ? [facts.claim, statement, record] : [])];
    });
  return [...new Set(keys)];
}

async function append({ store, home, key }: EraseParts, cells: readonly string[], reason: string): Promise<void> {
  const link: Link = { type: "erased", from: cells.map((cell) => cell.slice(2)), to: [], data: { reason }, v: 1 };
  const content = contentOf(mediaType("link"), linkText(link));
  home.putContents([content]);
  const records: NewRecord[] = [
    // erase-run.E3
    ...cells
      .filter((cell) => home.cell(cell) === undefined)
      .map((cell): NewRecord => ({ body: { op: "put", k: cell.slice(2) } })),
    ...cells.map((cell): NewRecord => ({ body: { op: "erase", x: cell } })),
    { body: { op: "put", k: content.key, s: slotOf(link) } },
  ];
  await appendOwn(store, key, async () => ({ records }));
}
