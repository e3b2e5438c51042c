// Snapshots: cuts through all logs, kept by their ids, and what was visible at each.
//
// snapshots.V1. A snapshot that is created is the greatest closed cut (snapshot.P3) of what is visible. It is kept, and pins its contents.
// snapshots.V2. Every ingest also makes a cut. It is not kept as a row: the history of `applied` says which heads it had.
// snapshots.V3. What a snapshot says never changes: it is read from the records up to its heads.

import { RepriseError, type EpochMs } from "../../base/index.ts";
import { stateOfCell, type Cell } from "../log/cell.ts";
import { LogTree } from "../log/log-tree.ts";
import type { Origin } from "../log/origin.ts";
import type { LogRecord, RecordOp } from "../log/record.ts";
import { recordId } from "../log/record-order.ts";
import { closedCut, isClosedCut, snapshotId, type SnapshotHeads } from "../log/snapshot.ts";
import { visibleHeads } from "./apply-records.ts";
import { stateHashInOrder } from "./cells.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Bounds } from "./log-table.ts";

export interface Snapshot {
  readonly id: string;
  /** Per origin: the number of records, and their root in hex. */
  readonly heads: SnapshotHeads;
  /** Whether every record that one of its records names is in it. */
  readonly closed: boolean;
  /** When it was created here; undefined: it is not kept. */
  readonly at?: EpochMs;
}

/** A cell that is not the same in two snapshots. */
export interface SnapshotChange {
  readonly cell: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** A record as provenance names it. */
export interface AppliedRecord {
  readonly origin: Origin;
  readonly n: number;
  readonly op: RecordOp;
  /** Key, cell or vkey. */
  readonly key: string;
}

/** A snapshot by its id, or a cut. */
export type SnapshotRef = string | SnapshotHeads;

/** The cut that every record up to was closed at, in `meta`. */
const CLOSED_KEY = "closed-cut";

export class Snapshots {
  readonly #parts: HomeParts;

  constructor(parts: HomeParts) {
    this.#parts = parts;
  }

  /** snapshots.V1 */
  create(): Snapshot {
    const { db, clock } = this.#parts;
    return db.transact(() => {
      const sizes = this.#sizes(visibleHeads(this.#parts.origins));
      const after = this.#lastClosed(sizes);
      const cut = closedCut(sizes, (origin) => this.#naming(origin, after.get(origin) ?? 0, sizes.get(origin)!));
      db.run("insert or replace into meta (key, value) values (?, ?)", CLOSED_KEY, JSON.stringify([...cut]));
      const heads = this.#headsAt(cut);
      const id = snapshotId(heads);
      db.run(
        "insert or ignore into snapshot (id, heads, closed, at) values (?, ?, 1, ?)",
        ...[id, JSON.stringify(heads), clock.now()],
      );
      return this.get(id);
    });
  }

  /** A cut that is closed stays closed, so only later records have to be read. After a quarantine it may be gone. */
  #lastClosed(sizes: ReadonlyMap<Origin, number>): Map<Origin, number> {
    const text = this.#parts.db.get("select value from meta where key = ?", CLOSED_KEY)?.["value"];
    if (text === undefined) return new Map();
    const cut = new Map(JSON.parse(String(text)) as [Origin, number][]);
    return [...cut].every(([origin, n]) => n <= (sizes.get(origin) ?? 0)) ? cut : new Map();
  }

  #naming(origin: Origin, after: number, upTo: number): Pick<LogRecord, "n" | "y">[] {
    return this.#parts.log.naming(this.#parts.origins.numberOf(origin), after, upTo);
  }

  #sizes(heads: SnapshotHeads): Map<Origin, number> {
    return new Map(Object.entries(heads).map(([origin, [n]]) => [origin, n]));
  }

  #headsAt(cut: ReadonlyMap<Origin, number>): SnapshotHeads {
    const heads: Record<Origin, readonly [number, string]> = {};
    for (const [origin, n] of cut) if (n > 0) heads[origin] = [n, this.#rootAt(origin, n)];
    return heads;
  }

  #rootAt(origin: Origin, n: number): string {
    const { db, log, origins } = this.#parts;
    const row = origins.find(origin)!;
    if (row.size === n) return row.root;
    const known = db.get("select root from checkpoint where origin = ? and size = ?", row.number, n);
    if (known !== undefined) return String(known["root"]);
    const tree = LogTree.empty();
    for (const { rec } of log.records(row.number, n)) tree.append(rec);
    return tree.root().toString("hex");
  }

  /** A snapshot by its id or the beginning of it, or of a cut. The cut of a peer may be open or name records that are not here. */
  get(ref: SnapshotRef): Snapshot {
    if (typeof ref !== "string") return this.#describe(ref);
    const rows = this.#parts.db.all(
      "select id, heads, closed, at from snapshot where id >= ? and id < ? order by id limit 2",
      ...[ref, `${ref}~`],
    );
    if (rows.length === 1) {
      const { id, heads, closed, at } = rows[0]!;
      return {
        id: String(id),
        heads: JSON.parse(String(heads)) as SnapshotHeads,
        closed: closed === 1,
        at: Number(at),
      };
    }
    const made = rows.length === 0 ? this.#findMade(ref) : undefined;
    if (made !== undefined) return this.#describe(made);
    const why = rows.length === 0 ? "There is no snapshot" : "There is more than one snapshot";
    throw new RepriseError("USAGE", `${why} ${ref} here. \`reprise snapshot list\` lists them.`);
  }

  /** snapshots.V2 */
  #findMade(id: string): SnapshotHeads | undefined {
    const { db, origins } = this.#parts;
    const row = db.get("select seq from applied where snapshot = ? limit 1", id);
    if (row === undefined) return undefined;
    const rows = db.all(
      "select origin, n, root from applied where seq in (select max(seq) from applied where seq <= ? group by origin)",
      Number(row["seq"]),
    );
    return Object.fromEntries(
      rows.map(({ origin, n, root }) => [origins.idOf(Number(origin)), [Number(n), String(root)] as const]),
    );
  }

  #describe(heads: SnapshotHeads): Snapshot {
    const sizes = this.#sizes(heads);
    const { origins } = this.#parts;
    const isHere = [...sizes].every(([origin, n]) => (origins.find(origin)?.size ?? 0) >= n);
    const closed = isHere && isClosedCut(sizes, (origin) => this.#naming(origin, 0, sizes.get(origin)!));
    return { id: snapshotId(heads), heads, closed };
  }

  /** Those that are kept, newest first. */
  list(): Snapshot[] {
    return this.#parts.db
      .all("select id, heads, closed, at from snapshot order by at desc, id")
      .map(({ id, heads, closed, at }) => ({
        id: String(id),
        heads: JSON.parse(String(heads)) as SnapshotHeads,
        closed: closed === 1,
        at: Number(at),
      }));
  }

  /** Its contents are pinned no more. */
  remove(id: string): boolean {
    return this.#parts.db.run("delete from snapshot where id = ?", id) === 1;
  }

  /** Undefined: what is visible now. */
  bounds(ref: SnapshotRef | undefined): Bounds {
    const { log } = this.#parts;
    if (ref === undefined) return log.visibleBounds();
    const { heads } = this.get(ref);
    for (const [origin, [n]] of Object.entries(heads)) {
      const number = log.originOf(origin);
      if (number !== undefined && log.clockOf(number, n) !== undefined) continue;
      throw new RepriseError(
        "USAGE",
        `The snapshot has ${n} records of ${origin}, and this site does not. Pull that log first: \`reprise pull\`.`,
      );
    }
    return log.boundsOf(heads);
  }

  /** The cells at a snapshot, or now, in the order of their ids. */
  cells(ref?: SnapshotRef): Iterable<readonly [id: string, cell: Cell]> {
    return ref === undefined ? this.#parts.cells.all() : this.#parts.cells.allAt(this.bounds(ref));
  }

  stateHash(ref?: SnapshotRef): string {
    return this.#parts.db.snapshot(() => stateHashInOrder(this.cells(ref)));
  }

  /** What changed from one to another; without the second, until now. */
  diff(before: SnapshotRef, after?: SnapshotRef): SnapshotChange[] {
    return this.#parts.db.snapshot(() => {
      const old = new Map(linesOf(this.cells(before)));
      const changes: SnapshotChange[] = [];
      for (const [cell, line] of linesOf(this.cells(after))) {
        const was = old.get(cell);
        old.delete(cell);
        if (was !== line) changes.push({ cell, before: was, after: line });
      }
      for (const [cell, was] of old) changes.push({ cell, before: was, after: undefined });
      return changes.sort((a, b) => (a.cell < b.cell ? -1 : 1));
    });
  }

  /** Every record of a snapshot, in merge order. */
  *provenance(ref?: SnapshotRef): Generator<AppliedRecord> {
    for (const record of this.#parts.log.merged(this.bounds(ref)))
      yield { origin: record.o, n: record.n, op: record.op, key: recordId(record) };
  }

  /** Of the kept snapshots, the first and the last in which the cell is visible. */
  presence(cell: string): { readonly first: string; readonly last: string } | undefined {
    const { cells, log } = this.#parts;
    const having = this.list().filter(({ heads }) => cells.findAt(cell, log.boundsOf(heads))?.state === "visible");
    const [last] = having;
    return last && { first: having.at(-1)!.id, last: last.id };
  }
}

/** `<state> <winner>`, as people read it. */
function* linesOf(cells: Iterable<readonly [string, Cell]>): Generator<[string, string]> {
  for (const [id, cell] of cells) {
    const state = stateOfCell(cell);
    if (state !== undefined) yield [id, cell.add === undefined ? state : `${state} ${cell.add.id}`];
  }
}
