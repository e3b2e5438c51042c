// JournalWriter: appends entries to a run's journal, ahead of the store by the pending commit (hot-run.H1).

import { invariant, type EpochMs } from "../base/index.ts";
import {
  chainAfter,
  markOf,
  type Arrival,
  type Delivery,
  type Entry,
  type EntryType,
  type RunRecord,
  type TurnWrite,
} from "../kernel/index.ts";
import { appended, EMPTY, PendingCommit } from "./pending-commit.ts";

export class JournalWriter {
  readonly record: RunRecord;
  readonly #clock: { now(): EpochMs };
  #head: number;
  #chain: string;
  /** The replay length at the last length check. */
  checkedAt: number;
  /** The entry of a graph's newest full checkpoint: a replay reads from there on. */
  checkpointSeq = 0;

  pending: PendingCommit;

  constructor(record: RunRecord, clock: { now(): EpochMs }) {
    this.record = record;
    this.#clock = clock;
    this.#head = record.head;
    this.checkedAt = record.head;
    this.#chain = record.chain;
    this.pending = new PendingCommit(record.chain);
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

  /** `startedAt`: when the call started whose end the entry records. */
  append(type: EntryType, command: string, data: string, startedAt?: EpochMs): Entry {
    this.#head += 1;
    this.#chain = chainAfter(this.#chain, type, command, data);
    const at = this.#clock.now();
    const tookMs = startedAt === undefined ? undefined : Math.max(0, at - startedAt);
    const entry = { seq: this.#head, type, command, data, at, mark: markOf(this.#chain), tookMs };
    this.pending.entries.push(entry);
    // Each 4 KB of data counts as one more entry.
    this.pending.weight += 1 + (data.length >> 12);
    return entry;
  }

  /** Appends an entry that the code receives once it is durable. `data`: the decoded text, or the part of it that code reads. */
  appendDelivery(type: EntryType, command: string, text: string, data: object, startedAt?: EpochMs): EpochMs {
    const { at } = this.append(type, command, text, startedAt);
    this.pending.deliveries = appended(this.pending.deliveries, { type, command, data, at } as Delivery);
    return at;
  }

  /** Starts the next commit, and returns this one. */
  takePending(): PendingCommit {
    const { pending } = this;
    const { entries, previousChain } = pending;
    const first = entries[0];
    if (first === undefined)
      invariant(previousChain === this.#chain, "a commit without entries does not move the chain");
    else {
      invariant(first.seq === this.#head - entries.length + 1, "entries of a commit are dense");
      invariant(entries[entries.length - 1]?.seq === this.#head, "the last entry of a commit is the head");
    }
    this.pending = new PendingCommit(this.#chain);
    return pending;
  }

  /** The write that commits `pending`, the commit taken last. */
  writeOf<T extends TurnWrite["then"]>(
    pending: PendingCommit,
    token: string,
    read: number,
    then: T,
  ): TurnWrite & { readonly then: T } {
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
      chunks: pending.chunks,
      outgoing: pending.outgoing,
      checkpoints: pending.checkpoints === EMPTY ? undefined : pending.checkpoints,
      then,
    };
  }

  drop(item: string): void {
    this.pending.dropped = appended(this.pending.dropped, item);
  }

  send(to: number | string, arrival: Arrival): void {
    this.pending.messages = appended(this.pending.messages, { to, arrival });
  }

  emit(stream: string, number: number | undefined, data: string): void {
    this.pending.chunks = appended(this.pending.chunks, { stream, number, data });
  }

  addTimer(item: string, name: string, availableAt: EpochMs, seq: number): void {
    this.pending.items = appended(this.pending.items, { item, kind: "timer", name, priority: 0, availableAt, seq });
  }
}
