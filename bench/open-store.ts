// Open store: internal access for store benchmarks: an engine's open store, and writes that start runs.

import { randomUUID } from "node:crypto";
import type { Client } from "reprise";
import type { Definition, StoreSource } from "reprise";

export type AnyStore = Awaited<ReturnType<StoreSource["~open"]>>;
type AnyWrite = Parameters<AnyStore["write"]>[0][number];

export function storeOf(engine: Client<any>): AnyStore {
  return (engine as unknown as { readonly "~store": AnyStore })["~store"];
}

/** Starts that any worker may claim. */
export function startsOf(definition: Definition, count: number, input: unknown): AnyWrite[] {
  const started = JSON.stringify({ input });
  return Array.from({ length: count }, () => ({
    write: "start",
    run: {
      id: randomUUID(),
      definition: definition.name,
      kind: "workflow",
      version: 1,
      priority: 0,
      tags: [],
      started,
      runtime: "bench",
    },
  }));
}
