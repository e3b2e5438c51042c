// Origins: the logs that a home keeps, and how far it has each.
//
// origins.O1. Only an admitted origin has a row: the operator names its first vkey, and the log names the keys that follow.
// origins.O2. `size` counts the visible records, all under a checkpoint. `cursor` counts the stored ones: the next batch begins there.

import { invariant, RepriseError, type Clock, type EpochMs } from "../../base/index.ts";
import { checkpointRoot, type Checkpoint } from "./checkpoint-root.ts";
import { KeyHistory } from "../log/key-history.ts";
import { LogTree } from "../log/log-tree.ts";
import { findOriginParts, firstEpoch, type Origin } from "../log/origin.ts";
import type { HomeDatabase, Row } from "./home-database.ts";

/** What a home knows of one log. */
export interface OriginState {
  readonly id: Origin;
  /** The first vkey. */
  readonly vkey: string;
  /** Visible records (origins.O2). */
  readonly size: number;
  /** Stored records: what the next batch follows. */
  readonly cursor: number;
  /** `c` of the last visible record. */
  readonly clock: number;
  /** The root over the visible records, in hex. */
  readonly root: string;
  /** `forked`: another branch exists; nothing after the last common record is visible, and nothing more is taken. */
  readonly status: "active" | "forked";
  /** The log of this site. */
  readonly own: boolean;
  /** The peer that it was admitted for. */
  readonly peer?: string;
  /** What this origin may do here beside writing its own log: `erase`, `work:<label>`. */
  readonly grants: readonly string[];
  readonly admittedAt: EpochMs;
}

/** With the columns that only the home reads. */
export interface OriginRow extends OriginState {
  readonly number: number;
  readonly peaks: string;
  readonly cursorClock: number;
  readonly cursorPeaks: string;
}

export interface AdmitOptions {
  readonly peer?: string;
  readonly own?: boolean;
  readonly grants?: readonly string[];
}

export class Origins {
  readonly #db: HomeDatabase;
  readonly #clock: Clock;
  readonly #limit: number;
  /** Numbers never change, so they are kept. */
  readonly #ids = new Map<number, Origin>();
  readonly #numbers = new Map<Origin, number>();

  constructor(db: HomeDatabase, clock: Clock, limit: number) {
    this.#db = db;
    this.#clock = clock;
    this.#limit = limit;
  }

  list(): OriginRow[] {
    return this.#db.all("select * from origin order by id").map(rowOf);
  }

  find(id: Origin): OriginRow | undefined {
    const row = this.#db.get("select * from origin where id = ?", id);
    return row && rowOf(row);
  }

  idOf(number: number): Origin {
    let id = this.#ids.get(number);
    if (id === undefined) {
      id = String(this.#db.get("select id from origin where number = ?", number)!["id"]);
      this.#ids.set(number, id);
    }
    return id;
  }

  /** Of an origin that is admitted. */
  numberOf(id: Origin): number {
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    const row = this.#db.get("select number from origin where id = ?", id);
    invariant(row !== undefined, "origins.O1: records are of admitted origins");
    const number = Number(row["number"]);
    this.#numbers.set(id, number);
    return number;
  }

  /** origins.O1. Admitting an origin again changes its peer and grants only. */
  admit(vkey: string, options: AdmitOptions): OriginRow {
    const { origin, current } = this.#historyFor(vkey);
    return this.#db.transact(() => {
      const existing = this.find(origin);
      if (existing !== undefined && existing.vkey !== current.vkey)
        throw new RepriseError(
          "NOT_ADMITTED",
          `${origin} is admitted with the first key ${existing.vkey}; ${vkey} is another one. Compare both with the operator of that site.`,
        );
      if (existing === undefined) this.#insert(origin, current.vkey);
      const { peer, own, grants } = options;
      const { number } = this.find(origin)!;
      if (peer !== undefined) this.#db.run("update origin set peer = ? where number = ?", peer, number);
      if (own !== undefined) this.#db.run("update origin set own = ? where number = ?", own ? 1 : 0, number);
      if (grants !== undefined)
        this.#db.run("update origin set grants = ? where number = ?", JSON.stringify(grants), number);
      return this.find(origin)!;
    });
  }

  /** A later epoch begins with the newest key of the epoch before (key-history.H4). */
  #historyFor(vkey: string): KeyHistory {
    const history = KeyHistory.genesis(vkey);
    const { origin, current } = history;
    if (firstEpoch(origin) === origin) return history;
    const before = this.list().filter(({ id }) => firstEpoch(id) === firstEpoch(origin) && isEarlier(id, origin));
    if (before.some((row) => this.keys(row).forEpoch(origin).current.vkey === current.vkey)) return history;
    throw new RepriseError(
      "NOT_ADMITTED",
      `${origin} continues ${firstEpoch(origin)}, but no epoch of it here has the key ${vkey}. Admit the first vkey of that site, and pull its first log.`,
    );
  }

  #insert(origin: Origin, vkey: string): void {
    const count = Number(this.#db.get("select count(*) as count from origin")!["count"]);
    if (count >= this.#limit)
      throw new RepriseError(
        "LIMIT_EXCEEDED",
        `This home keeps ${count} logs, as many as its limit allows, so ${origin} is not admitted. Raise limits.origins.`,
      );
    this.#db.run(
      "insert into origin (id, vkey, admitted_at, root, peaks, cursor_peaks) values (?, ?, ?, ?, '', '')",
      ...([origin, vkey, this.#clock.now(), LogTree.empty().root().toString("hex")] as const),
    );
  }

  /** The keys of a log, as far as it is visible. */
  keys({ number, vkey }: OriginRow): KeyHistory {
    const history = KeyHistory.genesis(vkey);
    for (const row of this.#db.all("select n, vkey from origin_key where origin = ? order by n", number))
      history.add(Number(row["n"]), String(row["vkey"]));
    return history;
  }

  /** The newest checkpoint whose records are all visible. */
  checkpoint({ number, id, size }: OriginRow): Checkpoint | undefined {
    return this.checkpointUpTo(number, id, size);
  }

  checkpointUpTo(number: number, id: Origin, size: number): Checkpoint | undefined {
    return checkpointOf(
      id,
      this.#db.get(
        "select size, root, note from checkpoint where origin = ? and size <= ? order by size desc limit 1",
        number,
        size,
      ),
    );
  }

  /** How many stored records a verified checkpoint covers. */
  coveredSize({ number, cursor }: OriginRow): number {
    const row = this.#db.get("select max(size) as size from checkpoint where origin = ? and size <= ?", number, cursor);
    return Number(row?.["size"] ?? 0);
  }

  /** The first checkpoint that covers record `n`. */
  firstCheckpointCovering({ number, id }: OriginRow, n: number): Checkpoint | undefined {
    return checkpointOf(
      id,
      this.#db.get(
        "select size, root, note from checkpoint where origin = ? and size >= ? order by size limit 1",
        number,
        n,
      ),
    );
  }

  /** Keeps a checkpoint that was verified. The first note of a size is kept for ever. */
  keepCheckpoint(number: number, checkpoint: Checkpoint): void {
    // Reading is cheaper than a lock to write, and a pull that finds nothing new comes here.
    const known = this.#db.get("select 1 from checkpoint where origin = ? and size = ?", number, checkpoint.size);
    if (known !== undefined) return;
    this.#db.run(
      "insert or ignore into checkpoint (origin, size, root, note, at) values (?, ?, ?, ?, ?)",
      ...([number, checkpoint.size, checkpointRoot(checkpoint).toString("hex"), checkpoint.note] as const),
      this.#clock.now(),
    );
  }
}

function isEarlier(a: Origin, b: Origin): boolean {
  return (findOriginParts(a)?.epoch ?? 0) < (findOriginParts(b)?.epoch ?? 0);
}

function checkpointOf(origin: Origin, row: Row | undefined): Checkpoint | undefined {
  if (row === undefined) return undefined;
  const root = Buffer.from(String(row["root"]), "hex").toString("base64");
  return { origin, size: Number(row["size"]), root, note: String(row["note"]) };
}

function rowOf(row: Row): OriginRow {
  const { peer } = row;
  return {
    number: Number(row["number"]),
    id: String(row["id"]),
    vkey: String(row["vkey"]),
    size: Number(row["size"]),
    cursor: Number(row["cursor"]),
    clock: Number(row["clock"]),
    root: String(row["root"]),
    status: row["status"] === "forked" ? "forked" : "active",
    own: row["own"] === 1,
    ...(peer !== null && { peer: String(peer) }),
    grants: JSON.parse(String(row["grants"])) as string[],
    admittedAt: Number(row["admitted_at"]),
    peaks: String(row["peaks"]),
    cursorClock: Number(row["cursor_clock"]),
    cursorPeaks: String(row["cursor_peaks"]),
  };
}

/** What others may know of a log. */
export function stateOfOrigin(row: OriginRow): OriginState {
  const { number: _number, peaks: _peaks, cursorClock: _clock, cursorPeaks: _cursorPeaks, ...state } = row;
  return state;
}
