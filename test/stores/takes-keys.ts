// A store that was migrated to the schema with idempotency keys.

import { expect } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { Store } from "../../src/kernel/index.ts";

/** Options of a remote store in real time. */
export const REAL = {
  clock: systemClock,
  timers: systemTimers,
  random: systemRandom,
  durability: "full",
  optimistic: true,
} as const;

/** Its queue `mail` is of before; `writeAsBefore` writes the queue `old` as a process of the version before does. */
export async function takesKeys(store: Store, writeAsBefore: () => Promise<unknown>): Promise<void> {
  const asked = { request: "r", body: "b" };
  expect(await store.reserveKey(asked, 60_000)).toEqual({ status: "reserved" });
  await writeAsBefore();
  await store.recordAnswer(asked, 201, '"done"');
  expect(await store.reserveKey(asked, 60_000)).toEqual({ status: "answered", code: 201, answer: '"done"' });
  expect((await store.listQueues()).map(({ name }) => name)).toEqual(["default", "mail", "old"]);
}
