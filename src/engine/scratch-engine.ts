// ScratchEngine: an engine on a store in memory, with the definitions of another. It claims every kind of work and delivers
// no message to the outside.

import { systemClock, systemTimers } from "../base/index.ts";
import { Labels, type Store } from "../kernel/index.ts";
import { storeOf } from "../stores/index.ts";
import type { ClientParts } from "./client-core.ts";
import { EngineCore, type EngineParts } from "./engine.ts";
import { DEFAULT_CONCURRENCY, DEFAULT_LEASE_MS, defaultDeterminism } from "./engine-options.ts";
import type { Scratch } from "./resume-replay.ts";

/** `parts` of an engine may say more, such as its concurrency or the stubs of a test. */
type ScratchParts = Omit<ClientParts, "store" | "kind"> & Partial<EngineParts>;

export async function openScratch(parts: ScratchParts): Promise<Scratch> {
  const { random } = parts;
  const ports = { clock: systemClock, timers: systemTimers, random, durability: "relaxed" } as const;
  const store = await storeOf("sqlite::memory:")["~open"](ports);
  return Object.assign(openCopyEngine(parts, store, false), { store });
}

/** `polls`: another process may have worked on the store before. */
export function openCopyEngine(parts: ScratchParts, store: Store, polls: boolean): EngineCore {
  return new EngineCore({
    name: "replay",
    host: "replay",
    pid: process.pid,
    concurrency: DEFAULT_CONCURRENCY,
    leaseMs: DEFAULT_LEASE_MS,
    determinism: defaultDeterminism(),
    ...parts,
    store,
    timers: systemTimers,
    works: true,
    isCopy: true,
    polls,
    heartbeats: true,
    queues: undefined,
    labels: Labels.any,
    outbox: new Map(),
    newSalt: undefined,
  });
}
