// The store of an engine, for rooms that work on it directly.

import type { Store } from "../kernel/index.ts";

/** The open store of a client or an engine; undefined for anything else. */
export function openStoreOf(engine: unknown): Store | undefined {
  const hasStore = typeof engine === "object" && engine !== null && "~store" in engine;
  return hasStore ? (engine["~store"] as Store) : undefined;
}
