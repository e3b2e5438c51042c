// Staged files: what peers have uploaded and no checkpoint covers yet.
//
// staged-files.S1. Nothing here is visible to any reader. A file leaves this table into the home as part of one ingest, or it is deleted.
// staged-files.S2. The space is bounded per peer, by bytes and by files; files older than `stagedMs` are deleted first.
// staged-files.S3. The file is a cache of uploads, kept over a restart so that a push continues: losing it costs the peer another upload
//   (docs/decisions/0168).

import { chmodSync, closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Clock } from "../../base/index.ts";
import { limitExceeded, type ServeLimits } from "./serve-limits.ts";

/** Where a file is staged: the peer that uploaded it, the origin, and the path under the origin. */
export interface StagedPlace {
  readonly peer: string;
  readonly origin: string;
  readonly path: string;
}

const FILE = "serve.db";
const SCHEMA = `
  pragma journal_mode = wal;
  pragma synchronous = off;
  pragma busy_timeout = 10000;
  create table if not exists staged (
    id integer primary key, peer text not null, origin text not null, path text not null,
    size integer not null, at integer not null, bytes blob not null, unique (peer, origin, path));
  create table if not exists tile_root (
    origin text not null, level integer not null, n integer not null, root blob not null,
    primary key (origin, level, n)) without rowid;
`;

/** The database of the server in the folder of the home: staged files, and roots of complete tiles. */
export function openServeDatabase(dir: string): DatabaseSync {
  const path = join(dir, FILE);
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  return prepareServeDatabase(new DatabaseSync(path));
}

export function prepareServeDatabase(db: DatabaseSync): DatabaseSync {
  db.exec(SCHEMA);
  return db;
}

export class StagedFiles {
  readonly #limits: ServeLimits;
  readonly #clock: Clock;
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #drop: StatementSync;
  readonly #read: StatementSync;
  readonly #list: StatementSync;
  readonly #used: StatementSync;
  readonly #expire: StatementSync;
  readonly #remove: StatementSync;

  constructor(db: DatabaseSync, limits: ServeLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#db = db;
    this.#insert = db.prepare(
      "insert into staged (peer, origin, path, size, at, bytes) values (?, ?, ?, ?, ?, ?) on conflict do nothing",
    );
    this.#drop = db.prepare("delete from staged where peer = ? and origin = ? and path = ?");
    this.#read = db.prepare("select bytes from staged where peer = ? and origin = ? and path = ?");
    this.#list = db.prepare("select path from staged where peer = ? and origin = ? order by path");
    this.#used = db.prepare("select count(*) as files, coalesce(sum(size), 0) as bytes from staged where peer = ?");
    this.#expire = db.prepare("delete from staged where peer = ? and at <= ?");
    this.#remove = db.prepare("delete from staged where peer = ? and origin = ?");
  }

  /** Stages a file. False: a file is there already. Refuses what exceeds the peer's space (staged-files.S2). */
  put({ peer, origin, path }: StagedPlace, bytes: Uint8Array, replace = false): boolean {
    const now = this.#clock.now();
    if (replace) this.#drop.run(peer, origin, path);
    this.#expire.run(peer, now - this.#limits.stagedMs);
    const used = this.#used.get(peer) as { files: number; bytes: number };
    if (used.bytes + bytes.length > this.#limits.stagedBytes)
      throw limitExceeded(
        "stagedBytes",
        413,
        `${used.bytes} bytes of this peer wait for a checkpoint. Push the checkpoint that covers them first.`,
      );
    if (used.files >= this.#limits.stagedFiles)
      throw limitExceeded(
        "stagedFiles",
        413,
        `${used.files} files of this peer wait for a checkpoint. Push the checkpoint that covers them first.`,
      );
    return this.#insert.run(peer, origin, path, bytes.length, now, bytes).changes === 1;
  }

  read({ peer, origin, path }: StagedPlace): Uint8Array | undefined {
    return this.#read.get(peer, origin, path)?.["bytes"] as Uint8Array | undefined;
  }

  /** The paths that the peer has staged for the origin. */
  list(peer: string, origin: string): readonly string[] {
    return this.#list.all(peer, origin).map((row) => row["path"] as string);
  }

  remove(peer: string, origin: string): void {
    this.#remove.run(peer, origin);
  }

  close(): void {
    this.#db.close();
  }
}
