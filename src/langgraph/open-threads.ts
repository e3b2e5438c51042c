// Open threads: from what a saver was given to the threads of a store. Checked at once, opened on first use.

import { inspect } from "node:util";
import { checkCodec, RepriseError, systemClock, systemRandom, systemTimers, type PayloadCodec } from "../base/index.ts";
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
  /** Closes what was opened for it, and nothing else. */
  close(): Promise<void>;
}

/** Everything the options say is checked when this is called; the answer opens the store. */
export function opener({ store, codec, durability }: StoreOptions): () => Promise<OpenThreads> {
  const shared = openStoreOf(store);
  if (shared !== undefined) {
    const given = codec === undefined ? durability && "durability" : "codec";
    if (given !== undefined)
      throw new RepriseError("BAD_OPTIONS", `RepriseSaver: ${given} is the engine's own. Give it to createEngine.`);
    const threads = threadsOf(shared);
    return async () => ({ threads, close: async () => undefined });
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
    return { threads: threadsOf(opened), close: () => opened.close() };
  };
}
