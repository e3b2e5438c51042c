import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import type { Store } from "../../kernel/index.ts";
import { commitTurn, COMPLETES, schedules, startEnded, startHeld } from "../../testing/store-cases/moves.ts";
import { openSqliteStore } from "./sqlite-store.ts";

let folder: string;
const open = (name: string): Promise<Store> =>
  openSqliteStore({ path: join(folder, name), clock: systemClock, timers: systemTimers, random: systemRandom });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reprise-care-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a backup made while two connections keep writing ends, and is one whole moment", async () => {
  await using resources = new AsyncDisposableStack();
  const [one, two] = [await open("store.db"), await open("store.db")];
  resources.defer(() => one.close());
  resources.defer(() => two.close());
  const worker = await one.registerWorker("tester", 3_600_000);
  const held = await startHeld(one, worker, "bulk");
  const bulk = Array.from(
    { length: 12 },
    (_, n) => ["StateSet", `State(${n})`, JSON.stringify("x".repeat(1e6))] as const,
  );
  await commitTurn(one, held, { entries: bulk });

  let done = false;
  let written = 0;
  const write = async (store: Store, name: string): Promise<void> => {
    while (!done) {
      await startEnded(store, worker, `${name}-${written++}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const writers = [write(one, "one"), write(two, "two")];
  const target = join(folder, "backup.db");
  await one.backup(target);
  const writtenAtEnd = written;
  done = true;
  await Promise.all(writers);
  expect(writtenAtEnd).toBeGreaterThan(2);

  const copy = await open("backup.db");
  resources.defer(() => copy.close());
  expect(await copy.check()).toEqual([]);
  expect((await copy.readJournal(held.run, 0)).length).toBe(13);
});

test("pruning takes long journals and many runs in pieces, and leaves nothing behind", async () => {
  const store = await open("store.db");
  const worker = await store.registerWorker("tester", 3_600_000);
  let held = await startHeld(store, worker, "long");
  held = await commitTurn(store, held, schedules(held, 3_500));
  await commitTurn(store, held, COMPLETES);
  for (let n = 0; n < 150; n++) await startEnded(store, worker, `short-${n}`);
  expect(await store.prune(store.now() + 1_000)).toEqual({ runs: 151 });
  expect(await store.check()).toEqual([]);
  expect(await store.readJournal(held.run, 0)).toEqual([]);
  expect((await store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
  await store.close();
});
