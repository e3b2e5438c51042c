// Crash world: an in-memory store and a lease of 0 ms, so that the next process takes over as soon as the last one has crashed.

import { systemRandom, systemTimers, type EpochMs } from "../base/index.ts";
import { storeOf } from "../stores/index.ts";
import { guardMode } from "../engine/index.ts";
import { Redaction, Labels, silentLogger, type AnyTask, type Definition } from "../kernel/index.ts";
import type { TestWorld } from "./test-process.ts";
import type { Stub } from "./stub.ts";
import { createVirtualTime } from "./virtual-clock.ts";

export async function createCrashWorld(
  definitions: readonly (Definition | AnyTask)[],
  stubs: readonly Stub[] = [],
  start?: EpochMs,
): Promise<TestWorld> {
  const time = createVirtualTime(start);
  const store = await storeOf("sqlite::memory:")["~open"]({
    clock: time.clock,
    timers: systemTimers,
    random: systemRandom,
    durability: "full",
  });
  return {
    time,
    store,
    definitions,
    stubs,
    logger: silentLogger,
    redaction: new Redaction(),
    payloadLimit: undefined,
    entryLimit: undefined,
    salted: false,
    works: true,
    queues: undefined,
    labels: Labels.any,
    concurrency: 256,
    leaseMs: 0,
    outbox: new Map(),
    retention: undefined,
    guard: guardMode(undefined),
  };
}
