// Ingest: takes a batch of another site's log, with its contents, or nothing of it.
//
// ingest.I1. Everything is checked before anything is written: the signature of the checkpoint, every record, the root over all records
//   up to the checkpoint, every content and every journal.
// ingest.I2. Contents are written first, by their keys: repeating that changes nothing. One transaction of federation.db then makes them
//   visible, together with records, cursor and cells. A process that is killed between the two leaves contents that no record names, and
//   a cursor that asks for the same batch again.
// ingest.I3. A record is visible only under a checkpoint whose root this site has computed. A batch may end before its checkpoint: its
//   records wait, and no reader sees them.
// ingest.I4. Two processes may ingest at once: the transaction checks that the cursor is where the checks began, and begins again if not.
// ingest.I5. A log that does not match its checkpoint is refused, not quarantined: the carrier may be damaged. Only two signed heads prove
//   a fork (forks.ts).

import { isRepriseFederationError, Refusal, refused } from "./refusal.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import type { Content } from "../log/content.ts";
import type { KeyHistory } from "../log/key-history.ts";
import { LogTree } from "../log/log-tree.ts";
import type { Origin } from "../log/origin.ts";
import { parseRecord, type LogRecord } from "../log/record.ts";
import { checkpointRoot } from "./checkpoint-root.ts";
import type { Forks } from "./forks.ts";
import type { HomeParts } from "./home-parts.ts";
import { checkContents, checkLimits, type CheckedContents } from "./incoming.ts";
import type { OriginRow } from "./origins.ts";
import { applyRecords } from "./apply-records.ts";

export interface Batch {
  readonly origin: Origin;
  /** Texts, from the cursor on. Records that are here already are skipped if they are the same. */
  readonly records: readonly string[];
  /** A checkpoint that covers them. The home checks its signature, and its root. */
  readonly checkpoint: Checkpoint;
  readonly contents: readonly Content[];
  readonly journals: readonly { readonly root: string; readonly lines: Uint8Array }[];
  /** The name of the peer that it came from. */
  readonly from?: string;
}

export type IngestOutcome =
  | {
      readonly status: "ingested";
      readonly records: number;
      readonly contents: number;
      readonly duplicates: number;
      /** Contents that were left out, because they are erased. */
      readonly erased?: number;
    }
  | { readonly status: "unchanged" }
  /** Records after `at` are quarantined. */
  | { readonly status: "forked"; readonly at: number }
  | { readonly status: "refused"; readonly code: string; readonly reason: string };

/** The records of a batch that are new, checked. */
interface CheckedRecords {
  readonly records: readonly LogRecord[];
  readonly texts: readonly string[];
  /** Of the log after them. */
  readonly tree: LogTree;
  readonly clock: number;
  readonly duplicates: number;
}

export class Ingest {
  readonly #parts: HomeParts;
  readonly #forks: Forks;

  constructor(parts: HomeParts, forks: Forks) {
    this.#parts = parts;
    this.#forks = forks;
  }

  ingest(batch: Batch): IngestOutcome {
    try {
      checkLimits(batch, this.#parts.limits);
      for (;;) {
        const outcome = this.#attempt(batch);
        if (outcome !== undefined) return outcome;
      }
    } catch (error) {
      if (error instanceof Refusal) return refused(error.code, error.message);
      if (isRepriseFederationError(error)) return refused(error.code, error.message);
      throw error;
    }
  }

  /** Undefined: another process was faster (ingest.I4). */
  #attempt(batch: Batch): IngestOutcome | undefined {
    const { origins } = this.#parts;
    let row = origins.find(batch.origin);
    if (row !== undefined && row.cursor > row.size) {
      this.advance(batch.origin, batch.from);
      row = origins.find(batch.origin);
    }
    if (row === undefined)
      throw new Refusal("NOT_ADMITTED", `${batch.origin} is not admitted here: nothing of its log is taken.`);
    if (row.status === "forked") return { status: "forked", at: row.size };
    const keys = origins.keys(row);
    const checkpoint = openSame(batch.checkpoint, keys);
    if (checkpoint.size <= row.size) {
      const at = this.#forks.compareHead(row, checkpoint, batch.from);
      if (at !== undefined) return { status: "forked", at };
      if (batch.records.length + batch.contents.length + batch.journals.length === 0) return { status: "unchanged" };
    }
    const checked = this.#checkRecords(row, batch, checkpoint);
    const contents = checkContents(batch, this.#parts);
    // ingest.I2
    const put = contents.put();
    const count = checked.records.length;
    const duplicates = checked.duplicates + put.duplicates;
    const isWritten = this.#write(row, checked, checkpoint, contents, duplicates, batch.from);
    if (!isWritten) return undefined;
    if (row.cursor > row.size) this.advance(batch.origin, batch.from);
    this.#parts.erasure.finish();
    if (count === 0 && put.stored === 0) return { status: "unchanged" };
    const erased = contents.erased === 0 ? {} : { erased: contents.erased };
    return { status: "ingested", records: count, contents: put.stored, duplicates, ...erased };
  }

  /** ingest.I1 */
  #checkRecords(row: OriginRow, { records: texts }: Batch, checkpoint: Checkpoint): CheckedRecords {
    const skip = this.#skipKnown(row, texts);
    const added = texts.slice(skip);
    const tree = LogTree.of(row.cursorPeaks, row.cursor);
    for (const text of added) tree.append(text);
    // Before the records are read: those of another branch would be found to break a rule.
    if (tree.size === checkpoint.size && tree.size > row.size) this.#checkRoot(row, tree, checkpoint);
    const expected = { origin: row.id, n: row.cursor, after: row.cursorClock, clockOf: this.#clocks() };
    const records = added.map((text) => {
      expected.n += 1;
      const record = parseRecord(text, expected);
      expected.after = record.c;
      return record;
    });
    if (tree.size > Math.max(checkpoint.size, row.cursor))
      throw new Refusal(
        "RECORD_INVALID",
        `The batch of ${row.id} ends with record ${tree.size}, and its checkpoint covers ${checkpoint.size}: a checkpoint must cover every record.`,
      );
    const keyAt = records.findIndex(({ op }) => op === "key");
    // key-history.H2
    if (keyAt !== -1 && (keyAt !== records.length - 1 || records[keyAt]!.n !== checkpoint.size))
      throw new Refusal(
        "RECORD_INVALID",
        `Record ${records[keyAt]!.n} of ${row.id} names the next key. It is taken as the last record of a batch, under the checkpoint of that size that the key before signed.`,
      );
    return { records, texts: added, tree, clock: expected.after, duplicates: skip };
  }

  /** How many records of the batch are here. */
  #skipKnown(row: OriginRow, texts: readonly string[]): number {
    if (texts.length === 0) return 0;
    const first = numberIn(texts[0]!);
    if (first === undefined || first > row.cursor + 1)
      throw new Refusal(
        "OUTDATED_CURSOR",
        `The batch of ${row.id} begins with record ${first ?? "without a number"}; this site needs record ${row.cursor + 1} next.`,
      );
    const count = Math.min(texts.length, row.cursor + 1 - first);
    const known = this.#parts.log.read(row.number, first - 1, row.cursor, count);
    const other = known.find(({ rec }, i) => rec !== texts[i]);
    if (other !== undefined)
      throw new Refusal(
        "ROOT_MISMATCH",
        `Record ${other.n} of ${row.id} differs from the one that is here. The carrier is damaged, or the log has two branches.`,
      );
    return count;
  }

  /** Clocks of records of other origins that are visible here. */
  #clocks(): (origin: Origin, n: number) => number | undefined {
    const rows = new Map<Origin, OriginRow | undefined>();
    return (origin, n) => {
      if (!rows.has(origin)) rows.set(origin, this.#parts.origins.find(origin));
      const row = rows.get(origin);
      return row === undefined || n > row.size ? undefined : this.#parts.log.clockOf(row.number, n);
    };
  }

  /** ingest.I3, ingest.I5 */
  #checkRoot(row: OriginRow, tree: LogTree, checkpoint: Checkpoint): void {
    if (tree.root().equals(checkpointRoot(checkpoint))) return;
    this.#dropPending(row);
    throw new Refusal(
      "ROOT_MISMATCH",
      `The records of ${row.id} have the root ${tree.root().toString("base64")} at ${tree.size}; its checkpoint says ${checkpoint.root}. The carrier is damaged, or the log has two branches.`,
    );
  }

  /** Records that waited for a checkpoint that they do not fit. */
  #dropPending({ number, size, cursor }: OriginRow): void {
    if (cursor === size) return;
    this.#parts.db.transact(() => {
      const { db } = this.#parts;
      db.run(
        "delete from log where origin = ? and n > ? and n > (select size from origin where number = ?)",
        ...[number, size, number],
      );
      db.run("update origin set cursor = size, cursor_clock = clock, cursor_peaks = peaks where number = ?", number);
    });
  }

  /** ingest.I2, ingest.I4 */
  #write(
    row: OriginRow,
    { records, texts, tree, clock }: CheckedRecords,
    checkpoint: Checkpoint,
    contents: CheckedContents,
    duplicates: number,
    from: string | undefined,
  ): boolean {
    const { db, log, origins } = this.#parts;
    return db.transact(() => {
      const now = origins.find(row.id)!;
      if (now.cursor !== row.cursor || now.size !== row.size || now.status !== row.status) return false;
      contents.index();
      this.#parts.counters.add("duplicates", duplicates);
      for (const [i, record] of records.entries()) log.insert(row.number, record, texts[i]!);
      if (records.length > 0)
        db.run(
          "update origin set cursor = ?, cursor_clock = ?, cursor_peaks = ? where number = ?",
          ...[tree.size, clock, tree.peaks(), row.number],
        );
      if (tree.size !== checkpoint.size || checkpoint.size <= row.size) return true;
      origins.keepCheckpoint(row.number, checkpoint);
      // Records that waited are applied page by page afterwards.
      if (row.cursor === row.size) applyRecords(this.#parts, { row, records, tree, from, written: contents.written });
      return true;
    });
  }

  /** Makes visible what waited and is under a checkpoint now, page by page. A process that was killed here is continued by the next. */
  advance(origin: Origin, from?: string): void {
    const { db, log, origins, limits } = this.#parts;
    for (let isDone = false; !isDone;)
      isDone = db.transact(() => {
        const row = origins.find(origin)!;
        const upTo = row.status === "forked" ? row.size : origins.coveredSize(row);
        if (upTo <= row.size) return true;
        const page = log.read(row.number, row.size, upTo, limits.batchRecords);
        const tree = LogTree.of(row.peaks, row.size);
        for (const { rec } of page) tree.append(rec);
        applyRecords(this.#parts, { row, records: page.map(({ rec }) => JSON.parse(rec) as LogRecord), tree, from });
        return tree.size === upTo;
      });
  }
}

function openSame(checkpoint: Checkpoint, keys: KeyHistory): Checkpoint {
  const opened = keys.open(checkpoint.note);
  if (opened.size === 0 && !checkpointRoot(opened).equals(LogTree.empty().root()))
    throw new Refusal("CHECKPOINT_INVALID", `The checkpoint of ${opened.origin} has no records, and a root of some.`);
  if (opened.origin === checkpoint.origin && opened.size === checkpoint.size && opened.root === checkpoint.root)
    return opened;
  throw new Refusal("CHECKPOINT_INVALID", `The checkpoint of ${checkpoint.origin} is not what its note says.`);
}

/** The number of a record, before the record is checked. */
function numberIn(text: string): number | undefined {
  try {
    const { n } = JSON.parse(text) as { readonly n?: unknown };
    return Number.isSafeInteger(n) && (n as number) >= 1 ? (n as number) : undefined;
  } catch {
    return undefined;
  }
}
