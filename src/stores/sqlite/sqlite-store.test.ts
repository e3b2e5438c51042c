import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import type { Store } from "../../kernel/index.ts";
import {
  commitTurn,
  COMPLETES,
  getRun,
  schedules,
  startHeld,
  startWaiting,
  startWrite,
  turnWrite,
} from "../../testing/store-cases/moves.ts";
import { openSqliteStore } from "./sqlite-store.ts";

let folder: string;
let path: string;
let store: Store;
let worker: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "reprise-sqlite-"));
  path = join(folder, "store.db");
  store = await openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom });
  worker = await store.registerWorker("tester", 3_600_000);
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

test("a poll that finds nothing writes nothing", async () => {
  await startWaiting(store, worker, "order-1");
  const before = statSync(`${path}-wal`, { bigint: true });
  for (let polls = 0; polls < 10; polls++)
    await store.write([
      { write: "claim-turns", worker, tokens: ["t"], definitions: ["checkout", "other"] },
      { write: "claim-items", worker, tokens: ["t"], names: ["charge"] },
      { write: "fire-due", limit: 10 },
    ]);
  await store.reap(worker);
  const after = statSync(`${path}-wal`, { bigint: true });
  expect([after.size, after.mtimeNs]).toEqual([before.size, before.mtimeNs]);
});

test("one write that cannot be applied hurts no other, and is named", async () => {
  const held = await startHeld(store, worker, "order-1");
  const { entries, items } = schedules(held, 1);
  const poison = turnWrite(store, held, { entries, items: [...items, ...items] });
  const writing = store.write([startWrite("before"), poison, startWrite("after")]);
  await expect(writing).rejects.toMatchObject({
    code: "INVARIANT",
    details: { failed: [1], outcomes: [{ status: "started" }, undefined, { status: "started" }] },
  });
  expect(await getRun(store, "order-1")).toMatchObject({ head: 1, status: "running" });
  await commitTurn(store, held, { entries, items });
  expect(await store.check()).toEqual([]);
});

test("a run's number is not used again after everything was pruned", async () => {
  const held = await startHeld(store, worker, "order-1");
  await commitTurn(store, held, COMPLETES);
  expect(await store.prune(store.now() + 1_000)).toEqual({ runs: 1 });
  expect((await startHeld(store, worker, "order-2")).run).toBeGreaterThan(held.run);
});

test("what a run with very many items leaves behind is swept in pieces", async () => {
  const held = await startHeld(store, worker, "wide");
  const wide = await commitTurn(store, held, schedules(held, 2_500));
  await commitTurn(store, wide, COMPLETES);
  expect((await store.info()).items.ready).toBe(1_500);
  expect(await store.check()).toEqual([]);
  // Nobody gets one of them meanwhile.
  expect(await store.write([{ write: "claim-items", worker, tokens: ["a", "b"], names: ["charge"] }])).toEqual([[]]);
  for (let reaps = 0; reaps < 3; reaps++) await store.reap(worker);
  expect((await store.info()).items.ready).toBe(0);
  expect(await store.check()).toEqual([]);
});
