// JournalWriter: appends entries to a run's journal, ahead of the store by the pending commit (hot-run.H1).

import { invariant, type EpochMs } from "../base/index.ts";
import {
  chainAfter,
  lacksRuntime,
  markOf,
  type Arrival,
  type Delivery,
  type Entry,
  type EntryType,
  type ExecutionFacts,
  type NewChunk,
  type NewPromise,
  type OpenSpan,
  type RunRecord,
  type SpanKind,
  type SpanStart,
  type TraceContext,
  type TurnWrite,
} from "../kernel/index.ts";
import type { PartsOf } from "./worker-parts.ts";
import { appended, EMPTY, PendingCommit } from "./pending-commit.ts";

export type JournalParts = PartsOf<"now" | "options">;

/** What an entry costs besides its payload, as a size. */
export const ENTRY_SIZE = 256;

/** The execution of user code that an entry ends. */
export type EndedExecution = Pick<ExecutionFacts, "execution" | "startedAt"> & Partial<ExecutionFacts>;

export class JournalWriter {
  readonly record: RunRecord;
  readonly #parts: JournalParts;
  #head: number;
  #chain: string;
  /** runtimes.M2. What the next commit adds to the row. */
  #runtime: string | undefined;
  /** The replay length at the last length check. */
  checkedAt: number;
  /** The entry of a graph's newest full checkpoint: a replay reads from there on. */
  checkpointSeq = 0;
  /** About the size of the payloads that a replay reads, and that the code may keep, in characters. */
  size = 0;
  /** The time of the next entries; undefined: now. A recorded answer keeps the time of its origin (fork.F6). */
  at: EpochMs | undefined;

  /** telemetry.T2 */
  readonly trace: TraceContext | undefined;
  /** The span of the work since the turn was claimed; it ends when the turn is released, or with the run. */
  #stretch: OpenSpan | undefined;

  #pending: PendingCommit | undefined;

  constructor(record: RunRecord, parts: JournalParts, trace?: TraceContext) {
    const { runtime, telemetry } = parts.options;
    this.record = record;
    this.#parts = parts;
    this.#head = record.head;
    this.checkedAt = record.head;
    this.#chain = record.chain;
    this.#runtime = lacksRuntime(record.runtime, runtime) ? runtime : undefined;
    this.trace = trace;
    if (telemetry !== undefined) this.beginStretch();
  }

  /** The run is held, again or for the first time. */
  beginStretch(): void {
    this.#stretch = this.begin("invoke", this.record.definition, {});
  }

  /** The span of the work until now, for the write that releases the turn. */
  takeStretch(status: string): OpenSpan | undefined {
    const stretch = this.#stretch;
    this.#stretch = undefined;
    stretch?.finish({ status });
    return stretch;
  }

  /** Undefined without telemetry. */
  begin(kind: SpanKind, name: string, what: Partial<SpanStart>): OpenSpan | undefined {
    const { options, now } = this.#parts;
    const { telemetry } = options;
    if (telemetry === undefined) return undefined;
    const { id: run, definition, version, generation } = this.record;
    return telemetry.begin({ kind, name, run, definition, version, generation, now, parent: this.trace, ...what });
  }

  /** What the run has produced since its last commit; undefined: nothing. */
  get pending(): PendingCommit | undefined {
    return this.#pending;
  }

  /** The next commit, to add to. */
  get next(): PendingCommit {
    return (this.#pending ??= new PendingCommit(this.#chain));
  }

  get head(): number {
    return this.#head;
  }
  /** How many entries a replay reads. */
  get replayLength(): number {
    return this.#head - this.checkpointSeq;
  }
  get chain(): string {
    return this.#chain;
  }

  matches({ id, generation, head, chain }: RunRecord): boolean {
    const { record } = this;
    return record.id === id && record.generation === generation && this.#head === head && this.#chain === chain;
  }

  /** `ran`: the execution whose end the entry records; without a worker, it ran here and ends now. `since`: default now. */
  append(type: EntryType, command: string, data: string, ran?: EndedExecution, since?: EpochMs): Entry {
    const { next } = this;
    this.#head += 1;
    this.#chain = chainAfter(this.#chain, type, command, data);
    const at = since ?? this.at ?? this.#parts.now();
    const entry = {
      seq: this.#head,
      type,
      command,
      data,
      at,
      mark: markOf(this.#chain),
      execution: ran?.execution,
      worker: ran === undefined ? undefined : (ran.worker ?? this.#parts.options.name),
      // Where the entry is the end, the start follows from the duration.
      startedAt: ran?.tookMs === undefined ? undefined : ran.startedAt,
      tookMs: ran === undefined ? undefined : (ran.tookMs ?? Math.max(0, at - ran.startedAt)),
      memo: ran?.memo,
      charge: ran?.charge,
    };
    const traced = ran?.span === undefined ? entry : { ...entry, span: ran.span };
    next.entries.push(traced);
    // Each 4 KB of data counts as one more entry.
    next.weight += 1 + (data.length >> 12);
    next.size += data.length + ENTRY_SIZE;
    this.size += data.length;
    return entry;
  }

  /** Appends an entry that the code receives once it is durable. `data`: the decoded text, or the part of it that code reads. */
  appendDelivery(type: EntryType, command: string, text: string, data: object, ran?: EndedExecution): EpochMs {
    const { at } = this.append(type, command, text, ran);
    this.next.deliveries = appended(this.next.deliveries, { type, command, data, at } as Delivery);
    return at;
  }

  /** What is appended from now on goes into another commit. */
  takePending(): PendingCommit {
    const pending = this.next;
    const { entries, previousChain } = pending;
    const first = entries[0];
    if (first === undefined)
      invariant(previousChain === this.#chain, "a commit without entries does not move the chain");
    else {
      invariant(first.seq === this.#head - entries.length + 1, "entries of a commit are dense");
      invariant(entries[entries.length - 1]?.seq === this.#head, "the last entry of a commit is the head");
    }
    this.#pending = undefined;
    return pending;
  }

  /** The write that commits `pending`, the commit taken last. */
  writeOf<T extends TurnWrite["then"]>(
    pending: PendingCommit,
    token: string,
    read: number,
    then: T,
  ): TurnWrite & { readonly then: T } {
    const runtime = this.#runtime;
    // If this commit is refused, the run in memory is discarded (hot-run.H4).
    this.#runtime = undefined;
    return {
      write: "turn",
      run: this.record.run,
      token,
      head: this.#head - pending.entries.length,
      previousChain: pending.previousChain,
      entries: pending.entries,
      chain: this.#chain,
      read,
      finished: pending.finished,
      items: pending.undroppedItems(),
      dropped: pending.dropped,
      children: pending.children,
      messages: pending.messages,
      settlements: pending.settlements === EMPTY ? undefined : pending.settlements,
      chunks: pending.chunks,
      outgoing: pending.outgoing,
      checkpoints: pending.checkpoints === EMPTY ? undefined : pending.checkpoints,
      promises: pending.promiseChanges(),
      runtime,
      budget: this.record.budget,
      then,
      span: then === "hold" ? undefined : this.takeStretch(then === "release" ? "waiting" : then),
    };
  }

  drop(item: string): void {
    this.next.dropped = appended(this.next.dropped, item);
  }

  /** open-promise.P1 */
  openPromise(promise: NewPromise): void {
    this.next.openedPromises = appended(this.next.openedPromises, promise);
  }

  closePromise(command: string): void {
    this.next.closedPromises = appended(this.next.closedPromises, command);
  }

  send(to: number | string, arrival: Arrival): void {
    this.next.messages = appended(this.next.messages, { to, arrival });
  }

  emit(chunk: NewChunk): void {
    this.next.size += ("data" in chunk ? chunk.data.length : 0) + ENTRY_SIZE;
    this.next.chunks = appended(this.next.chunks, chunk);
  }

  addTimer(item: string, name: string, availableAt: EpochMs, seq: number): void {
    this.next.items = appended(this.next.items, { item, kind: "timer", name, priority: 0, availableAt, seq });
  }
}
