// Home: the directory with everything that a site knows: the logs of all origins, its own included, their contents and what follows.
//
// home.H1. `federation.db` has logs, checkpoints and what is derived from them; `federation/<nn>.db` have contents by their keys. Both
//   are open in any number of processes at once.
// home.H2. Log and contents are the truth. Everything else can be dropped and made again: results and state hash stay the same.
// home.H3. Calls are synchronous and short: each is one transaction per file at most, and leaves nothing open.

import { join } from "node:path";
import { RepriseError, systemClock, type Clock, type EpochMs } from "../../base/index.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import type { Content } from "../log/content.ts";
import type { KeyHistory } from "../log/key-history.ts";
import { LogTree } from "../log/log-tree.ts";
import type { Origin } from "../log/origin.ts";
import type { LogRecord } from "../log/record.ts";
import { recordId } from "../log/record-order.ts";
import { hexOf, isKey } from "./blobs.ts";
import { Cells, type FoundCell } from "./cells.ts";
import { checkHome, type HomeProblem } from "./check.ts";
import { Conflicts, type Conflict, type ConflictKind, type NewConflict } from "./conflicts.ts";
import { Contents, type ContentState } from "./contents.ts";
import { Counters } from "./counters.ts";
import { Erasure } from "./erasure.ts";
import { Forks, type BranchOutcome } from "./forks.ts";
import { HomeDatabase } from "./home-database.ts";
import { collectGarbage, type GcOptions, type GcReport } from "./gc.ts";
import type { HomeParts } from "./home-parts.ts";
import { checkContentLimits, checkContents, type IncomingContents } from "./incoming.ts";
import { Ingest, type Batch, type IngestOutcome } from "./ingest.ts";
import { Journals } from "./journals.ts";
import { DEFAULT_LIMITS, type HomeLimits } from "./limits.ts";
import { LogTable, type Bounds, type LogRow } from "./log-table.ts";
import { Origins, stateOfOrigin, type AdmitOptions, type OriginRow, type OriginState } from "./origins.ts";
import { rebuild } from "./rebuild.ts";
import { isRepriseFederationError, Refusal, refused } from "./refusal.ts";
import { findRuns, type FoundRun, type RunFilter } from "./runs.ts";
import { project, scan, type ScanFilter, type ScannedArtifact } from "./scan.ts";
import { MAIN_SCHEMA } from "./schema.ts";
import { checkShards, Shards } from "./shards.ts";
import { factKeys, isNamed, namersOf } from "./named-contents.ts";
import { Snapshots, type SnapshotRef } from "./snapshots.ts";
import { relationsWith } from "./relations.ts";
import { Visibility } from "./visibility.ts";
import { traverse, type Traversal, type TraverseOptions } from "./traverse.ts";

export interface HomeOptions {
  /** Files for contents, 1 to 256. A home keeps the number it was made with. */
  readonly shards?: number;
  readonly clock?: Clock;
  readonly limits?: Partial<HomeLimits>;
  /** Of new files; a power of two from 512 to 65,536. */
  readonly pageSize?: number;
}

export type PutOutcome =
  | {
      readonly status: "stored";
      readonly stored: number;
      readonly duplicates: number;
      /** Left out, because they are erased. */
      readonly erased: number;
    }
  | { readonly status: "refused"; readonly code: string; readonly reason: string };

/** What came in at one moment. */
export interface AppliedBatch {
  readonly origin: Origin;
  readonly n: number;
  readonly root: string;
  /** What its last record is about: a key, a cell or a vkey. */
  readonly key: string;
  readonly peer?: string;
  /** The cut that it made. */
  readonly snapshot: string;
  readonly at: EpochMs;
}

/** Opens the home in a directory, and makes it if there is none. */
export function openHome(dir: string, options: HomeOptions = {}): Home {
  return new Home(dir, options);
}

export class Home {
  readonly dir: string;
  readonly shards: number;
  readonly snapshots: Snapshots;
  readonly #parts: HomeParts;
  readonly #shards: Shards;
  readonly #ingest: Ingest;
  readonly #forks: Forks;

  constructor(dir: string, { shards, clock = systemClock, limits, pageSize }: HomeOptions) {
    this.dir = dir;
    if (shards !== undefined) checkShards(shards);
    const db = new HomeDatabase(join(dir, "federation.db"), MAIN_SCHEMA, { pageSize });
    try {
      this.shards = keepShards(db, shards);
      this.#shards = new Shards(join(dir, "federation"), this.shards, { pageSize });
      const all = { ...DEFAULT_LIMITS, ...limits };
      const origins = new Origins(db, clock, all.origins);
      const log = new LogTable(db, origins);
      const cells = new Cells(db, origins, log);
      const contents = new Contents(this.#shards, clock);
      const journals = new Journals(this.#shards, clock);
      const conflicts = new Conflicts(db, clock);
      const erasure = new Erasure(db, origins, log, contents, conflicts);
      const counters = new Counters(db);
      const state = { cells, contents, journals, conflicts, erasure, counters };
      this.#parts = { dir, db, clock, limits: all, origins, log, ...state };
      this.#forks = new Forks(this.#parts);
      this.#ingest = new Ingest(this.#parts, this.#forks);
      this.snapshots = new Snapshots(this.#parts);
      this.#continue();
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** What a process that was killed left to do. */
  #continue(): void {
    for (const { id, cursor, size } of this.#parts.origins.list()) if (cursor > size) this.#ingest.advance(id);
    this.#parts.erasure.finish();
  }

  get limits(): HomeLimits {
    return this.#parts.limits;
  }

  // ── logs ──

  origins(): OriginState[] {
    return this.#parts.origins.list().map(stateOfOrigin);
  }

  origin(id: Origin): OriginState | undefined {
    const row = this.#parts.origins.find(id);
    return row && stateOfOrigin(row);
  }

  /** Accepts the log whose first key this is. Again: changes its peer and grants. */
  admit(vkey: string, options: AdmitOptions = {}): OriginState {
    return stateOfOrigin(this.#parts.origins.admit(vkey, options));
  }

  /** The keys of a log, as far as it is visible. */
  keys(origin: Origin): KeyHistory {
    return this.#parts.origins.keys(this.#row(origin));
  }

  /** Takes a batch of a log, or nothing of it. */
  ingest(batch: Batch): IngestOutcome {
    return this.#ingest.ingest(batch);
  }

  /** Visible records after `after`. */
  readLog(origin: Origin, after: number, limit: number): LogRow[] {
    const row = this.#parts.origins.find(origin);
    return row === undefined ? [] : this.#parts.log.read(row.number, after, row.size, limit);
  }

  /** The newest checkpoint whose records are all visible. */
  checkpoint(origin: Origin): Checkpoint | undefined {
    const row = this.#parts.origins.find(origin);
    return row && this.#parts.origins.checkpoint(row);
  }

  firstCheckpointCovering(origin: Origin, n: number): Checkpoint | undefined {
    const row = this.#parts.origins.find(origin);
    return row && this.#parts.origins.firstCheckpointCovering(row, n);
  }

  /** The first visible record of a log that puts this key. */
  findPut(origin: Origin, key: string): LogRow | undefined {
    const row = this.#parts.origins.find(origin);
    if (row === undefined || !isKey(key)) return undefined;
    return this.#parts.log.findPut(row.number, `a:${key}`, row.size);
  }

  /** The tree over the stored records of a log: what the next batch continues. */
  tree(origin: Origin): LogTree {
    const { cursorPeaks, cursor } = this.#row(origin);
    return LogTree.of(cursorPeaks, cursor);
  }

  /** Compares the log here with another signed copy, by the hashes of all its records, and quarantines a fork. */
  compareBranch(origin: Origin, checkpoint: Checkpoint, leaves: readonly Buffer[], peer?: string): BranchOutcome {
    return this.#forks.compareBranch(origin, checkpoint, leaves, peer);
  }

  /** Takes evidence of a fork that another site found: returns the number of common records. */
  takeForkEvidence(text: string, peer?: string): number {
    return this.#forks.takeEvidence(text, peer);
  }

  // ── contents ──

  hasContents(keys: Iterable<string>): Set<string> {
    const found = this.#parts.contents.has([...keys].filter(isKey));
    for (const key of this.#parts.erasure.erasedOf(found)) found.delete(key);
    return found;
  }

  content(key: string): Content | undefined {
    return isKey(key) && this.#parts.erasure.isErased(key) ? undefined : this.#parts.contents.find(key);
  }

  contentState(key: string): ContentState {
    return this.#parts.erasure.isErased(key) ? "erased" : this.#parts.contents.stateOf(key);
  }

  /** Contents, and journals beside them, by few transactions. */
  putContents(contents: readonly Content[], options: Partial<Omit<IncomingContents, "contents">> = {}): PutOutcome {
    return this.#put({ contents, journals: [], ...options });
  }

  journal(root: string): Uint8Array | undefined {
    return isKey(root) && this.#parts.erasure.isErased(root) ? undefined : this.#parts.journals.find(root);
  }

  putJournal(root: string, lines: Uint8Array, options: { readonly from?: string } = {}): PutOutcome {
    return this.#put({ contents: [], journals: [{ root, lines }], ...options });
  }

  #put(incoming: IncomingContents): PutOutcome {
    try {
      checkContentLimits(incoming, this.#parts.limits);
      const checked = checkContents(incoming, this.#parts);
      const { stored, duplicates } = checked.put();
      this.#parts.db.transact(() => {
        checked.index();
        this.#parts.counters.add("duplicates", duplicates);
      });
      return { status: "stored", stored, duplicates, erased: checked.erased };
    } catch (error) {
      if (error instanceof Refusal || isRepriseFederationError(error)) return refused(error.code, error.message);
      throw error;
    }
  }

  /** Keys that visible records name and whose bytes never came, in the order of the log. */
  missing(origin?: Origin, limit = 1_000): string[] {
    const { db, origins } = this.#parts;
    const number = origin === undefined ? undefined : origins.find(origin)?.number;
    if (origin !== undefined && number === undefined) return [];
    const rows = db.all(
      `select distinct key from wanted ${number === undefined ? "" : "where origin = ?"} order by origin, n limit ?`,
      ...(number === undefined ? [limit] : [number, limit]),
    );
    return rows.map(({ key }) => hexOf(key));
  }

  /** The numbers of visible records whose contents never came, newest first. */
  missingRecords(origin: Origin, limit = 100_000): number[] {
    const number = this.#parts.origins.find(origin)?.number;
    if (number === undefined) return [];
    return this.#parts.db
      .all("select n from wanted where origin = ? order by n desc limit ?", number, limit)
      .map(({ n }) => Number(n));
  }

  /** The keys of the run records of an execution; of its chain alone if one is given. */
  runRecords(run: string, generation: number, chain?: string): string[] {
    return factKeys(this.#shards, "run", run, generation, chain);
  }

  /** Whether a visible record of the log puts this content. */
  names(origin: Origin, content: Content): boolean {
    return isNamed(this.#parts, origin, content);
  }

  /** The origins whose visible records put this content. */
  originsOf(content: Content): Origin[] {
    return namersOf(this.#parts, content);
  }

  /** The keys of the statements of one generation of a run, whichever site they are of. */
  statements(run: string, generation: number): string[] {
    return factKeys(this.#shards, "statement", run, generation);
  }

  // ── state ──

  cell(id: string, snapshot?: SnapshotRef): FoundCell | undefined {
    const { cells } = this.#parts;
    return snapshot === undefined ? cells.find(id) : cells.findAt(id, this.snapshots.bounds(snapshot));
  }

  /** Equal on every site that has the same records. */
  stateHash(snapshot?: SnapshotRef): string {
    return this.snapshots.stateHash(snapshot);
  }

  /** The visible runs that fit, in merge order. */
  findRuns(filter: RunFilter = {}, snapshot?: SnapshotRef): FoundRun[] {
    return this.#parts.db.snapshot(() => findRuns(this.#parts, filter, this.#boundsAt(snapshot)));
  }

  /** The visible artifacts that fit, in merge order. */
  scan(filter: ScanFilter = {}, snapshot?: SnapshotRef): ScannedArtifact[] {
    return this.#parts.db.snapshot(() => scan(this.#parts, filter, this.#boundsAt(snapshot)));
  }

  /** What led to a key, `run:<id>` or `origin:<origin>`, or followed from it. */
  traverse(start: string, options: TraverseOptions, snapshot?: SnapshotRef): Traversal {
    return this.#parts.db.snapshot(() => traverse(this.#parts, start, options, this.#boundsAt(snapshot)));
  }

  /** Members of artifacts that are JSON, by their paths. */
  project(keys: Iterable<string>, paths: readonly string[]): ReturnType<typeof project> {
    return project(this.#parts, keys, paths);
  }

  #boundsAt(snapshot: SnapshotRef | undefined): Bounds | undefined {
    return snapshot === undefined ? undefined : this.snapshots.bounds(snapshot);
  }

  /** What came in, newest first. */
  applied(filter: { readonly peer?: string; readonly origin?: Origin; readonly limit?: number } = {}): AppliedBatch[] {
    const { db, origins } = this.#parts;
    const number = filter.origin === undefined ? null : (origins.find(filter.origin)?.number ?? -1);
    return db
      .all(
        `select a.origin, a.n, a.root, a.peer, a.snapshot, a.at, l.rec from applied a
          left join log l on l.origin = a.origin and l.n = a.n
          where (? is null or a.peer = ?) and (? is null or a.origin = ?) order by a.seq desc limit ?`,
        ...[filter.peer ?? null, filter.peer ?? null, number, number, filter.limit ?? 1_000],
      )
      .map(({ origin, n, root, peer, snapshot, at, rec }) => ({
        origin: origins.idOf(Number(origin)),
        n: Number(n),
        root: String(root),
        key: recordId(JSON.parse(String(rec)) as LogRecord),
        ...(peer !== null && { peer: String(peer) }),
        snapshot: String(snapshot),
        at: Number(at),
      }));
  }

  /** How often nothing had to be written. */
  counters(): Record<string, number> {
    return this.#parts.counters.all();
  }

  /** The visible artifacts that name this end in a relation of this type, and the origins that put them. */
  saying(end: string, type: string): { readonly key: string; readonly origins: readonly Origin[] }[] {
    const visibility = new Visibility(this.#parts, undefined);
    return relationsWith(this.#parts.db, end, "to")
      .filter((relation) => relation.type === type)
      .map(({ by: key }) => ({ key, origins: visibility.puts(`a:${key}`, key).map(({ o }) => o) }))
      .filter(({ origins }) => origins.length > 0);
  }

  // ── conflicts ──

  /** Those about one cell, memo or step. */
  conflictsAbout(cell: string): Conflict[] {
    return this.#parts.conflicts.about(cell);
  }

  conflicts(filter?: { readonly state?: "open" | "resolved"; readonly kind?: ConflictKind }): Conflict[] {
    return this.#parts.conflicts.list(filter);
  }

  addConflict(conflict: NewConflict): number {
    return this.#parts.conflicts.add(conflict);
  }

  resolve(id: number, how: string): Conflict {
    return this.#parts.conflicts.resolve(id, how);
  }

  // ── peers ──

  peer(name: string): unknown {
    const row = this.#parts.db.get("select value from peer where name = ?", name);
    return row && (JSON.parse(String(row["value"])) as unknown);
  }

  /** Remembers something about a peer; `undefined` forgets it. */
  setPeer(name: string, value: unknown): void {
    const { db } = this.#parts;
    if (value === undefined) db.run("delete from peer where name = ?", name);
    else db.run("insert or replace into peer (name, value) values (?, ?)", name, JSON.stringify(value));
  }

  peers(): Map<string, unknown> {
    const rows = this.#parts.db.all("select name, value from peer order by name");
    return new Map(rows.map(({ name, value }) => [String(name), JSON.parse(String(value)) as unknown]));
  }

  // ── maintenance ──

  /** Keeps the bytes of a key or a root, under a name. */
  pin(key: string, name: string): void {
    const { db, clock } = this.#parts;
    db.run("insert or ignore into pin (what, name, at) values (?, ?, ?)", key, name, clock.now());
  }

  unpin(key: string, name: string): void {
    this.#parts.db.run("delete from pin where what = ? and name = ?", key, name);
  }

  pins(): { readonly key: string; readonly name: string; readonly at: EpochMs }[] {
    return this.#parts.db
      .all("select what, name, at from pin order by what, name")
      .map(({ what, name, at }) => ({ key: String(what), name: String(name), at: Number(at) }));
  }

  /** Frees bytes that nothing needs. Records stay. */
  gc(options: GcOptions = {}): GcReport {
    return collectGarbage(this.#parts, this.snapshots, options);
  }

  /** Reads everything, and names each row that is not what it should be. */
  check(): HomeProblem[] {
    return [...checkHome(this.#parts)];
  }

  /** Makes everything that is derived again, from logs and contents. */
  rebuild(): void {
    rebuild(this.#parts);
  }

  #row(origin: Origin): OriginRow {
    const row = this.#parts.origins.find(origin);
    if (row === undefined)
      throw new RepriseError("NOT_ADMITTED", `${origin} is not admitted here. \`reprise peer list\` lists the logs.`);
    return row;
  }

  close(): void {
    this.#shards.close();
    this.#parts.db.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** home.H1. The number of shards is a property of the home, not of a process. */
function keepShards(db: HomeDatabase, wanted: number | undefined): number {
  db.run("insert or ignore into meta (key, value) values ('shards', ?)", String(wanted ?? 1));
  const found = Number(db.get("select value from meta where key = 'shards'")!["value"]);
  if (wanted === undefined || wanted === found) return found;
  throw new RepriseError(
    "BAD_OPTIONS",
    `The home ${db.path} has ${found} shard${found === 1 ? "" : "s"}, and shards is ${wanted}. Leave the option out.`,
    { details: { found, wanted } },
  );
}
