// Open threads: the threads of the store that a saver uses. Options are checked at once; the store is opened on first use.

import { inspect } from "node:util";
import {
  checkCodec,
  RepriseError,
  systemClock,
  systemRandom,
  systemTimers,
  type EpochMs,
  type PayloadCodec,
} from "../base/index.ts";
import { checkDurability, openStoreOf, type Engine } from "../engine/index.ts";
import type { Store } from "../kernel/index.ts";
import { storeOf, threadsOf, type StoreSource, type Threads } from "../stores/index.ts";

export interface StoreOptions {
  readonly store: string | StoreSource | Engine;
  readonly codec?: PayloadCodec | undefined;
  readonly durability?: "full" | "relaxed" | undefined;
}

export interface OpenThreads {
  readonly threads: Threads;
  /** The store's time. */
  now(): EpochMs;
  /** Closes the store only if it was opened here. */
  close(): Promise<void>;
}

/** Checks the options, and returns the function that opens the store. */
export function opener({ store, codec, durability }: StoreOptions): () => Promise<OpenThreads> {
  const shared = openStoreOf(store);
  if (shared !== undefined) {
    const given = codec === undefined ? durability && "durability" : "codec";
    if (given !== undefined)
      throw new RepriseError("BAD_OPTIONS", `RepriseSaver: ${given} belongs to the engine. Pass it to createEngine.`);
    const threads = threadsOf(shared);
    return async () => ({ threads, now: () => shared.now(), close: async () => undefined });
  }
  if (typeof store === "object" && store !== null && !("~open" in store))
    throw new RepriseError(
      "BAD_OPTIONS",
      `RepriseSaver: expected a store's address, sqlite(…) or an engine as \`store\`, got ${inspect(store, { depth: 0 })}.`,
    );
  const source = storeOf(store);
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom };
  const options = { ...ports, codec: checkCodec(codec), durability: checkDurability(durability ?? "full") };
  return async () => {
    const opened: Store = await source["~open"](options);
    return { threads: threadsOf(opened), now: () => opened.now(), close: () => opened.close() };
  };
}
