// NodeInputs: what ready nodes of flows have got, read in one query for all that start together (F7).

import { decode, encode, type Timers } from "../base/index.ts";
import type { InputsAsked, NodeInput, RunNumber, Store } from "../kernel/index.ts";

interface Asked extends InputsAsked {
  readonly resolve: (inputs: readonly NodeInput[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Entries with items of spreads, decoded: neighbours start one after the other. */
const CHUNKS = 256;

export class NodeInputs {
  readonly #store: Store;
  readonly #timers: Timers;
  #asked: Asked[] = [];
  readonly #chunks = new Map<string, Chunk>();
  readonly #loading = new Map<string, Promise<Chunk>>();

  constructor(store: Store, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  forget(): void {
    this.#chunks.clear();
    this.#loading.clear();
  }

  read(run: RunNumber, targets: readonly string[]): Promise<readonly NodeInput[]> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ run, targets, resolve, reject });
      if (this.#asked.length === 1) this.#timers.soon(() => this.#readAll());
    });
  }

  #readAll(): void {
    const asked = this.#asked;
    this.#asked = [];
    this.#store.readInputs(asked.map(({ run, targets }) => ({ run, targets }))).then(
      (all) => asked.forEach(({ resolve }, index) => resolve(all[index] ?? [])),
      (error: unknown) => {
        for (const { reject } of asked) reject(error);
      },
    );
  }

  /** The item of a spread that stands in the entry `seq`; at once where that is at hand. */
  item(run: RunNumber, seq: number, index: number): Promise<unknown> | { readonly value: unknown } {
    const key = `${run} ${seq}`;
    const items = this.#chunks.get(key);
    if (items !== undefined) return { value: pick(items, index) };
    return this.#load(run, seq, key).then((loaded) => pick(loaded, index));
  }

  /** Data of an entry with items that was just written. */
  keep(run: RunNumber, seq: number, data: string): void {
    this.#keep(`${run} ${seq}`, decode(data) as Partial<Chunk>);
  }

  #load(run: RunNumber, seq: number, key: string): Promise<Chunk> {
    let loading = this.#loading.get(key);
    if (loading === undefined) {
      loading = this.#store
        .readJournal(run, seq - 1, 1)
        .then(([entry]) => this.#keep(key, decode(entry?.data ?? "{}") as Partial<Chunk>))
        .finally(() => this.#loading.delete(key));
      this.#loading.set(key, loading);
    }
    return loading;
  }

  #keep(key: string, { from = 0, items = [] }: Partial<Chunk>): Chunk {
    const chunk = { from, items };
    this.#chunks.set(key, chunk);
    const [oldest] = this.#chunks.keys();
    if (this.#chunks.size > CHUNKS && oldest !== undefined) this.#chunks.delete(oldest);
    return chunk;
  }
}

/** What an entry of type ItemsSpread holds. */
interface Chunk {
  readonly from: number;
  readonly items: readonly unknown[];
}

/** A copy: what an attempt does to its item must not be seen by the next one. */
function pick({ from, items }: Chunk, index: number): unknown {
  const item = items[index - from];
  // By the codec: `structuredClone` drops what errors carry.
  return typeof item === "object" ? decode(encode(item)) : item;
}
