// Erasure: bytes that must go for good.
//
// erasure.E1. The state of a cell is `erased` when one record says so, by any origin: that depends on no trust. The bytes go when every
//   origin that put the cell has erased it, or when the record is by this site or by an origin with the grant `erase`. Otherwise a
//   conflict names it: an origin that puts the key of another one must not be able to erase what it did not make.
// erasure.E2. federation.db says first that a key is erased, then the bytes go from their shard. From the first on no reader gets them
//   and no writer brings them back; a process that was killed in between is continued by the next.

import type { Cell } from "../log/cell.ts";
import type { LogRecord } from "../log/record.ts";
import { cellBlob, hexOf, keyBlob } from "./blobs.ts";
import type { Conflicts } from "./conflicts.ts";
import type { Contents } from "./contents.ts";
import type { HomeDatabase } from "./home-database.ts";
import type { Bounds, LogTable } from "./log-table.ts";
import { firstEpoch } from "../log/origin.ts";
import type { Origins } from "./origins.ts";
import { dropRelations } from "./relations.ts";

export class Erasure {
  readonly #db: HomeDatabase;
  readonly #origins: Origins;
  readonly #log: LogTable;
  readonly #contents: Contents;
  readonly #conflicts: Conflicts;

  constructor(db: HomeDatabase, origins: Origins, log: LogTable, contents: Contents, conflicts: Conflicts) {
    this.#db = db;
    this.#origins = origins;
    this.#log = log;
    this.#contents = contents;
    this.#conflicts = conflicts;
  }

  isErased(key: string): boolean {
    return this.#db.get("select 1 from erased where key = ?", keyBlob(key)) !== undefined;
  }

  /** Those of the keys that are erased. */
  erasedOf(keys: Iterable<string>): Set<string> {
    if (this.#db.get("select 1 from erased limit 1") === undefined) return new Set();
    return new Set([...keys].filter((key) => this.isErased(key)));
  }

  /** Within the transaction that makes these cells what they are. */
  mark(cells: Iterable<readonly [id: string, cell: Cell]>, bounds: () => Bounds): void {
    let visible: Bounds | undefined;
    for (const [id, { erased }] of cells) {
      if (!erased) continue;
      visible ??= bounds();
      const records = this.#log.ofCell(cellBlob(id), visible);
      if (this.#isAllowed(records)) for (const key of keysOf(id, records)) this.#mark(key);
      else
        this.#conflicts.add({
          kind: "erase",
          cell: id,
          evidence: { records: records.filter(({ op }) => op === "erase").map(({ o, n }) => ({ n, o })) },
        });
    }
  }

  /** erasure.E1 */
  #isAllowed(records: readonly LogRecord[]): boolean {
    const originsOf = (wanted: LogRecord["op"]): Set<string> =>
      new Set(records.filter(({ op }) => op === wanted).map(({ o }) => o));
    const [writers, erasers] = [originsOf("put"), originsOf("erase")];
    // A log that was closed continues in another epoch: both are of one site.
    if (writers.size > 0 && sitesOf(writers).isSubsetOf(sitesOf(erasers))) return true;
    return [...erasers].some((origin) => {
      const row = this.#origins.find(origin);
      return row !== undefined && (row.own || row.grants.includes("erase"));
    });
  }

  #mark(key: string): void {
    this.#db.run("insert or ignore into erased (key, done) values (?, 0)", keyBlob(key));
    this.#db.run("delete from wanted where key = ?", keyBlob(key));
  }

  /** erasure.E2. Returns how many bytes went. */
  finish(): number {
    const keys = this.#db.all("select key from erased where done = 0").map(({ key }) => hexOf(key));
    if (keys.length === 0) return 0;
    const bytes = keys.reduce((sum, key) => sum + this.#contents.drop(key, "erased"), 0);
    // The log of SQLite still has them, until it is copied into the file and emptied. A reader in another process may delay that.
    for (const index of this.#contents.shards.group(keys, (key) => key).keys())
      this.#contents.shards.at(index).db.exec("pragma wal_checkpoint(truncate)");
    this.#db.transact(() => {
      for (const key of keys) {
        dropRelations(this.#db, key);
        this.#db.run("update erased set done = 1 where key = ?", keyBlob(key));
      }
    });
    return bytes;
  }
}

function sitesOf(origins: ReadonlySet<string>): Set<string> {
  return new Set([...origins].map(firstEpoch));
}

/** Of an artifact its key, which may also be the root of a journal; of a slot every link that was put into it. */
function keysOf(id: string, records: readonly LogRecord[]): Set<string> {
  if (id.startsWith("a:")) return new Set([id.slice(2)]);
  return new Set(records.flatMap(({ k }) => k ?? []));
}
