// The cost of a claim on a long queue, measured on the file.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import type { ClaimItemsOutcome, QueueLimits, Store } from "../../kernel/index.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A store with a queue and many ready items of one run, inserted with SQL. */
async function createCrowd(limits: QueueLimits, keys: (n: number) => string, count: number) {
  const folder = mkdtempSync(join(tmpdir(), "reprise-lines-"));
  folders.push(folder);
  const path = join(folder, "store.db");
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "relaxed" as const };
  const store = await openSqliteStore({ path, ...ports });
  const worker = await store.registerWorker("crowd", 60_000);
  const run = { kind: "workflow", version: 1, priority: 0, tags: [], started: "{}", runtime: "" } as const;
  await store.write([
    { write: "declare-queue", name: "q", limits },
    { write: "start", run: { ...run, id: "crowd", definition: "crowd" } },
  ]);
  const db = new DatabaseSync(path);
  const insert = db.prepare(`insert into queue (run, item, kind, name, priority, available_at, seq, state, queue, key)
    values ((select max(run) from runs), ?, 'task', 'job', 0, ?, 1, 1, 'q', ?)`);
  db.exec("begin immediate");
  for (let n = 0; n < count; n += 1) insert.run(`Task(${n})`, n, keys(n));
  db.exec("commit");
  const countIn = (state: number): number =>
    (db.prepare("select count(*) as count from queue where state = ?").get(state) as { count: number }).count;
  return { store, worker, path, ports, countIn, db };
}

let tokens = 0;

async function claim(store: Store, worker: number, count = 1): Promise<ClaimItemsOutcome> {
  const names = ["job"];
  const [outcome] = await store.write([
    { write: "claim-items", worker, tokens: Array.from({ length: count }, () => `t${tokens++}`), names },
  ]);
  return outcome;
}

test("a claim scans at most a thousand items of a key without a free slot, and never the same ones again", async () => {
  const last = 2_500;
  const { store, worker, countIn, db } = await createCrowd(
    { perKey: { concurrency: 1 } },
    (n) => (n === last ? "free" : "taken"),
    last + 1,
  );
  const first = await claim(store, worker, 2);
  expect(first.items.map(({ item }) => item)).toEqual(["Task(0)"]);
  expect(first.nextAt).toBeLessThanOrEqual(store.now());
  expect(countIn(5)).toBe(1_000);
  expect((await claim(store, worker, 2)).items).toEqual([]);
  expect((await claim(store, worker, 2)).items.map(({ item }) => item)).toEqual([`Task(${last})`]);
  expect(countIn(5)).toBe(last - 1);
  expect(await claim(store, worker, 2)).toEqual({ items: [], nextAt: undefined, held: true });
  db.close();
  await store.close();
});

/** The fastest of many claims on a full queue, in milliseconds: a busy machine does not distort it. */
async function quickestClaim(count: number): Promise<number> {
  const { store, worker, db } = await createCrowd({ concurrency: 10 }, (n) => `key ${n}`, count);
  expect((await claim(store, worker, 100)).items).toHaveLength(10);
  let quickest = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 100; n += 1) {
    const start = performance.now();
    expect(await claim(store, worker, 100)).toMatchObject({ items: [], held: true });
    quickest = Math.min(quickest, performance.now() - start);
  }
  db.close();
  await store.close();
  return quickest;
}

test("a claim on a full queue costs the same with a hundred thousand ready items as with twenty", async () => {
  const [few, many] = [await quickestClaim(20), await quickestClaim(100_000)];
  // A scan of the rows takes 10 ms, fifty times as long as such a claim.
  expect(many).toBeLessThan(10 * few + 0.5);
});

test("a poll of a full, paused or rate-limited queue writes nothing, so that workers do not wake each other", async () => {
  const { store, worker, path, ports, db } = await createCrowd(
    { concurrency: 1, rate: { limit: 1, perMs: 60_000 } },
    () => "k",
    10,
  );
  const other = await openSqliteStore({ path, ...ports });
  expect((await claim(store, worker)).items).toHaveLength(1);
  other.pollChanges();
  const held = await claim(store, worker);
  expect(held).toMatchObject({ items: [], held: true });
  expect(held.nextAt).toBeGreaterThan(store.now());
  await store.write([{ write: "admit", definitions: [{ name: "crowd", version: 1 }], limit: 5 }]);
  expect(other.pollChanges()).toBe(false);
  await store.write([{ write: "change-queue", name: "q", paused: true }]);
  expect(other.pollChanges()).toBe(true);
  await claim(store, worker);
  expect(other.pollChanges()).toBe(false);
  db.close();
  await other.close();
  await store.close();
});

test("check reports parked items that nothing will unpark", async () => {
  const { store, db } = await createCrowd({ perKey: { concurrency: 1 } }, () => "k", 2);
  expect((await store.check()).filter(({ invariant }) => invariant.startsWith("I36"))).toEqual([]);
  db.exec("update queue set state = 5");
  expect((await store.check()).filter(({ invariant }) => invariant.startsWith("I36"))).toHaveLength(1);
  db.exec("update runs set turn_due = 3");
  expect((await store.check()).filter(({ invariant }) => invariant.startsWith("I35"))).toHaveLength(1);
  db.close();
  await store.close();
});
