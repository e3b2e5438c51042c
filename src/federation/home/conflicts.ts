// Conflicts: what does not fit together, as rows that a person can read and settle. They stop nothing but what they are about.

import { canonicalJson, RepriseError, sha256Hex, type Clock, type EpochMs } from "../../base/index.ts";
import type { HomeDatabase, Row } from "./home-database.ts";

/**
 * `content`: bytes that do not have their key. `fork`: two branches of one log. `divergence`: two outputs of one pure step. `erase`: an
 * erasure by an origin that has no right to it.
 */
export type ConflictKind = "content" | "fork" | "divergence" | "erase" | (string & {});

export interface Conflict {
  readonly id: number;
  readonly kind: ConflictKind;
  /** What it is about: a cell, an origin, a memo. */
  readonly cell: string;
  readonly evidence: unknown;
  readonly peer?: string;
  readonly firstSeen: EpochMs;
  readonly lastSeen: EpochMs;
  readonly times: number;
  readonly state: "open" | "resolved";
  readonly resolution?: string;
}

export interface NewConflict {
  readonly kind: ConflictKind;
  readonly cell: string;
  readonly evidence: unknown;
  readonly peer?: string | undefined;
}

const MAX_OPEN_CONTENTS = 1_000;

export class Conflicts {
  readonly #db: HomeDatabase;
  readonly #clock: Clock;

  constructor(db: HomeDatabase, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** The same evidence again is counted in its row. Returns the id of the row; 0: there are too many, and it is left out. */
  add({ kind, cell, evidence, peer }: NewConflict): number {
    const text = canonicalJson(evidence);
    const digest = sha256Hex(canonicalJson([kind, cell, text]));
    const now = this.#clock.now();
    return this.#db.transact(() => {
      if (kind === "content" && this.#isFull(digest)) return 0;
      this.#db.run(
        `insert into conflict (kind, cell, evidence, digest, peer, first_seen, last_seen, times, state)
           values (?, ?, ?, ?, ?, ?, ?, 1, 'open')
           on conflict (digest) do update set times = times + 1, last_seen = excluded.last_seen`,
        ...[kind, cell, text, digest, peer ?? null, now, now],
      );
      return Number(this.#db.get("select id from conflict where digest = ?", digest)!["id"]);
    });
  }

  /** A hostile peer must not fill the disk with evidence against itself. */
  #isFull(digest: string): boolean {
    const { count } = this.#db.get("select count(*) as count from conflict where kind = 'content' and state = 'open'")!;
    if (Number(count) < MAX_OPEN_CONTENTS) return false;
    return this.#db.get("select 1 from conflict where digest = ?", digest) === undefined;
  }

  list(filter: { readonly state?: "open" | "resolved"; readonly kind?: ConflictKind } = {}): Conflict[] {
    return this.#db
      .all("select * from conflict order by id")
      .map(conflictOf)
      .filter(({ state, kind }) => state === (filter.state ?? state) && kind === (filter.kind ?? kind));
  }

  about(cell: string): Conflict[] {
    return this.#db.all("select * from conflict where cell = ? order by id", cell).map(conflictOf);
  }

  get(id: number): Conflict {
    const row = this.#db.get("select * from conflict where id = ?", id);
    if (row === undefined)
      throw new RepriseError("USAGE", `There is no conflict ${id} here. \`reprise fed conflicts\` lists them.`);
    return conflictOf(row);
  }

  resolve(id: number, how: string): Conflict {
    this.get(id);
    this.#db.run("update conflict set state = 'resolved', resolution = ? where id = ?", how, id);
    return this.get(id);
  }

  /** Bytes arrived that have their key. */
  resolveContents(keys: Iterable<string>, peer: string | undefined): void {
    if (this.#db.get("select 1 from conflict where kind = 'content' and state = 'open' limit 1") === undefined) return;
    for (const key of keys)
      this.#db.run(
        "update conflict set state = 'resolved', resolution = ? where cell = ? and state = 'open' and kind = 'content'",
        `the bytes came from ${peer ?? "this site"}`,
        `a:${key}`,
      );
  }
}

function conflictOf(row: Row): Conflict {
  const { id, kind, cell, evidence, peer, first_seen: firstSeen, last_seen: lastSeen, times, state, resolution } = row;
  return {
    id: Number(id),
    kind: String(kind),
    cell: String(cell),
    evidence: JSON.parse(String(evidence)) as unknown,
    ...(peer !== null && { peer: String(peer) }),
    firstSeen: Number(firstSeen),
    lastSeen: Number(lastSeen),
    times: Number(times),
    state: state === "resolved" ? "resolved" : "open",
    ...(resolution !== null && { resolution: String(resolution) }),
  };
}
