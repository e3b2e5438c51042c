// For rooms that work on an engine's own store.

import type { Store } from "../kernel/index.ts";

/** The store an engine has open; undefined when it is no engine. */
export function openStoreOf(engine: unknown): Store | undefined {
  const hasStore = typeof engine === "object" && engine !== null && "~store" in engine;
  return hasStore ? (engine["~store"] as Store) : undefined;
}
