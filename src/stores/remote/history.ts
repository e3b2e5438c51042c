// History: checks that the database still has every commit that it acknowledged to this process.
//
// remote.Y1. Each connection has a row in `writers` with the number of its last batch. A commit checks, in the statement that
//   stamps its own row, that this row has the last acknowledged batch and that the rows of other connections have at least
//   theirs. A lower or missing batch means that the database went back to an earlier state.
// remote.Y2. A batch that a commit has verified is not verified again on that connection: a history that lacks the batch also
//   lacks the commit.
// remote.Y3. `incarnation` in `meta` is unique and verified with every commit. The first process that detects a rollback replaces
//   it and records the event in one transaction, so that every other process detects it, too.
// remote.Y4. Another server than before (a failover), or the same one after a restart, may lack commits of other processes that
//   this process has read, even if its own are there. That is a break, too, without a record in `meta`.
// remote.Y5. After a break nothing that was read or held before is used: `epoch` counts breaks, and listeners are called at once.
// remote.Y6. After a break nothing is read or written before the incarnation is known: another process may already have found
//   that the history this process would read is lost.

import type { Random } from "../../base/index.ts";
import {
  historyRow,
  INCARNATION_KEY,
  newIncarnation,
  otherIncarnation,
  type HistoryBreak,
} from "../../kernel/index.ts";
import type { Acknowledged, HistoryCheck, Connection } from "./backend.ts";
import type { PooledConnection } from "./connection-pool.ts";
import { lookup } from "./query.ts";
import type { Tx } from "../rows/rows.ts";

export interface HistoryHost {
  readonly random: Random;
  now(): number;
  monotonic(): number;
  /** remote.Y5. Drops cached rows, number blocks and connections; `kept` leads to the current server. */
  forget(kept: Connection | undefined): void;
  /** Applies `change` to `meta` in its own transaction, without waiting for `settled` (remote.Y6). Undefined: opened to read. */
  readonly record: ((change: (tx: Tx) => void) => Promise<void>) | undefined;
  /** Without waiting for `settled`, either. */
  readIncarnation(): Promise<string | undefined>;
}

interface WriterState extends Acknowledged {
  readonly at: number;
}

interface UnrecordedBreak {
  readonly detail: string;
  /** The incarnation before the break: only a later one shows that another process has recorded the break. */
  readonly incarnation: string | undefined;
}

/** Rows in `writers` are deleted after 30 days without a commit, so the absence of an old row proves nothing. */
const CHECKED_FOR_MS = 10 * 86_400_000;

const VALUE = ["value"] as const;

export class History {
  readonly #host: HistoryHost;
  readonly #listeners: ((change: HistoryBreak) => void)[] = [];
  /** By writer: the last acknowledged batch. */
  readonly #writers = new Map<string, WriterState>();
  #server: string | undefined;
  /** Undefined until it is read; commits do not verify it until then. */
  #incarnation: string | undefined;
  /** A break that is not recorded in `meta` yet. */
  #unrecorded: UnrecordedBreak | undefined;
  #recording: Promise<void> | undefined;
  #hasBegun = false;
  #epoch = 0;

  constructor(host: HistoryHost) {
    this.#host = host;
  }

  get epoch(): number {
    return this.#epoch;
  }

  onBreak(listener: (change: HistoryBreak) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the incarnation; creates the first one, unless the store is opened to read. */
  async begin(): Promise<void> {
    // Set only after the commit: the commit itself would verify it.
    this.#incarnation = await this.#recordBreak(undefined);
    this.#hasBegun = true;
  }

  /** remote.Y6. Everything but `record` waits for this promise. */
  settled(): Promise<void> | undefined {
    return this.#recording;
  }

  /** remote.Y1. What the next commit on a connection verifies. */
  checkFor(on: PooledConnection): HistoryCheck {
    if (this.#incarnation === undefined && this.#hasBegun) this.#record();
    const others: Acknowledged[] = [];
    const since = this.#host.monotonic() - CHECKED_FOR_MS;
    for (const state of this.#writers.values())
      if (
        state.writer !== on.connection.writer &&
        state.at > since &&
        (on.checked.get(state.writer) ?? 0) < state.batch
      )
        others.push(state);
    return { previous: on.acknowledged, others, incarnation: this.#incarnation };
  }

  /** remote.Y2 */
  acknowledged(on: PooledConnection, batch: number, { others }: HistoryCheck): void {
    const at = this.#host.monotonic();
    on.acknowledged = batch;
    for (const { writer, batch: checked } of others) on.checked.set(writer, checked);
    this.#writers.set(on.connection.writer, { writer: on.connection.writer, batch, at });
    if (this.#writers.size > MANY_WRITERS) this.#removeClosed(at);
  }

  /** Their rows are about to be deleted: no commit verifies them from here on. */
  forgetWriters(writers: readonly string[]): void {
    for (const writer of writers) this.#writers.delete(writer);
  }

  /** Removes the batches of closed connections; open ones have verified them. */
  #removeClosed(at: number): void {
    for (const { writer, at: acknowledgedAt } of this.#writers.values())
      if (at - acknowledgedAt > REMOVE_AFTER_MS) this.#writers.delete(writer);
  }

  /** Whether a connection's row may have been deleted because of its age. */
  isStale({ connection }: PooledConnection): boolean {
    const state = this.#writers.get(connection.writer);
    return state !== undefined && this.#host.monotonic() - state.at > CHECKED_FOR_MS;
  }

  /** remote.Y1, for a process that commits nothing. */
  async check(connection: Connection): Promise<void> {
    const epoch = this.#epoch;
    const missing = await this.#findMissing(connection);
    if (missing !== undefined) this.lost(missing, epoch);
  }

  /** remote.Y4. Called before a new connection is used. */
  async connected(connection: Connection): Promise<void> {
    const before = this.#server;
    if (before === connection.server) return;
    if (before === undefined) {
      this.#server = connection.server;
      return;
    }
    const missing = await this.#findMissing(connection);
    // Another new connection may have been checked meanwhile.
    if (this.#server === connection.server) return;
    this.#server = connection.server;
    if (missing === undefined)
      this.#break(
        { kind: "failed_over", detail: "a different server answers, or the same server after a restart" },
        connection,
      );
    else this.#lost(missing, connection);
  }

  /** Describes a commit that this process knows of and the server lacks. */
  async #findMissing(connection: Connection): Promise<string | undefined> {
    const since = this.#host.monotonic() - CHECKED_FOR_MS;
    const known = [...this.#writers.values()].filter(({ at }) => at > since);
    const [writers = [], meta = []] = await connection.read([
      lookup(
        "writers",
        ["writer"],
        known.map(({ writer }) => [writer]),
        "none",
      ),
      lookup("meta", ["key"], [[INCARNATION_KEY]], "none"),
    ]);
    const found = new Map(writers.map((row) => [row["writer"], row["batch"] as number]));
    for (const { writer, batch } of known) {
      const there = found.get(writer) ?? 0;
      // A fenced writer has a negative batch.
      if (Math.max(there, -1 - there) < batch)
        return `it acknowledged commit ${batch} of a connection, but its last commit of that connection is ${Math.max(there, -1 - there)}`;
    }
    if (this.#incarnation === undefined || meta[0]?.["value"] === this.#incarnation) return undefined;
    return otherIncarnation(this.#incarnation, meta[0]?.["value"] as string | undefined);
  }

  /** remote.Y1. A commit, or the resolution of one, found that history went back. */
  lost(detail: string, epoch: number): void {
    // Several connections may detect one break; the first one reports it.
    if (epoch === this.#epoch) this.#lost(detail, undefined);
  }

  #lost(detail: string, connection: Connection | undefined): void {
    // Of several unrecorded breaks, the first one knows the incarnation that a record must have replaced.
    this.#unrecorded = { detail, incarnation: this.#unrecorded?.incarnation ?? this.#incarnation };
    this.#incarnation = undefined;
    this.#break({ kind: "rolled_back", detail }, connection);
    this.#record();
  }

  /** remote.Y3, remote.Y6. Records the last break, unless another process has, and reads the incarnation. */
  #record(): void {
    this.#recording ??= this.#recordAndRead().finally(() => {
      this.#recording = undefined;
    });
  }

  async #recordAndRead(): Promise<void> {
    for (let epoch = -1; epoch !== this.#epoch;) {
      // After another break meanwhile, the record may be lost: repeat.
      epoch = this.#epoch;
      let incarnation: string | undefined;
      try {
        incarnation = await this.#recordBreak(this.#unrecorded);
      } catch {
        // The next commit retries.
        return;
      }
      if (epoch !== this.#epoch) continue;
      this.#incarnation = incarnation;
      this.#unrecorded = undefined;
    }
  }

  /** The incarnation of the store after that. A store that is opened to read records nothing. */
  async #recordBreak(unrecorded: UnrecordedBreak | undefined): Promise<string | undefined> {
    if (this.#host.record === undefined) return this.#host.readIncarnation();
    let incarnation: string | undefined;
    await this.#host.record((tx) => {
      incarnation = this.#putIncarnation(tx, unrecorded);
    });
    return incarnation;
  }

  #putIncarnation({ rows, now }: Tx, unrecorded: UnrecordedBreak | undefined): string {
    const row = rows.get("meta", [INCARNATION_KEY], VALUE);
    // A later incarnation was written by another process; an earlier one is what the database went back to.
    const isRecorded =
      unrecorded === undefined ||
      (unrecorded.incarnation !== undefined && row !== undefined && row.value > unrecorded.incarnation);
    if (row !== undefined && isRecorded) return row.value;
    const value = newIncarnation(this.#host.random, now);
    if (row === undefined) rows.insert("meta", { key: INCARNATION_KEY, value });
    else rows.set("meta", [INCARNATION_KEY], { value });
    if (unrecorded !== undefined)
      rows.add("meta", historyRow({ at: now, kind: "rolled_back", detail: unrecorded.detail }));
    return value;
  }

  #break(change: Omit<HistoryBreak, "at">, connection: Connection | undefined): void {
    this.#epoch += 1;
    this.#writers.clear();
    this.#host.forget(connection);
    const at = this.#host.now();
    for (const listener of this.#listeners) listener({ ...change, at });
  }
}

/** Undefined: no process has written to the store yet. */
export async function readIncarnation(connection: Connection): Promise<string | undefined> {
  const [[row] = []] = await connection.read([lookup("meta", ["key"], [[INCARNATION_KEY]], "none")]);
  return row?.["value"] as string | undefined;
}

const MANY_WRITERS = 64;
const REMOVE_AFTER_MS = 60_000;
