// The store of an engine, for rooms that work on it directly.

import type { Store } from "../kernel/index.ts";

/** Whether a client or an engine drains or was closed: it starts no more runs. */
export function isClosing(engine: unknown): boolean {
  return typeof engine === "object" && engine !== null && "~isClosing" in engine && engine["~isClosing"] === true;
}

/** The open store of a client or an engine; undefined for anything else. */
export function openStoreOf(engine: unknown): Store | undefined {
  const hasStore = typeof engine === "object" && engine !== null && "~store" in engine;
  return hasStore ? (engine["~store"] as Store) : undefined;
}
