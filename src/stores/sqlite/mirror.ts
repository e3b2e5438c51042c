// Mirror: a SQLite store with runs of another store, as they were there. People read them with every command; no worker runs them.
//
// mirror.M1. Rows are first written to a private temporary database of this connection, which SQLite deletes when the process ends. One
//   transaction then copies them into the store. So a reader sees a complete run or none, also after a kill.
// mirror.M2. A run is put in only if its entries are dense and their hash chain ends with that of its row.
// mirror.M3. A run that the mirror has is replaced only by a copy whose journal extends it, or has the same entries. A shorter one
//   changes nothing. One that contradicts it is refused: one of the two is damaged, or the store continued from an earlier state.
// mirror.M4. Numbers follow the time at which runs were created: a list has the same order however the runs came in.
// mirror.M5. A parent is found by its id and generation, whichever of the two runs is put in first.
// mirror.M6. A new file gets its name when it says that it is a mirror: no other write is ever accepted, and a process that is killed
//   leaves no file that a later one refuses.

import { existsSync, linkSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import {
  digestOf,
  RepriseError,
  unreadableReason,
  type Clock,
  type PayloadCodec,
  type Random,
  type Timers,
} from "../../base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  CheckpointFold,
  hasEnded,
  leastNumberAt,
  markOf,
  TurnDue,
  type NewCheckpoint,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../../kernel/index.ts";
import type { CopiedEntry, CopiedRun, RunName } from "../rules/copied-run.ts";
import type { AnyRow, RowOf } from "../rows/tables.ts";
import { findRun, readJournal } from "../rules/read.ts";
import { NEW_RUN } from "../rules/run-rows.ts";
import { insertTags } from "../rules/tags.ts";
import { isConstraint } from "./errors.ts";
import { MIRROR_KEY, parseMirrorInfo, type MirrorInfo } from "./mirror-info.ts";
import { linkChildren, parentRow, rememberParent } from "./mirror-links.ts";
import { MirrorStaging } from "./mirror-staging.ts";
import { openToRead } from "./read-only-file.ts";
import { SqliteSession, type SqliteTx } from "./sqlite-session.ts";
import { SqliteStore } from "./sqlite-store.ts";
import type { Statements } from "./statements.ts";
import { COMPANIONS } from "./store-file.ts";

export interface MirrorOptions {
  readonly path: string;
  readonly name: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Encodes the payloads in the mirror. */
  readonly codec?: PayloadCodec | undefined;
}

/** `unchanged`: the mirror has this journal, or a longer one (mirror.M3). */
export interface PutOutcome extends RunName {
  readonly status: "added" | "extended" | "refreshed" | "unchanged";
  readonly entries: number;
}

interface Existing extends RunRecord {
  /** Its first entry may still be replaced. */
  readonly isNotStarted: boolean;
  readonly isFromBundle: boolean;
}

interface Staged {
  readonly copy: CopiedRun;
  readonly number: RunNumber;
  readonly existing: Existing | undefined;
  readonly status: PutOutcome["status"];
}

/** Called after each page with the number of entries that were read so far. */
export type OnEntries = (entries: number) => void;

/** Where the runs of a mirror come from; undefined: there is no such file, or it is not a mirror. Writes nothing. */
export function readMirrorInfo(path: string): MirrorInfo | undefined {
  if (!existsSync(path)) return undefined;
  const { db } = openToRead(path);
  try {
    const row = db.prepare("select value from meta where key = ?").get(MIRROR_KEY) as { value: string } | undefined;
    return row && parseMirrorInfo(row.value);
  } catch {
    return undefined;
  } finally {
    db.close();
  }
}

export class Mirror {
  readonly #session: SqliteSession;
  readonly #staging: MirrorStaging;
  #info: MirrorInfo;
  /** The file did not exist, and no run was put in yet. */
  #isNew: boolean;

  private constructor(session: SqliteSession, info: MirrorInfo, isNew: boolean) {
    this.#session = session;
    this.#info = info;
    this.#isNew = isNew;
    this.#staging = new MirrorStaging(session.connection);
  }

  /** Creates the file and its folder if they are missing. Refuses a file that is not a mirror. */
  static async open({ name, ...options }: MirrorOptions): Promise<Mirror> {
    const isNew = !existsSync(options.path) && (await createMirror({ name, ...options }));
    const known = readMirrorInfo(options.path);
    if (known === undefined)
      throw new RepriseError(
        "BAD_OPTIONS",
        `${options.path} is not a mirror, so no run can be put into it. Choose another name with --as.`,
        { details: { path: options.path } },
      );
    return new Mirror(await openSession(options), known, isNew);
  }

  get info(): MirrorInfo {
    return this.#info;
  }

  /** To read what is in it. */
  get store(): Store {
    return new SqliteStore(this.#session);
  }

  /** Remembers where the runs come from. */
  async describe(facts: Partial<MirrorInfo>): Promise<void> {
    const info = { ...this.#info, ...facts };
    await this.#session.transact("Describing the mirror", ({ sql }) => {
      sql.putMeta.run(MIRROR_KEY, JSON.stringify(info));
    });
    this.#info = info;
  }

  /** The copies become runs of a store of their own, which can be forked. Nothing is put in afterwards. */
  async release(): Promise<void> {
    await this.#session.transact("Releasing the copies", ({ sql }) => {
      sql.deleteMeta.run(MIRROR_KEY);
    });
  }

  /** mirror.M1 to mirror.M3. Puts in all of these runs, or none. Parents and earlier generations come first. */
  async put(
    runs: AsyncIterable<CopiedRun> | Iterable<CopiedRun>,
    onEntries: OnEntries = () => {},
  ): Promise<readonly PutOutcome[]> {
    this.#staging.clear();
    const staged: Staged[] = [];
    let entries = 0;
    for await (const run of runs) {
      const same = staged.find(({ copy }) => isNamed(copy, run.id, run.generation));
      if (same === undefined) staged.push(await this.#stage(run, staged, (count) => onEntries((entries += count))));
      else if (!isSameRow(same.copy, run)) throw contradiction(run, this.#info);
    }
    await this.#publish(staged.filter(({ status }) => status !== "unchanged"));
    this.#isNew &&= staged.length === 0;
    this.#staging.clear();
    return staged.map(({ copy, status }) => ({
      id: copy.id,
      generation: copy.generation,
      status,
      entries: copy.record.head,
    }));
  }

  async #stage(copy: CopiedRun, others: readonly Staged[], onEntries: OnEntries): Promise<Staged> {
    const existing = await this.#find(copy);
    if (existing !== undefined && isSameEnd(copy, existing))
      return { copy, existing, number: existing.run, status: "unchanged" };
    const number = existing?.run ?? (await this.#newNumber(copy, others));
    const fold = copy.record.kind === "graph" ? new CheckpointFold() : undefined;
    let chain = CHAIN_START;
    let seq = 0;
    let chainAtHead: string | undefined;
    for await (const page of copy.entries()) {
      const checkpoints: RowOf<"checkpoints">[] = [];
      const entries = page.map((entry): RowOf<"journal"> => {
        seq += 1;
        const unreadable = unreadableReason(entry.data);
        if (unreadable !== undefined) throw unreadable;
        if (entry.seq !== seq) throw damaged(copy, `entry ${seq} is missing; found ${entry.seq}`);
        chain = chainAfter(chain, entry.type, entry.command, entry.data);
        if (seq === existing?.head) chainAtHead = chain;
        const checkpoint = fold?.add(entry, chain);
        if (checkpoint !== undefined) checkpoints.push(checkpointRow(number, checkpoint));
        return entryRow(number, entry, markOf(chain));
      });
      this.#staging.add("journal", entries);
      this.#staging.add("checkpoints", checkpoints);
      onEntries(page.length);
    }
    const { head } = copy.record;
    // mirror.M2
    if (seq !== head) throw damaged(copy, `its row says ${head} entries, its journal has ${seq}`);
    if (chain !== copy.record.chain) throw damaged(copy, "the hash chain of its entries is not the one in its row");
    for await (const { table, rows } of copy.rows())
      this.#staging.add(
        table,
        rows.map((row) => withoutLease({ ...row, run: number })),
      );
    const status = existing === undefined ? "added" : await this.#compare(copy, existing, chainAtHead);
    return { copy, existing, number, status };
  }

  #find({ id, generation }: RunName): Promise<Existing | undefined> {
    return this.#session.read("Finding a run", (sql, rows) => {
      const record = findRun(rows, id, generation);
      if (record === undefined) return undefined;
      const isNotStarted = rows.get("runs", [record.run], TURN_DUE)?.turn_due === TurnDue.notStarted;
      return { ...record, isNotStarted, isFromBundle: isFromBundle(sql, record.run) };
    });
  }

  /** mirror.M3 */
  async #compare(copy: CopiedRun, existing: Existing, chainAtHead: string | undefined): Promise<PutOutcome["status"]> {
    const { head, chain } = copy.record;
    if (head > existing.head) {
      // The first entry of a run that has not started may be replaced (docs/decisions/0011).
      if (chainAtHead === existing.chain || existing.isNotStarted) return "extended";
    } else if (head === existing.head) {
      const isNewer = copy.number !== undefined || !hasSameFacts(copy, existing);
      if (chain === existing.chain) return isNewer ? "refreshed" : "unchanged";
      if (existing.isNotStarted) return "refreshed";
    } else if ((await this.#chainAt(existing.run, head)) === chain) return "unchanged";
    throw contradiction(copy, this.#info);
  }

  /** The marks in the rows are 48 bits: the chain is computed from the entries. */
  async #chainAt(run: RunNumber, seq: number): Promise<string> {
    let chain = CHAIN_START;
    for (let after = 0; after < seq;) {
      const page = await this.#session.read("Reading a journal", (_, rows) =>
        readJournal(rows, run, after, Math.min(PAGE, seq - after)),
      );
      for (const { type, command, data } of page) chain = chainAfter(chain, type, command, data);
      after = page.at(-1)?.seq ?? seq;
    }
    return chain;
  }

  /** mirror.M4. A number that no run of the mirror has, and none that is put in with it. */
  #newNumber(copy: CopiedRun, others: readonly Staged[]): Promise<RunNumber> {
    const taken = new Set(others.map(({ number }) => number));
    const staged = others.find(({ copy: { id, generation } }) => isNamed(copy.parent, id, generation))?.number;
    return this.#session.read("Choosing a number", (_, rows) => {
      // A child has a higher number than its parent (rules/run-work.ts).
      const parent = staged ?? parentRow(rows, copy.parent)?.run ?? 0;
      let number = Math.max(copy.number ?? numberByTime(copy), parent + 1);
      while (taken.has(number) || rows.get("runs", [number], TURN_DUE) !== undefined) number += 1;
      return number;
    });
  }

  /** mirror.M1 */
  #publish(staged: readonly Staged[]): Promise<void> {
    if (staged.length === 0) return Promise.resolve();
    return this.#session
      .transact("Putting runs into the mirror", (tx) => {
        for (const one of staged) this.#publishOne(tx, one);
      })
      .catch((error: unknown) => {
        if (!(error instanceof RepriseError) || !isConstraint(error.cause)) throw error;
        throw contradiction(staged[0]!.copy, this.#info, error);
      });
  }

  #publishOne({ sql, rows }: SqliteTx, { copy, number, existing }: Staged): void {
    const found = rows.first("runs_by_id", [copy.id, copy.generation], HEAD);
    const isFree = existing !== undefined || rows.get("runs", [number], HEAD) === undefined;
    if (found?.run !== existing?.run || found?.chain !== existing?.chain || !isFree)
      throw new RepriseError(
        "STORE_BUSY",
        `Another process put run ${copy.id} into the mirror ${this.#info.name} at the same time. Run the command again.`,
      );
    const parent = parentRow(rows, copy.parent);
    const first = copy.generation === 0 ? undefined : rows.first("runs_by_id", [copy.id], ROOT);
    const root = parent?.root ?? first?.root ?? number;
    if (existing !== undefined) rows.drop("runs", [number]);
    rows.insert("runs", runRow(copy, number, parent?.run ?? null, root));
    this.#staging.moveTo(number, existing !== undefined);
    insertTags(rows, number, copy.record.tags);
    if (copy.number === undefined) sql.putMeta.run(bundleKey(number), "");
    else sql.deleteMeta.run(bundleKey(number));
    const { db } = this.#session.connection;
    if (copy.parent !== undefined && parent === undefined) rememberParent(sql, copy.parent, number);
    linkChildren(db, rows, { ...copy, run: number, root });
  }

  /** A file that was made for nothing is removed. Another process may have put runs into it. */
  async close(): Promise<void> {
    this.#staging.close();
    const { path } = this.#session.options;
    const isUnused = this.#isNew && (await this.#isEmpty().catch(() => false));
    await this.#session.close();
    if (isUnused) removeFile(path);
  }

  #isEmpty(): Promise<boolean> {
    const { db } = this.#session.connection;
    return this.#session.read("Looking for runs", () => db.prepare("select 1 from runs limit 1").get() === undefined);
  }
}

function openSession(options: Omit<MirrorOptions, "name">): Promise<SqliteSession> {
  return SqliteSession.open({ ...options, durability: "full", migrate: true, mkdir: true, writesMirror: true });
}

/**
 * mirror.M6. False: another process has created it meanwhile. A file that a killed process leaves has a name that nothing looks for.
 */
async function createMirror({ name, ...options }: MirrorOptions): Promise<boolean> {
  const { path, random } = options;
  const temporary = join(dirname(path), `.${basename(path)}.${random.token().slice(0, 12)}.tmp`);
  try {
    const session = await openSession({ ...options, path: temporary });
    try {
      await session.transact("Describing the mirror", ({ sql }) => {
        sql.putMeta.run(MIRROR_KEY, JSON.stringify({ name } satisfies MirrorInfo));
      });
    } finally {
      await session.close();
    }
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    removeFile(temporary);
  }
}

function removeFile(path: string): void {
  for (const suffix of ["", ...COMPANIONS]) rmSync(path + suffix, { force: true });
}

const PAGE = 500;
const HEAD = ["run", "chain"] as const;
const ROOT = ["root"] as const;
const TURN_DUE = ["turn_due"] as const;

/** A run of a store that has ended, and whose copy is complete: nothing has to be read. */
function isSameEnd(copy: CopiedRun, existing: Existing): boolean {
  return (
    copy.number !== undefined &&
    !existing.isFromBundle &&
    hasEnded(copy.record.status) &&
    copy.record.chain === existing.chain &&
    hasSameFacts(copy, existing)
  );
}

/** What changes without an entry, and is in bundles, too. */
function hasSameFacts({ record }: CopiedRun, existing: Existing): boolean {
  const facts = ({ status, tags, evidence, version }: CopiedRun["record"]): string =>
    JSON.stringify([status, tags, evidence, version]);
  return facts(record) === facts(existing);
}

/** The copies of one run in one file have the same journal and the same row. */
function isSameRow({ record: one }: CopiedRun, { record: other }: CopiedRun): boolean {
  return one.head === other.head && one.chain === other.chain && one.status === other.status;
}

function isNamed(name: RunName | undefined, id: string, generation: number): boolean {
  return name?.id === id && name.generation === generation;
}

/** How many runs that were created in the same millisecond have numbers in the order that home is likely to have. */
const SLOTS = 40;
const GENERATIONS = 9;
const CHILDREN_FROM = 50;
const MAX_NUMBER = 2 ** 52;

/** mirror.M4. For a run of a bundle, which does not tell its number: by time, then children last, then by id and generation. */
function numberByTime({ id, generation, parent, record }: CopiedRun): number {
  const slot = Number.parseInt(digestOf(id).slice(0, 8), 16) % SLOTS;
  const place = slot + Math.min(generation, GENERATIONS) + (parent === undefined ? 1 : CHILDREN_FROM);
  return Math.min(leastNumberAt(record.createdAt), MAX_NUMBER) + place;
}

function entryRow(run: RunNumber, entry: CopiedEntry, mark: number): RowOf<"journal"> {
  const { seq, type, command, data, at, tookMs = null, worker = null, execution = null, startedAt = null } = entry;
  return { run, seq, type, command, data, at, mark, took_ms: tookMs, worker, execution, started_at: startedAt };
}

function checkpointRow(run: RunNumber, { step, seq, chain, key, label, state }: NewCheckpoint): RowOf<"checkpoints"> {
  return { run, step, seq, chain, key, label: label ?? null, state: state ?? null };
}

/** No worker of this file holds anything. */
function withoutLease(row: AnyRow): AnyRow {
  return "token" in row ? { ...row, token: null, worker: null } : row;
}

function runRow({ record, turn }: CopiedRun, run: RunNumber, parent: RunNumber | null, root: RunNumber): RowOf<"runs"> {
  return {
    ...NEW_RUN,
    run,
    id: record.id,
    generation: record.generation,
    definition: record.definition,
    kind: record.kind,
    version: record.version,
    status: record.status,
    parent,
    parent_command: record.parentCommand ?? null,
    root,
    priority: record.priority,
    head: record.head,
    chain: record.chain,
    arrivals: record.arrivals,
    read: record.read,
    unread: record.unread,
    turn_due: turn?.turn_due ?? TurnDue.no,
    takeovers: turn?.takeovers ?? 0,
    created_at: record.createdAt,
    ended_at: record.endedAt ?? null,
    runtime: record.runtime,
    evidence: record.evidence ?? null,
    lost_turns: record.lostTurns,
    turn_at: turn?.turn_at ?? null,
    error_code: record.errorCode ?? null,
    // A copy pays for nothing.
    budget: null,
  };
}

/** The copy of this run came from a bundle: a store knows more about it. */
function bundleKey(run: RunNumber): string {
  return `bundle ${run}`;
}

function isFromBundle(sql: Statements, run: RunNumber): boolean {
  return sql.meta.get(bundleKey(run)) !== undefined;
}

function damaged({ id, generation }: RunName, problem: string): RepriseError {
  return new RepriseError(
    "STORE_CORRUPT",
    `The copy of run ${id} (generation ${generation}) is damaged: ${problem}. Nothing was put into the mirror.`,
    { details: { run: id, generation } },
  );
}

function contradiction({ id, generation }: RunName, { name }: MirrorInfo, cause?: unknown): RepriseError {
  return new RepriseError(
    "MIRROR_CONFLICT",
    `Run ${id} (generation ${generation}) is damaged or forked: the mirror ${name} has another journal of it, and neither extends the other. Nothing was put into the mirror. Compare both copies under another name with --as, then delete the wrong one.`,
    { details: { run: id, generation, mirror: name }, ...(cause !== undefined && { cause }) },
  );
}
