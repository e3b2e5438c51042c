// Sequencer: brings the ends of runs into the log of their store.
//
// sequencer.Q1. Any number of processes with the key may run one. A batch is appended only to the log whose end its author read, and only
//   for ends that are still noted (log.L3); otherwise it begins again. A kill loses nothing: the runs are still noted.
// sequencer.Q2. A run record is made of the run's row and the key alone: every sequencer makes the same one.
// sequencer.Q3. The runs of a batch are in the order of their ends.
// sequencer.Q4. A log has one author: with a key of another site nothing is appended. A copy of a store without its key is another site,
//   and begins another log.
// sequencer.Q5. A sweep looks for ends that no commit noted (log.L5): with the first call, a minute later, when every live process knows
//   that the store is federated, and then every hour.
// sequencer.Q6. Heads of other logs ride on the next record, once (F-11): the sequencer never writes a record for them alone.
// sequencer.Q7. With a share it is late rather than in the way of the workers of its process: after each batch it pauses, so that it works
//   for that part of the time only. An end costs 2 µs in the commit that notes it, and 30 µs here.

import { invariant, RepriseError, type Clock, type Timers } from "../../base/index.ts";
import { decodeData, type EndedRun, type RunRecord, type Store } from "../../kernel/index.ts";
import { runRecordOf, saltOf, type SigningKey } from "../../receipts/index.ts";
import { firstEpoch } from "../log/origin.ts";
import { appendRecords, headsThatFit, readOwnEnd, type NewRecord, type OwnEnd, type Seen } from "./own-log.ts";
import { publishedForm, type PublishedForm } from "./published-run.ts";

export interface SequencerOptions {
  readonly store: Store;
  readonly key: SigningKey;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Whether a run is pinned, so that it is kept until it is published or archived. Default: none is. */
  readonly keeps?: ((record: RunRecord) => boolean) | undefined;
  /** The heads of other logs that this site has. Default: none. */
  readonly seen?: (() => Seen) | undefined;
  /** Runs per write, and per page of a sweep. Default: 256, some milliseconds. */
  readonly batch?: number | undefined;
  /** The part of the time that it may work, beside workers of the same process: above 0, at most 1. Default: 1. */
  readonly share?: number | undefined;
}

export interface Sequenced {
  /** How many ends were appended. */
  readonly sequenced: number;
  /** How many of all ends a sweep has found. */
  readonly found: number;
}

/** Runs per write, and per page of a sweep. */
const BATCH = 256;
/** Of batches that others were faster with, one after the other. */
const ATTEMPTS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

export class Sequencer {
  readonly #store: Store;
  readonly #key: SigningKey;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #keeps: (record: RunRecord) => boolean;
  readonly #seen: () => Seen;
  readonly #batch: number;
  readonly #share: number;
  #form: PublishedForm | undefined;
  /** When the next sweep is due, by the monotonic clock. */
  #sweepAt = Number.NEGATIVE_INFINITY;
  #sweeps = 0;
  /** sequencer.Q6. The heads that this process has written. */
  readonly #announced = new Map<string, number>();

  constructor(options: SequencerOptions) {
    const { store, key, clock, timers, keeps = () => false, seen = () => ({}), batch = BATCH, share = 1 } = options;
    invariant(share > 0 && share <= 1, "The share of a sequencer is above 0, and at most 1.");
    this.#store = store;
    this.#key = key;
    this.#clock = clock;
    this.#timers = timers;
    this.#keeps = keeps;
    this.#seen = seen;
    this.#batch = batch;
    this.#share = share;
  }

  /** Appends the records of all noted runs; before that, sweeps if a sweep is due. */
  async run(signal?: AbortSignal): Promise<Sequenced> {
    const found = this.#clock.monotonic() < this.#sweepAt ? 0 : await this.sweep(signal);
    let sequenced = 0;
    for (let attempt = 0; attempt < ATTEMPTS;) {
      signal?.throwIfAborted();
      const startedAt = this.#clock.monotonic();
      const end = await this.#readEnd();
      const ended = await this.#store.listEnded(this.#batch);
      if (ended.length === 0) return { sequenced, found };
      const isAppended = await this.#append(end, ended);
      await this.#pause(startedAt);
      attempt = isAppended ? 0 : attempt + 1;
      if (isAppended) sequenced += ended.length;
    }
    throw new RepriseError("STORE_BUSY", "Other processes append to the log all the time. Try again later.");
  }

  /** sequencer.Q5. Notes the runs that ended without a note; returns how many. */
  async sweep(signal?: AbortSignal): Promise<number> {
    let found = 0;
    for (let after: number | undefined = 0; after !== undefined;) {
      signal?.throwIfAborted();
      const startedAt = this.#clock.monotonic();
      const page = await this.#store.noteEnded(after, this.#batch);
      found += page.noted;
      after = page.next;
      await this.#pause(startedAt);
    }
    this.#sweepAt = this.#clock.monotonic() + (this.#sweeps === 0 ? MINUTE_MS : HOUR_MS);
    this.#sweeps += 1;
    return found;
  }

  /** Lets other work of this process continue: a store in a file answers without waiting. */
  #pause(startedAt: number): Promise<void> {
    // sequencer.Q7
    const ms = (this.#clock.monotonic() - startedAt) * (1 / this.#share - 1);
    return new Promise((resolve) => void (ms > 0 ? this.#timers.set(ms, resolve) : this.#timers.soon(resolve)));
  }

  /** sequencer.Q4 */
  async #readEnd(): Promise<OwnEnd> {
    const end = await readOwnEnd(this.#store, this.#key);
    if (firstEpoch(end.origin) === firstEpoch(this.#key.origin)) return end;
    throw new RepriseError(
      "NOT_ADMITTED",
      `The log of this store belongs to ${end.origin}, and the key here is that of ${this.#key.origin}. Use the key file of that site, \`<home>/key\`, or a store of your own.`,
      { details: { origin: end.origin, key: this.#key.id } },
    );
  }

  async #append(end: OwnEnd, ended: readonly EndedRun[]): Promise<boolean> {
    const records: NewRecord[] = [];
    for (const one of ended) {
      const { run, head } = one.record;
      records.push({ body: { op: "put", k: await this.#recordKey(one) }, run, head });
    }
    const done = ended.map(({ record }) => ({ run: record.run, head: record.head, keep: this.#keeps(record) }));
    const seen = this.#unannounced();
    const appended = await appendRecords(this.#store, end, records, seen, done);
    if (appended === undefined) return false;
    for (const [origin, { n }] of Object.entries(seen)) this.#announced.set(origin, n);
    return true;
  }

  /** sequencer.Q2 */
  async #recordKey({ record, adopted }: EndedRun): Promise<string> {
    this.#form ??= await publishedForm(this.#store);
    const salt = this.#form === "blind" ? await this.#saltOf(record) : undefined;
    return runRecordOf(record, { key: this.#key, salt, isAdopted: adopted }).key;
  }

  async #saltOf(record: RunRecord): Promise<Buffer> {
    const [first] = await this.#store.readJournal(record.run, 0, 1);
    const { salt } = first === undefined ? {} : decodeData("RunStarted", first.data);
    return saltOf(salt, record, this.#key);
  }

  /** sequencer.Q6 */
  #unannounced(): Seen {
    const heads = Object.entries(this.#seen()).filter(([origin, { n }]) => n > (this.#announced.get(origin) ?? 0));
    return headsThatFit(Object.fromEntries(heads));
  }
}
