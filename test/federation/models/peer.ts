// A peer as a state machine: its own log, the logs it holds, its cells. It does no I/O; a world carries its messages.

import {
  batchLength,
  closedCut,
  isInSnapshot,
  LogTree,
  nextRecord,
  parseRecord,
  recordText,
  snapshotId,
  stateHash,
  type Cell,
  type Checkpoint,
  type LogRecord,
  type Origin,
  type RecordBody,
  type SnapshotHeads,
} from "../../../src/federation/index.ts";
import type { Rules } from "./rules.ts";
import type { HeadSigner } from "./head-signer.ts";

export interface Batch {
  readonly origin: Origin;
  /** The number of the first record. */
  readonly from: number;
  readonly texts: readonly string[];
  readonly checkpoint: Checkpoint;
}

export interface HeldLog {
  /** The last record that was taken. */
  cursor: number;
  readonly texts: string[];
  readonly records: LogRecord[];
  tree: LogTree;
  /** By size. */
  readonly checkpoints: Map<number, Checkpoint>;
}

export interface TakenSnapshot {
  readonly id: string;
  readonly heads: SnapshotHeads;
  /** The greatest clock in it, for the mutant. */
  readonly clock: number;
  readonly hash: string;
}

export type Ingested = "ingested" | "duplicate" | "gap" | "refused" | "crashed";

export class Peer {
  readonly held = new Map<Origin, HeldLog>();
  /** In the order of their arrival. */
  readonly arrived: LogRecord[] = [];
  readonly cells = new Map<string, Cell>();
  /** What the author of a tombstone had seen of the cell. */
  readonly sawAt = new Map<LogRecord, readonly LogRecord[]>();
  readonly origin: Origin;
  readonly #rules: Rules;
  readonly #signer: HeadSigner;
  #seen = new Map<Origin, { n: number; c: number }>();

  constructor(origin: Origin, rules: Rules, signer: HeadSigner) {
    this.origin = origin;
    this.#rules = rules;
    this.#signer = signer;
    this.log(origin);
  }

  log(origin: Origin): HeldLog {
    let log = this.held.get(origin);
    if (log === undefined) {
      log = { cursor: 0, texts: [], records: [], tree: LogTree.empty(), checkpoints: new Map() };
      this.held.set(origin, log);
    }
    return log;
  }

  // ── writing ──

  /** A sequencer reads the end of the log and prepares the records that follow it. */
  prepare(bodies: readonly RecordBody[]): { readonly expect: number; readonly records: readonly LogRecord[] } {
    const { records } = this.log(this.origin);
    let end = { origin: this.origin, size: records.length, clock: records.at(-1)?.c ?? 0 };
    const prepared = bodies.map((body, i) => {
      const record = nextRecord(end, body, i === 0 ? Object.fromEntries(this.#seen) : {});
      end = { origin: this.origin, size: record.n, clock: record.c };
      return record;
    });
    return { expect: records.length, records: prepared };
  }

  /** The fenced write. False: another sequencer was first. */
  append({ expect, records }: ReturnType<Peer["prepare"]>): boolean {
    const log = this.log(this.origin);
    if (this.#rules.isFenced && log.records.length !== expect) return false;
    for (const record of records) {
      if (record.op === "tomb")
        this.sawAt.set(
          record,
          this.arrived.filter((one) => one.op === "put" && this.#rules.cellOf(one) === record.x),
        );
      this.#take(log, record, recordText(record));
      if (record.op === "key") {
        // The old key signs the size of the record that names the next one.
        this.#checkpoint(log);
        this.#signer.rotate(this.origin, record);
      }
    }
    log.cursor = log.records.length;
    this.#seen = new Map();
    return true;
  }

  #take(log: HeldLog, record: LogRecord, text: string): void {
    log.texts.push(text);
    log.records.push(record);
    log.tree.append(text);
    this.arrived.push(record);
    const id = this.#rules.cellOf(record);
    if (id !== undefined) this.cells.set(id, this.#rules.join(this.cells.get(id), record));
  }

  /** Signed when something is handed out. */
  #checkpoint(log: HeldLog): Checkpoint {
    const size = log.tree.size;
    const checkpoint = log.checkpoints.get(size) ?? this.#signer.signHead(this.origin, size, log.tree.root());
    log.checkpoints.set(size, checkpoint);
    return checkpoint;
  }

  // ── handing on ──

  /** What a peer asks first, and all that it asks once it holds everything. */
  heads(): Map<Origin, number> {
    return new Map([...this.held].map(([origin, { cursor }]) => [origin, cursor]));
  }

  /** The next batch behind a cursor, in original bytes; undefined: there is none. */
  batchAfter(origin: Origin, cursor: number): Batch | undefined {
    const log = this.held.get(origin);
    if (log === undefined || log.cursor <= cursor) return undefined;
    if (origin === this.origin) this.#checkpoint(log);
    const size = cursor + batchLength(log.records.slice(cursor));
    const checkpoint = log.checkpoints.get(size);
    if (checkpoint === undefined) return undefined;
    return { origin, from: cursor + 1, texts: log.texts.slice(cursor, size), checkpoint };
  }

  // ── taking ──

  /** A crash loses what was not committed. */
  ingest({ origin, from, texts, checkpoint }: Batch, isCrash: boolean): Ingested {
    if (origin === this.origin) return "duplicate";
    const log = this.log(origin);
    if (checkpoint.size <= log.cursor) return "duplicate";
    if (from > log.cursor + 1) return "gap";
    const taken: [LogRecord, string][] = [];
    try {
      this.#signer.open(checkpoint, log.records);
      const tree = log.tree.copy();
      let after = log.records.at(-1)?.c ?? 0;
      for (let n = log.cursor + 1; n <= checkpoint.size; n += 1) {
        const text = texts[n - from]!;
        const clockOf = (of: Origin, at: number): number | undefined => this.held.get(of)?.records[at - 1]?.c;
        const record = parseRecord(text, { origin, n, after, clockOf });
        if (record.op === "key" && n !== checkpoint.size) return "refused";
        after = record.c;
        tree.append(text);
        taken.push([record, text]);
      }
      if (this.#rules.checksRoot && tree.root().toString("base64") !== checkpoint.root) return "refused";
    } catch {
      return "refused";
    }
    if (!this.#rules.isAtomic) log.cursor = checkpoint.size;
    if (isCrash) return "crashed";
    for (const [record, text] of taken) this.#take(log, record, text);
    log.cursor = checkpoint.size;
    log.checkpoints.set(checkpoint.size, checkpoint);
    const last = log.records.at(-1)!;
    this.#seen.set(origin, { n: last.n, c: last.c });
    return "ingested";
  }

  // ── reading ──

  get size(): number {
    return this.arrived.length;
  }

  /** The kept state. */
  hash(): string {
    return this.#hashOf(this.cells);
  }

  #hashOf(cells: ReadonlyMap<string, Cell>): string {
    const lines: [string, string, string][] = [];
    for (const [id, cell] of cells) {
      const state = this.#rules.stateOf(cell);
      if (state !== undefined) lines.push([id, cell.add?.id ?? "", state]);
    }
    return stateHash(lines);
  }

  /** The state of some records, folded from nothing in merge order. */
  fold(records: readonly LogRecord[]): string {
    const cells = new Map<string, Cell>();
    for (const record of [...records].sort(this.#rules.compare)) {
      const id = this.#rules.cellOf(record);
      if (id !== undefined) cells.set(id, this.#rules.join(cells.get(id), record));
    }
    return this.#hashOf(cells);
  }

  /** Every record, in merge order. */
  sorted(): LogRecord[] {
    return [...this.arrived].sort(this.#rules.compare);
  }

  snapshot(): TakenSnapshot {
    const seenOf = (origin: Origin): readonly LogRecord[] => this.held.get(origin)?.records.filter(({ y }) => y) ?? [];
    const cut = closedCut(new Map([...this.held].map(([origin, log]) => [origin, log.records.length])), seenOf);
    const heads: Record<Origin, readonly [number, string]> = {};
    for (const [origin, n] of cut) if (n > 0) heads[origin] = [n, this.#rootOf(origin, n)];
    const clock = Math.max(0, ...this.arrived.filter((one) => isInSnapshot(heads, one)).map(({ c }) => c));
    const taken = { id: snapshotId(heads), heads, clock, hash: "" };
    return { ...taken, hash: this.read(taken) };
  }

  #rootOf(origin: Origin, size: number): string {
    return LogTree.ofTexts(this.log(origin).texts.slice(0, size)).root().toString("hex");
  }

  /** The state of a snapshot: now, or long after. */
  read({ heads, clock }: TakenSnapshot): string {
    const isIn = (record: LogRecord): boolean =>
      this.#rules.bound === "vector" ? isInSnapshot(heads, record) : record.c <= clock;
    return this.fold(this.arrived.filter(isIn));
  }
}
