// Erase: bytes that must go for good: here, at every peer that gets the log, and on carriers (F-31).
//
// erase.X1. The log says it first: from then on no site takes the bytes again. Then the bytes go from the home and the run from the store.
//   What stopped in between is finished by calling it again.
// erase.X2. Of a run its journals and the results of its pure steps go, with those of the runs that are deleted with it. Its claim, statement and run record stay, unless
//   they are named: they prove that there was a run, and the verdict about it is `erased`.
// erase.X3. A journal has no record of its own. The record that puts it comes with the one that erases it: who put a cell may erase it.
// erase.X4. A push that hands an erasure on removes the bytes from its carrier before the checkpoint that covers it: journals and
//   artifacts as files, lines of packs by writing the pack again.

import type { Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Carrier } from "../../carriers/index.ts";
import { MEMO_ANSWER_TYPE } from "../home/facts.ts";
import type { Home } from "../home/home.ts";
import type { Origin } from "../log/origin.ts";
import type { LogRecord } from "../log/record.ts";
import { artifactPath, journalPath, packPath, TILE_WIDTH } from "../log/tiles.ts";
import { appendOwn, seenIn, type NewRecord } from "./own-log.ts";
import { readRecords } from "./tile-files.ts";
import { statementFacts } from "./publish.ts";
import { copyLog } from "./take-own.ts";
import { readMemoAnswer } from "../work/memo-answer.ts";

export interface EraseRunOptions {
  /** Also its statement, claim and run record. */
  readonly withReceipts?: boolean;
}

export interface Erased {
  /** Cells that are erased now and were not before. */
  readonly cells: readonly string[];
  /** The run was in the store and was deleted, with its family. */
  readonly deleted: number;
}

/** Erases a run of this site, with the runs that are deleted with it (erase.X2). */
export async function eraseRun(
  store: Store,
  home: Home,
  key: SigningKey,
  id: string,
  options: EraseRunOptions = {},
): Promise<Erased> {
  const ids = await descendants(store, id);
  const keys = [...ids.flatMap((run) => keysOfRun(home, run, options)), ...answersOf(home, new Set(ids))];
  const cells = await eraseKeys(store, home, key, keys);
  const outcome = await store.forget(id);
  return { cells, deleted: outcome.status === "deleted" ? outcome.runs : 0 };
}

/** Erases contents and journals by their keys; returns the cells that were not erased before. */
export async function eraseKeys(
  store: Store,
  home: Home,
  key: SigningKey,
  keys: readonly string[],
): Promise<readonly string[]> {
  // What the store logged before must be in the home: it tells what is erased already.
  await copyLog(store, home, key);
  const cells = [...new Set(keys)].map((one) => `a:${one}`).filter((cell) => home.cell(cell)?.erased !== true);
  if (cells.length === 0) return [];
  // erase.X1
  await appendOwn(store, key, async ({ origin }) => ({
    records: cells.flatMap((cell): NewRecord[] => {
      const put: NewRecord = { body: { op: "put", k: cell.slice(2) } };
      const erase: NewRecord = { body: { op: "erase", x: cell } };
      // erase.X3
      return home.findPut(origin, cell.slice(2)) === undefined ? [put, erase] : [erase];
    }),
    seen: seenIn(home),
  }));
  await copyLog(store, home, key);
  return cells;
}

/** A run, its children and theirs. */
async function descendants(store: Store, id: string): Promise<readonly string[]> {
  const ids = new Set([id]);
  for (const parent of ids)
    for (let before: number | undefined; ;) {
      const page = await store.listRuns({ parent, limit: PAGE, ...(before !== undefined && { before }) });
      for (const run of page) ids.add(run.id);
      if (page.length < PAGE) break;
      before = page.at(-1)?.run;
    }
  return [...ids];
}

const PAGE = 500;

/** Of every generation, every end and every epoch of the log: a run that was retried has a statement and a journal of each end. */
function keysOfRun(home: Home, run: string, { withReceipts }: EraseRunOptions): readonly string[] {
  const found = ownOrigins(home).flatMap((origin) => home.findRuns({ origin, run }));
  const generations = new Set(found.map(({ generation }) => generation));
  const journals = [...generations].flatMap((generation) =>
    home.statements(run, generation).flatMap((key) => {
      const content = home.content(key);
      const facts = content && statementFacts(content);
      const isOwn = content !== undefined && ownOrigins(home).some((origin) => home.names(origin, content));
      if (facts === undefined || !isOwn) return [];
      return [facts.journal.root, ...(withReceipts === true ? [key, facts.claim] : [])];
    }),
  );
  return withReceipts === true ? [...journals, ...found.map(({ record }) => record)] : journals;
}

/** The results of pure steps that these runs executed. */
function answersOf(home: Home, runs: ReadonlySet<string>): readonly string[] {
  return ownOrigins(home).flatMap((origin) =>
    home.scan({ type: MEMO_ANSWER_TYPE, origin }).flatMap(({ key }) => {
      const content = home.content(key);
      const answer = content && readMemoAnswer(content);
      return answer !== undefined && runs.has(answer.run) ? [key] : [];
    }),
  );
}

function ownOrigins(home: Home): readonly Origin[] {
  return home.origins().flatMap(({ id, own }) => (own ? [id] : []));
}

// ── carriers ──

/** The keys that records of a log erase, from one number to another. */
export function erasedBetween(home: Home, origin: Origin, after: number, upTo: number): readonly string[] {
  return [...readRecords(home, origin, after, upTo)].flatMap(({ rec }) => {
    if (!rec.includes('"op":"erase"')) return [];
    const { x = "" } = JSON.parse(rec) as LogRecord;
    return x.startsWith("a:") ? [x.slice(2)] : [];
  });
}

/** erase.X4. Removes the files of these keys, and every pack with a line of them. Returns the tiles whose packs are to be written again. */
export async function removeErased(
  carrier: Carrier,
  origin: Origin,
  keys: readonly string[],
  size: number,
): Promise<readonly number[]> {
  if (carrier.remove === undefined) return [];
  const packed: string[] = [];
  for (const key of keys) {
    const journal = `${origin}/${journalPath(key)}`;
    const isJournal = (await carrier.get(journal)) !== undefined;
    if (isJournal) await carrier.remove(journal);
    else packed.push(key);
    await carrier.remove(`${origin}/${artifactPath(key)}`);
  }
  const tiles: number[] = [];
  // A line may be in the pack of another tile than the record: claims go with their statements.
  for (let tile = 0; packed.length > 0 && tile * TILE_WIDTH < size; tile += 1)
    if (await removePacks(carrier, origin, tile, packed)) tiles.push(tile);
  return tiles;
}

/** The packs of a tile, of all widths, that have a line of these keys. */
async function removePacks(carrier: Carrier, origin: Origin, tile: number, keys: readonly string[]): Promise<boolean> {
  const full = `${origin}/${packPath(tile)}`;
  const paths = [full];
  if (carrier.list !== undefined) for await (const path of carrier.list(`${full}.p/`)) paths.push(path);
  let isRemoved = false;
  for (const path of paths) {
    const file = await carrier.get(path);
    if (file === undefined || file === "unchanged") continue;
    const text = Buffer.from(file.bytes).toString("utf8");
    if (!keys.some((key) => text.includes(key))) continue;
    await carrier.remove!(path);
    isRemoved = true;
  }
  return isRemoved;
}
