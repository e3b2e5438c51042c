import assert from "node:assert/strict";
import { systemTimers } from "../../base/index.ts";
import type { RunFilter, Store } from "../../kernel/index.ts";
import {
  commitTurn,
  registerWorker,
  send,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  startWrite,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

async function listIds(store: Store, filter: Partial<RunFilter> = {}): Promise<readonly string[]> {
  return (await store.listRuns({ limit: 100, ...filter })).map((record) => record.id);
}

export const listCases: readonly StoreCase[] = [
  storeCase("runs are listed newest first", async (store) => {
    for (const id of ["a", "b", "c"]) await startRun(store, id);
    assert.deepEqual(await listIds(store), ["c", "b", "a"]);
    assert.deepEqual(await listIds(store, { limit: 2 }), ["c", "b"]);
    assert.deepEqual(await store.listRuns({ limit: 1 }), [await store.findRun("c")]);
  }),

  storeCase("a list holds the runs of one definition, some statuses, one tag", async (store) => {
    const worker = await registerWorker(store);
    await startRun(store, "queued", { tags: ["vip", "eu"] });
    await startEnded(store, worker, "completed", { tags: ["eu"] });
    await commitTurn(store, await startHeld(store, worker, "failed", { tags: ["vip"] }), {
      entries: [["RunFailed", ""]],
      then: "failed",
    });
    await startRun(store, "other", { definition: "refund", tags: ["vip"] });

    assert.deepEqual(await listIds(store, { definition: "refund" }), ["other"]);
    assert.deepEqual(await listIds(store, { definition: "Refund" }), []);
    assert.deepEqual(await listIds(store, { statuses: ["completed", "failed"] }), ["failed", "completed"]);
    assert.deepEqual(await listIds(store, { statuses: ["queued"] }), ["other", "queued"]);
    assert.deepEqual(await listIds(store, { tag: "vip" }), ["other", "failed", "queued"]);
    assert.deepEqual(await listIds(store, { tag: "vi" }), []);
    assert.deepEqual(await listIds(store, { tag: "vip", definition: "checkout", statuses: ["failed"] }), ["failed"]);
  }),

  storeCase("a list holds the runs of one kind", async (store) => {
    await startRun(store, "a", { kind: "graph", tags: ["vip"] });
    await startRun(store, "b", { tags: ["vip"] });
    await startRun(store, "c", { kind: "graph", definition: "agent" });
    assert.deepEqual(await listIds(store, { kind: "graph" }), ["c", "a"]);
    assert.deepEqual(await listIds(store, { kind: "workflow" }), ["b"]);
    assert.deepEqual(await listIds(store, { kind: "flow" }), []);
    assert.deepEqual(await listIds(store, { kind: "graph", tag: "vip", statuses: ["queued"] }), ["a"]);
    assert.deepEqual(await listIds(store, { kind: "graph", definition: "agent" }), ["c"]);
  }),

  storeCase("tags are matched as a whole, with any characters", async (store) => {
    const tags = ['a"b', "a,b", "%", "_", "a", "A", "ä", "[]", "\\"];
    for (const [n, tag] of tags.entries()) await startRun(store, `run-${n}`, { tags: [tag] });
    for (const [n, tag] of tags.entries()) assert.deepEqual(await listIds(store, { tag }), [`run-${n}`], `tag ${tag}`);
    assert.deepEqual((await store.findRun("run-0"))?.tags, ['a"b']);
  }),

  storeCase("paging stays stable while runs are added", async (store) => {
    await store.write(
      Array.from({ length: 10 }, (_, n) => startWrite(`run-${n}`, { tags: n % 2 === 0 ? ["even"] : [] })),
    );
    const seen: string[] = [];
    const even: string[] = [];
    let before: { readonly before?: number } = {};
    for (let page = 0; page < 4; page++) {
      const records = await store.listRuns({ limit: 3, ...before });
      seen.push(...records.map((record) => record.id));
      const last = records.at(-1);
      assert.ok(last !== undefined);
      before = { before: last.run };
      await startRun(store, `late-${page}`);
    }
    for (const [, record] of (await store.listRuns({ limit: 2, tag: "even" })).entries()) {
      even.push(record.id, ...(await listIds(store, { limit: 1, tag: "even", before: record.run })));
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 10 }, (_, n) => `run-${9 - n}`),
    );
    assert.deepEqual(even, ["run-8", "run-6", "run-6", "run-4"]);
    assert.deepEqual(await store.listRuns({ limit: 3, ...before }), []);
  }),

  storeCase("a journal is read from any entry, up to a limit", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const entries = Array.from({ length: 9 }, (_, n) => ["StateSet", `State(${n})`] as const);
    await commitTurn(store, held, { entries });
    const seqs = async (afterSeq: number, limit?: number) =>
      (await store.readJournal(held.run, afterSeq, limit)).map((entry) => entry.seq);
    assert.deepEqual(await seqs(0), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert.deepEqual(await seqs(7), [8, 9, 10]);
    assert.deepEqual(await seqs(0, 2), [1, 2]);
    assert.deepEqual(await seqs(4, 3), [5, 6, 7]);
    assert.deepEqual(await seqs(9, 5), [10]);
    assert.deepEqual(await seqs(10), []);
  }),

  storeCase("info counts runs by status and items by state", async (store) => {
    const worker = await registerWorker(store, "shop-1");
    await startRun(store, "a");
    await startRun(store, "b");
    await startEnded(store, worker, "c");
    await startWaiting(store, worker, "d");
    await send(store, "d");
    const info = await store.info();
    const counts = new Map<string, number>();
    for (const record of await store.listRuns({ limit: 10 }))
      counts.set(record.status, (counts.get(record.status) ?? 0) + 1);
    assert.deepEqual(new Map(Object.entries(info.runs).filter(([, count]) => count > 0)), counts);
    assert.equal(info.runs.completed, 1);
    assert.deepEqual(info.items, { ready: 0, leased: 0, delayed: 0 });
    assert.deepEqual(
      info.workers.map((row) => row.name),
      ["shop-1"],
    );
    assert.ok(info.kind.length > 0 && info.location.length > 0 && info.schemaVersion >= 1 && info.bytes >= 0);
  }),

  storeCase("a connection notices that another one has written", async (store, t) => {
    const other = await t.openAgain();
    for (let n = 0; n < 5; n++) {
      store.pollChanges();
      await startRun(other, `run-${n}`);
      assert.ok(await notices(store));
      assert.equal((await store.listRuns({ limit: 100 })).length, n + 1);
    }
    store.pollChanges();
    await send(other, "run-0");
    assert.ok(await notices(store));
  }),
];

/** The notice of a commit may arrive a moment later. */
const POLLS = 1_000;
const POLL_MS = 5;

async function notices(store: Store): Promise<boolean> {
  for (let poll = 0; poll < POLLS; poll++) {
    if (store.pollChanges()) return true;
    await new Promise<void>((resolve) => void systemTimers.set(POLL_MS, resolve));
  }
  return false;
}
