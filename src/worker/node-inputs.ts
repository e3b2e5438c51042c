// NodeInputs: reads the inputs of flow nodes, with one query for all nodes that start together (rules.F7).

import { decode, encode, type Timers } from "../base/index.ts";
import {
  decodeData,
  type InputsRequest,
  type ItemsSpreadData,
  type NodeInput,
  type RunNumber,
  type Store,
} from "../kernel/index.ts";
import { entriesPerPortion } from "../flow/index.ts";

interface PendingRead extends InputsRequest {
  readonly resolve: (inputs: readonly NodeInput[]) => void;
  readonly reject: (error: unknown) => void;
}

/** How many decoded entries with spread items are cached: neighboring items start one after the other. */
const CHUNK_CACHE_SIZE = 256;

export class NodeInputs {
  readonly #store: Store;
  readonly #timers: Timers;
  #pending: PendingRead[] = [];
  readonly #chunks = new Map<string, ItemsSpreadData>();
  readonly #loading = new Map<string, Promise<ItemsSpreadData>>();

  constructor(store: Store, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  clear(): void {
    this.#chunks.clear();
    this.#loading.clear();
  }

  read(run: RunNumber, targets: readonly string[]): Promise<readonly NodeInput[]> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ run, targets, resolve, reject });
      if (this.#pending.length === 1) this.#timers.soon(() => this.#readAll());
    });
  }

  #readAll(): void {
    const asked = this.#pending;
    this.#pending = [];
    this.#store.readInputs(asked.map(({ run, targets }) => ({ run, targets }))).then(
      (all) => asked.forEach(({ resolve }, index) => resolve(all[index] ?? [])),
      (error: unknown) => {
        for (const { reject } of asked) reject(error);
      },
    );
  }

  /** The item of a spread, from the entry `seq`; synchronous when the entry is cached. */
  item(run: RunNumber, seq: number, index: number): Promise<unknown> | { readonly value: unknown } {
    const key = `${run} ${seq}`;
    const items = this.#chunks.get(key);
    if (items !== undefined) return { value: pick(items, index) };
    return this.#load(run, seq, key).then((loaded) => pick(loaded, index));
  }

  /** The keys of the items from the entry `seq` on, as many as one commit queues. */
  async portionKeys(run: RunNumber, seq: number): Promise<readonly (string | null)[]> {
    const [first] = await this.#store.readJournal(run, seq - 1, 1);
    const { items = [] } = first === undefined ? {} : decodeData("ItemsSpread", first.data);
    const entries = await this.#store.readJournal(run, seq - 1, entriesPerPortion(Math.max(1, items.length)));
    const end = entries.findIndex(({ type, command }) => type !== "ItemsSpread" || command !== first?.command);
    return entries
      .slice(0, end === -1 ? undefined : end)
      .flatMap(({ data }) => decodeData("ItemsSpread", data).keys ?? []);
  }

  /** Caches the data of an entry that was just written. */
  cache(run: RunNumber, seq: number, data: string): void {
    this.#cache(`${run} ${seq}`, decodeData("ItemsSpread", data));
  }

  #load(run: RunNumber, seq: number, key: string): Promise<ItemsSpreadData> {
    let loading = this.#loading.get(key);
    if (loading === undefined) {
      loading = this.#store
        .readJournal(run, seq - 1, 1)
        .then(([entry]) => this.#cache(key, entry === undefined ? {} : decodeData("ItemsSpread", entry.data)))
        .finally(() => this.#loading.delete(key));
      this.#loading.set(key, loading);
    }
    return loading;
  }

  #cache(key: string, { from = 0, items = [] }: Partial<ItemsSpreadData>): ItemsSpreadData {
    const chunk = { from, items };
    this.#chunks.set(key, chunk);
    const [oldest] = this.#chunks.keys();
    if (this.#chunks.size > CHUNK_CACHE_SIZE && oldest !== undefined) this.#chunks.delete(oldest);
    return chunk;
  }
}

/** A copy: an attempt must not see what an earlier one did to its item. */
function pick({ from, items }: ItemsSpreadData, index: number): unknown {
  const item = items[index - from];
  // Not `structuredClone`, which drops the properties of errors.
  return typeof item === "object" ? decode(encode(item)) : item;
}
