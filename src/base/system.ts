// System: the machine's clock, timers and entropy, as ports. The only file in src that may touch them (test/tidy.test.ts
// checks this); other code takes the ports as arguments.

import crypto from "node:crypto";
// The global of this name has other members where a program is compiled with the types of browsers.
import { performance } from "node:perf_hooks";
import { RepriseError } from "./errors.ts";
import type { Clock, Random, Timers } from "./ports.ts";

// Captured once: the determinism guard and fake timers of tests replace the globals later, and must not affect the engine.
const { now } = Date;
const monotonic = performance.now.bind(performance);
const { setTimeout, clearTimeout, setImmediate } = globalThis;
const { randomBytes } = crypto;

// Marks of @sinonjs/fake-timers (Vitest, Jest, Sinon) and of node:test.
const isFake = "clock" in setTimeout || "isFake" in Date || "isMock" in Date;

/** Refuses to work with a clock that was already fake when this file was loaded: with it, every wait would be endless. */
export function requireRealTime(what: string): void {
  if (!isFake) return;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: fake timers were installed before "reprise" was loaded, so it has no real clock. Import "reprise" first, then install them; or, for virtual time, use createTestEngine and engine.clock without them.`,
  );
}

const eventLoopUtilization = performance.eventLoopUtilization.bind(performance);

export const systemClock: Clock = { now, monotonic };

// Above this, setTimeout fires at once.
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export const systemTimers: Timers = {
  set(ms, fn, options) {
    const dueAt = monotonic() + ms;
    const keepAlive = options?.ref ?? true;
    let timer: NodeJS.Timeout;
    const arm = (waitMs: number): void => {
      const far = waitMs > MAX_TIMEOUT_MS;
      timer = setTimeout(far ? () => arm(dueAt - monotonic()) : fn, far ? MAX_TIMEOUT_MS : waitMs);
      if (!keepAlive) timer.unref();
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
  soon(fn) {
    setImmediate(fn);
  },
};

/** What keeps this process alive, such as `Timeout` or `TCPSocketWrap`. */
export function activeResources(): readonly string[] {
  return process.getActiveResourcesInfo();
}

/** The total idle time of this thread in milliseconds. */
export function idleMs(): number {
  return eventLoopUtilization().idle;
}

export const systemRandom: Random = {
  bytes: (count) => new Uint8Array(randomBytes(count)),
  id: uuidV7,
  token: () => draw(16).toString("hex"),
};

// Drawn in blocks: requesting 10 bytes from the system takes 6 µs, a large part of starting a run.
const BLOCK_BYTES = 4_096;
let block = Buffer.alloc(0);

/** Returns each byte once. */
function draw(count: number): Buffer {
  if (block.length < count) block = randomBytes(BLOCK_BYTES);
  const drawn = block.subarray(0, count);
  block = block.subarray(count);
  return drawn;
}

// Not crypto.randomUUIDv7: it came with Node 24.16, one release after the oldest supported version.
function uuidV7(): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(now(), 0, 6);
  draw(10).copy(bytes, 6);
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f);
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f);
  const hex = bytes.toString("hex");
  // `join` makes one flat string. A template keeps its parts in memory, also once the whole has been read.
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
