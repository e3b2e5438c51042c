// Draft: the end of a run's journal as its holder writes it, ahead of the store by what is not committed yet (H1).

import type { EpochMs } from "../base/index.ts";
import { chainAfter, markOf, type Arrival, type Entry, type EntryType, type RunRecord } from "../kernel/index.ts";
import { added, Batch, type Delivery } from "./batch.ts";

export class Draft {
  readonly record: RunRecord;
  readonly #clock: { now(): EpochMs };
  #head: number;
  #chain: string;
  /** How long the journal was when somebody last looked. */
  lookedAt: number;
  /** The newest entry with which the whole state of a graph is kept: who brings the run back reads from there on. */
  keptAt = 0;
  /** What goes into the next commit. */
  batch: Batch;

  constructor(record: RunRecord, clock: { now(): EpochMs }) {
    this.record = record;
    this.#clock = clock;
    this.#head = record.head;
    this.lookedAt = record.head;
    this.#chain = record.chain;
    this.batch = new Batch(record.chain);
  }

  get head(): number {
    return this.#head;
  }
  /** How many entries must be read to bring the run back. */
  get length(): number {
    return this.#head - this.keptAt;
  }
  get chain(): string {
    return this.#chain;
  }

  is({ id, generation, head, chain }: RunRecord): boolean {
    const { record } = this;
    return record.id === id && record.generation === generation && this.#head === head && this.#chain === chain;
  }

  /** `startedAt`: of the call the entry ends. */
  append(type: EntryType, command: string, data: string, startedAt?: EpochMs): Entry {
    this.#head += 1;
    this.#chain = chainAfter(this.#chain, type, command, data);
    const at = this.#clock.now();
    const tookMs = startedAt === undefined ? undefined : Math.max(0, at - startedAt);
    const entry = { seq: this.#head, type, command, data, at, mark: markOf(this.#chain), tookMs };
    this.batch.entries.push(entry);
    // 4 KB count as one more.
    this.batch.weight += 1 + (data.length >> 12);
    return entry;
  }

  /** An entry the code is given once it is durable. */
  appendDelivery(type: EntryType, command: string, text: string, data: Delivery["data"], startedAt?: EpochMs): EpochMs {
    const { at } = this.append(type, command, text, startedAt);
    this.batch.deliveries = added(this.batch.deliveries, { type, command, data, at });
    return at;
  }

  drop(item: string): void {
    this.batch.dropped = added(this.batch.dropped, item);
  }

  send(to: number | string, arrival: Arrival): void {
    this.batch.messages = added(this.batch.messages, { to, arrival });
  }

  emit(stream: string, number: number | undefined, data: string): void {
    this.batch.emits = added(this.batch.emits, { stream, number, data });
  }

  addTimer(item: string, name: string, availableAt: EpochMs, seq: number): void {
    this.batch.items = added(this.batch.items, { item, kind: "timer", name, priority: 0, availableAt, seq });
  }
}
