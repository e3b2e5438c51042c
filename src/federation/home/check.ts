// Check: reads a whole home and names every row that is not what it should be.
//
// check.K1. Logs: records are dense and valid, and have the roots that their checkpoints say. Contents: each has its key. Cells: each is
//   the join of its visible records.

import { RepriseError, sha256Hex } from "../../base/index.ts";
import { LogTree } from "../log/log-tree.ts";
import { parseRecord } from "../log/record.ts";
import type { Cell } from "../log/cell.ts";
import { hexOf } from "./blobs.ts";
import { isContentOfItsKey } from "./contents.ts";
import type { HomeParts } from "./home-parts.ts";
import { checkJournal } from "./journals.ts";
import type { OriginRow } from "./origins.ts";

export interface HomeProblem {
  /** What is damaged: an origin and a number, a key, a root or a cell. */
  readonly place: string;
  readonly problem: string;
}

/** check.K1 */
export function* checkHome(parts: HomeParts): Generator<HomeProblem> {
  for (const row of parts.origins.list()) yield* checkLog(parts, row);
  yield* checkContents(parts);
  yield* checkCells(parts);
}

function* checkLog({ db, log, origins }: HomeParts, row: OriginRow): Generator<HomeProblem> {
  const { number, id, size, root, status } = row;
  const notes = db.all("select size, root, note from checkpoint where origin = ? order by size", number);
  const last = Number(db.get("select max(n) as n from log where origin = ?", number)?.["n"] ?? 0);
  // What is quarantined may be signed by keys that are not those of this log any more.
  const stored = status === "forked" ? size : last;
  const tree = LogTree.empty();
  let after = 0;
  const keys = origins.keys(row);
  const place = (n: number): string => `${id} ${n}`;
  for (const { n, rec } of pages(log, number, stored)) {
    const expected = { origin: id, n: tree.size + 1, after, clockOf: () => undefined };
    try {
      after = parseRecord(rec, expected).c;
    } catch (error) {
      // A clock cannot be compared with those of other origins here.
      if (!(error instanceof RepriseError)) throw error;
      yield { place: place(n), problem: error.message };
      return;
    }
    tree.append(rec);
    for (; notes[0] !== undefined && notes[0]["size"] === tree.size; notes.shift()) {
      const { root: said, note } = notes[0];
      const own = tree.root();
      if (own.toString("hex") !== said)
        yield { place: place(n), problem: "the records do not have the root of their checkpoint" };
      try {
        if (keys.open(String(note)).root !== own.toString("base64"))
          yield { place: place(n), problem: "the note has another root than the records" };
      } catch (error) {
        if (!(error instanceof RepriseError)) throw error;
        yield { place: place(n), problem: error.message };
      }
    }
    if (tree.size === size && tree.root().toString("hex") !== root)
      yield { place: place(n), problem: "the visible records do not have the root of their log" };
  }
  if (tree.size < size) yield { place: place(tree.size + 1), problem: `the record is missing; the log has ${size}` };
}

function* pages(
  log: HomeParts["log"],
  number: number,
  stored: number,
): Generator<{ readonly n: number; readonly rec: string }> {
  for (let after = 0; after < stored;) {
    const page = log.read(number, after, stored, PAGE);
    yield* page;
    after = page.at(-1)!.n;
  }
}

const PAGE = 1_000;

function* checkContents({ contents: { shards } }: HomeParts): Generator<HomeProblem> {
  for (const index of shards.indexes()) {
    const shard = shards.at(index);
    for (const { key } of shard.all("select key from artifact where state = 0")) {
      const row = shard.get("select type, size, bytes from artifact where key = ?", key as Uint8Array);
      if (row === undefined) continue;
      const bytes = row["bytes"] as Uint8Array | null;
      const content = { key: hexOf(key), type: String(row["type"]), bytes: bytes ?? Buffer.alloc(0) };
      const fits = bytes !== null && bytes.length === row["size"] && isContentOfItsKey(content);
      if (!fits || shards.indexOf(content.key) !== index)
        yield { place: content.key, problem: "the content does not have its key" };
    }
    for (const { root, sum, bytes } of shard.all("select root, sum, bytes from journal where state = 0")) {
      const lines = (bytes ?? Buffer.alloc(0)) as Uint8Array;
      if (sha256Hex(lines) !== hexOf(sum) || !isJournalOf(hexOf(root), lines))
        yield { place: hexOf(root), problem: "the journal does not have its root" };
    }
  }
}

function isJournalOf(root: string, lines: Uint8Array): boolean {
  try {
    checkJournal(root, lines);
    return true;
  } catch (error) {
    if (error instanceof RepriseError) return false;
    throw error;
  }
}

function* checkCells({ cells, log }: HomeParts): Generator<HomeProblem> {
  const kept = cells.all();
  const joined = cells.allAt(log.visibleBounds());
  let a = kept.next();
  let b = joined.next();
  while (a.done !== true || b.done !== true) {
    const left = a.done === true ? undefined : a.value;
    const right = b.done === true ? undefined : b.value;
    const id = left === undefined || (right !== undefined && right[0] < left[0]) ? right![0] : left[0];
    const [own, should] = [left?.[0] === id ? left : undefined, right?.[0] === id ? right : undefined];
    if (textOf(own) !== textOf(should)) yield { place: id, problem: "the cell is not the join of its records" };
    if (own !== undefined) a = kept.next();
    if (should !== undefined) b = joined.next();
  }
}

function textOf(one: readonly [string, Cell] | undefined): string {
  return one === undefined ? "" : JSON.stringify([one[1].add ?? null, one[1].tomb ?? null, one[1].erased]);
}
