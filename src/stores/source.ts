// StoreSource: a store named but not opened. What `sqlite(path)` gives and `createEngine({ store })` takes.

import { inspect } from "node:util";
import { RepriseError, type Clock, type PayloadCodec, type Random, type Timers } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import { openSqliteStore } from "./sqlite/sqlite-store.ts";

export interface OpenOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly durability: "full" | "relaxed";
  /** What payloads are written and read with. */
  readonly codec?: PayloadCodec | undefined;
}

/** A database to open; made by `sqlite(path)`. */
export interface StoreSource {
  readonly "~open": (options: OpenOptions) => Promise<Store>;
}

/**
 * Names a SQLite file, or `:memory:`.
 *
 * @example
 * ```ts
 * import { createEngine } from "reprise";
 * import { sqlite } from "reprise/sqlite";
 * await using engine = await createEngine({ store: sqlite(":memory:"), definitions: [] });
 * ```
 */
export function sqlite(path: string): StoreSource {
  if (typeof path !== "string" || path === "")
    throw new RepriseError("BAD_STORE_URL", `sqlite: expected the path of a file or ":memory:", got ${inspect(path)}.`);
  return { "~open": (options) => openSqliteStore({ path, ...options }) };
}
