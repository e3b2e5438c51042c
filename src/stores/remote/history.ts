// History: whether the database still has everything that it acknowledged to this process.
//
// Y1. Each connection has a line in `writers` with the number of its last batch. A commit checks, in the statement that stamps
//     its own line, that this line has the batch that was acknowledged last, and that the lines of other connections have at
//     least theirs. A line that is lower or missing means that the database went back to an earlier state.
// Y2. What a commit has checked is not checked again on its connection: a history without the one is without the other.
// Y3. `incarnation` in `meta` is unique and checked with every commit. The first process that notices changes it, with a row
//     that says when, in one transaction: so every other process notices.
// Y4. Another server than before (a failover), or the same one after a restart, may lack what this process has read of others,
//     even where its own lines are there. It is a break like any other, without a row in `meta`.
// Y5. After a break nothing that was read or held before is used: `epoch` counts them, and listeners are called at once.
// Y6. Nothing is read or written after a break before the incarnation is known: what was read earlier could be of a history that
//     another process has already found to be lost.

import type { Random } from "../../base/index.ts";
import {
  historyRow,
  INCARNATION_KEY,
  newIncarnation,
  otherIncarnation,
  type HistoryBreak,
} from "../../kernel/index.ts";
import type { Acknowledged, HistoryCheck, Link } from "./backend.ts";
import type { WriteLink } from "./links.ts";
import { lookup } from "./reads.ts";
import type { WorkingSet } from "./working-set.ts";

export interface HistoryHost {
  readonly random: Random;
  now(): number;
  monotonic(): number;
  /** Y5. Forgets rows, number blocks and connections; `kept` leads to the right server. */
  forget(kept: Link | undefined): void;
  /** Applies `change` to `meta` in a transaction of its own that waits for nothing (Y6). */
  record(change: (ws: WorkingSet) => void): Promise<void>;
}

interface Line extends Acknowledged {
  readonly at: number;
}

interface Unnoted {
  readonly detail: string;
  /** The one that was known before: only a later one says that another process has noted the break. */
  readonly incarnation: string | undefined;
}

/** Lines of writers are removed after 30 days without a commit; a line that old proves nothing. */
const CHECKED_FOR_MS = 10 * 86_400_000;

export class History {
  readonly #host: HistoryHost;
  readonly #listeners: ((change: HistoryBreak) => void)[] = [];
  /** By writer: what was acknowledged last. */
  readonly #lines = new Map<string, Line>();
  #server: string | undefined;
  /** Undefined until it has been read: then it is not checked. */
  #incarnation: string | undefined;
  /** A break that no row of `meta` tells of yet. */
  #unnoted: Unnoted | undefined;
  #noting: Promise<void> | undefined;
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

  /** Reads the incarnation, or makes the first one. */
  async begin(): Promise<void> {
    // Not before it is in: the commit itself would look for it.
    let incarnation: string | undefined;
    await this.#host.record((ws) => {
      incarnation = this.#putIncarnation(ws, undefined);
    });
    this.#incarnation = incarnation;
    this.#hasBegun = true;
  }

  /** Y6. What everything but `record` waits for. */
  settled(): Promise<void> | undefined {
    return this.#noting;
  }

  /** Y1. What the next commit on a connection checks. */
  checkFor(on: WriteLink): HistoryCheck {
    if (this.#incarnation === undefined && this.#hasBegun) this.#note();
    const others: Acknowledged[] = [];
    const since = this.#host.monotonic() - CHECKED_FOR_MS;
    for (const line of this.#lines.values())
      if (line.writer !== on.link.writer && line.at > since && (on.checked.get(line.writer) ?? 0) < line.batch)
        others.push(line);
    return { previous: on.acknowledged, others, incarnation: this.#incarnation };
  }

  /** Y2 */
  acknowledged(on: WriteLink, batch: number, { others }: HistoryCheck): void {
    const at = this.#host.monotonic();
    on.acknowledged = batch;
    for (const { writer, batch: checked } of others) on.checked.set(writer, checked);
    this.#lines.set(on.link.writer, { writer: on.link.writer, batch, at });
    if (this.#lines.size > MANY_LINES) this.#tidy(at);
  }

  /** Lines of connections that are gone stand behind those that have checked them. */
  #tidy(at: number): void {
    for (const { writer, at: acknowledgedAt } of this.#lines.values())
      if (at - acknowledgedAt > TIDY_AFTER_MS) this.#lines.delete(writer);
  }

  /** Whether the line of a connection may have been removed for its age. */
  isStale({ link }: WriteLink): boolean {
    const line = this.#lines.get(link.writer);
    return line !== undefined && this.#host.monotonic() - line.at > CHECKED_FOR_MS;
  }

  /** Y1, for a process that commits nothing. */
  async check(link: Link): Promise<void> {
    const epoch = this.#epoch;
    const missing = await this.#findMissing(link);
    if (missing !== undefined) this.lost(missing, epoch);
  }

  /** Y4. Before a new connection is used. */
  async connected(link: Link): Promise<void> {
    const before = this.#server;
    if (before === link.server) return;
    if (before === undefined) {
      this.#server = link.server;
      return;
    }
    const missing = await this.#findMissing(link);
    // Others may have looked meanwhile.
    if (this.#server === link.server) return;
    this.#server = link.server;
    if (missing === undefined)
      this.#break({ kind: "failed-over", detail: "another server answers, or the same one after a restart" }, link);
    else this.#lost(missing, link);
  }

  /** What this process knows of and the server of a new connection lacks. */
  async #findMissing(link: Link): Promise<string | undefined> {
    const since = this.#host.monotonic() - CHECKED_FOR_MS;
    const known = [...this.#lines.values()].filter(({ at }) => at > since);
    const [writers = [], meta = []] = await link.read([
      lookup(
        "writers",
        ["writer"],
        known.map(({ writer }) => [writer]),
      ),
      lookup("meta", ["key"], [[INCARNATION_KEY]]),
    ]);
    const found = new Map(writers.map((row) => [row["writer"], row["batch"] as number]));
    for (const { writer, batch } of known) {
      const there = found.get(writer) ?? 0;
      // A writer that was closed has its batch below zero.
      if (Math.max(there, -1 - there) < batch)
        return `it acknowledged ${batch} commits of a connection and has ${Math.max(there, -1 - there)}`;
    }
    if (this.#incarnation === undefined || meta[0]?.["value"] === this.#incarnation) return undefined;
    return otherIncarnation(this.#incarnation, meta[0]?.["value"] as string | undefined);
  }

  /** Y1. A commit, or the question what became of one, found that history went back. */
  lost(detail: string, epoch: number): void {
    // Of several connections that find it, the first one counts.
    if (epoch === this.#epoch) this.#lost(detail, undefined);
  }

  #lost(detail: string, link: Link | undefined): void {
    // Of several breaks without a row, the first one knows the incarnation that a note must have replaced.
    this.#unnoted = { detail, incarnation: this.#unnoted?.incarnation ?? this.#incarnation };
    this.#incarnation = undefined;
    this.#break({ kind: "rolled-back", detail }, link);
    this.#note();
  }

  /** Y3, Y6. Notes the last break, unless another process has, and learns the incarnation. */
  #note(): void {
    this.#noting ??= this.#learn().finally(() => {
      this.#noting = undefined;
    });
  }

  async #learn(): Promise<void> {
    for (let epoch = -1; epoch !== this.#epoch;) {
      // Another break meanwhile: what was written may be gone with it.
      epoch = this.#epoch;
      let incarnation: string | undefined;
      try {
        await this.#host.record((ws) => {
          incarnation = this.#putIncarnation(ws, this.#unnoted);
        });
      } catch {
        // The next commit tries again.
        return;
      }
      if (epoch !== this.#epoch) continue;
      this.#incarnation = incarnation;
      this.#unnoted = undefined;
    }
  }

  #putIncarnation(ws: WorkingSet, unnoted: Unnoted | undefined): string {
    const row = ws.get("meta", "update", INCARNATION_KEY);
    // A later one was made by another process since; an earlier one is what the database went back to.
    const isNoted =
      unnoted === undefined ||
      (unnoted.incarnation !== undefined && row !== undefined && row.value > unnoted.incarnation);
    if (row !== undefined && isNoted) return row.value;
    const value = newIncarnation(this.#host.random, this.#host.now());
    if (row === undefined) ws.insert("meta", { key: INCARNATION_KEY, value });
    else ws.update("meta", row, { value });
    if (unnoted === undefined) return value;
    const event = historyRow({ at: this.#host.now(), kind: "rolled-back", detail: unnoted.detail });
    if (ws.get("meta", "update", event.key) === undefined) ws.insert("meta", { ...event });
    return value;
  }

  #break(change: Omit<HistoryBreak, "at">, link: Link | undefined): void {
    this.#epoch += 1;
    this.#lines.clear();
    this.#host.forget(link);
    const at = this.#host.now();
    for (const listener of this.#listeners) listener({ ...change, at });
  }
}

const MANY_LINES = 64;
const TIDY_AFTER_MS = 60_000;
