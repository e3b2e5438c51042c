// Streams on SQLite: damage and generations, which the store cases do not cover.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { Store } from "../../src/kernel/index.ts";
import { commitTurn, COMPLETES, registerWorker, startHeld } from "../../src/testing/store-cases/store-actions.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";

let folder: string;
let path: string;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "reprise-streams-"));
  path = join(folder, "store.db");
  store = await openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom });
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function damage(sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

const chunk = (number: number | undefined, data: string) => ({ stream: "words", number, data });

test("check reports a stream with a missing chunk, and chunks of a run that does not exist", async () => {
  const held = await startHeld(store, await registerWorker(store), "order-1");
  await commitTurn(store, held, { ...COMPLETES, chunks: [chunk(0, "a"), chunk(1, "b"), chunk(2, "c")] });
  expect(await store.check()).toEqual([]);
  damage("delete from chunks where position = 2");
  expect(await store.check()).toMatchObject([{ invariant: "I7 streams gap-free", run: "order-1" }]);
  damage("update chunks set run = 99; update emitted set run = 98");
  const found = (await store.check()).map(({ message }) => message);
  expect(found).toEqual([
    expect.stringContaining("Stream chunks belong to run number 99"),
    expect.stringContaining("Chunk counters belong to run number 98"),
  ]);
});

test("a later generation continues the offsets of the first and counts its own chunks", async () => {
  const worker = await registerWorker(store);
  const first = await startHeld(store, worker, "order-1");
  await commitTurn(store, first, { ...COMPLETES, chunks: [chunk(0, "a"), chunk(1, "b")] });
  const next = await startHeld(store, worker, "order-2");
  damage("update runs set id = 'order-1', generation = 1 where id = 'order-2'");
  await commitTurn(store, { ...next, id: "order-1" }, { ...COMPLETES, chunks: [chunk(0, "c")] });
  for (const { run } of [first, next])
    expect((await store.readStream(run, "words", 1, 10)).map(({ offset, data }) => [offset, data])).toEqual([
      [2, "b"],
      [3, "c"],
    ]);
  expect(await store.readEmitted(first.run)).toEqual(new Map([["words", 2]]));
  expect(await store.readEmitted(next.run)).toEqual(new Map([["words", 1]]));
});
