import assert from "node:assert/strict";
import { encode, systemTimers } from "../../base/index.ts";
import type { RunFilter, Store } from "../../kernel/index.ts";
import { commit, completed, endParts, startWithNodes, takeNodes } from "./flow-actions.ts";
import { goOn } from "./generations.ts";
import { startChild } from "./maintenance.ts";
import {
  commitTurn,
  COMPLETES,
  getRun,
  type HeldTurn,
  registerWorker,
  send,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  startWrite,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const DAY = 86_400_000;

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
    assert.deepEqual(await listIds(store, { tags: ["vip"] }), ["other", "failed", "queued"]);
    assert.deepEqual(await listIds(store, { tags: ["vi"] }), []);
    assert.deepEqual(await listIds(store, { tags: ["vip"], definition: "checkout", statuses: ["failed"] }), ["failed"]);
  }),

  storeCase("runs are counted by status, of all definitions or of one, and counts stop at a bound", async (store) => {
    const worker = await registerWorker(store);
    for (const id of ["a", "b", "c"]) await startEnded(store, worker, id);
    await startRun(store, "queued");
    await startWaiting(store, worker, "waiting", { definition: "refund" });
    for (const id of ["failed", "failed too"])
      await commitTurn(store, await startHeld(store, worker, id), { entries: [["RunFailed", ""]], then: "failed" });

    const whole = await store.countStatuses(100);
    assert.deepEqual(whole.atLeast, []);
    const { completed, queued, waiting, failed, running } = whole.counts;
    assert.deepEqual(
      { completed, queued, waiting, failed, running },
      { completed: 3, queued: 1, waiting: 1, failed: 2, running: 0 },
    );
    const refunds = await store.countStatuses(100, "refund");
    assert.equal(
      Object.values(refunds.counts).reduce((sum, count) => sum + count, 0),
      1,
    );
    assert.equal(refunds.counts.waiting, 1);
    const bounded = await store.countStatuses(2);
    assert.ok(bounded.counts.completed <= 2 && bounded.counts.failed === 2);
    assert.ok(bounded.atLeast.includes("completed") && bounded.atLeast.includes("failed"));
  }),

  storeCase(
    "the times of ended runs are read newest first, by definition and status, without children",
    async (store) => {
      const worker = await registerWorker(store);
      const start = await startHeld(store, worker, "parent");
      const [, child] = await startChild(store, worker, start, "child");
      await commitTurn(store, child, COMPLETES);
      const times = (endedAfter = 0, limit = 10, definition = "checkout") =>
        store.readRunTimes({ definition, status: "completed", endedAfter, limit });
      assert.deepEqual(await times(), []);
      for (const id of ["a", "b"]) await startEnded(store, worker, id);
      await startEnded(store, worker, "other", { definition: "refund" });
      await commitTurn(store, await startHeld(store, worker, "failed"), {
        entries: [["RunFailed", ""]],
        then: "failed",
      });
      const [a, b] = [await getRun(store, "a"), await getRun(store, "b")];
      const both = [b, a].map(({ createdAt, endedAt }) => ({ createdAt, endedAt }));
      assert.deepEqual(
        (await times()).toSorted((x, y) => y.endedAt - x.endedAt),
        both,
      );
      assert.equal((await times(0, 1)).length, 1);
      assert.equal((await times(Math.max(a.endedAt!, b.endedAt!) + 1)).length, 0);
      assert.equal(
        (await times(b.endedAt)).some(({ endedAt }) => endedAt === b.endedAt),
        true,
      );
    },
  ),

  storeCase("a list holds the runs of one kind", async (store) => {
    await startRun(store, "a", { kind: "graph", tags: ["vip"] });
    await startRun(store, "b", { tags: ["vip"] });
    await startRun(store, "c", { kind: "graph", definition: "agent" });
    assert.deepEqual(await listIds(store, { kind: "graph" }), ["c", "a"]);
    assert.deepEqual(await listIds(store, { kind: "workflow" }), ["b"]);
    assert.deepEqual(await listIds(store, { kind: "flow" }), []);
    assert.deepEqual(await listIds(store, { kind: "graph", tags: ["vip"], statuses: ["queued"] }), ["a"]);
    assert.deepEqual(await listIds(store, { kind: "graph", definition: "agent" }), ["c"]);
  }),

  storeCase("tags are matched as a whole, with any characters", async (store) => {
    const tags = ['a"b', "a,b", "%", "_", "a", "A", "ä", "[]", "\\"];
    for (const [n, tag] of tags.entries()) await startRun(store, `run-${n}`, { tags: [tag] });
    for (const [n, tag] of tags.entries())
      assert.deepEqual(await listIds(store, { tags: [tag] }), [`run-${n}`], `tag ${tag}`);
    assert.deepEqual((await store.findRun("run-0"))?.tags, ['a"b']);
  }),

  storeCase("a list holds the runs that have all of several tags", async (store) => {
    await startRun(store, "both", { tags: ["eu", "vip"] });
    for (const id of ["a", "b", "c"]) await startRun(store, id, { tags: ["eu"] });
    await startRun(store, "other", { tags: ["vip"] });
    await startRun(store, "more", { tags: ["x", "vip", "eu"], definition: "refund" });
    for (const tags of [
      ["eu", "vip"],
      ["vip", "eu"],
    ]) {
      assert.deepEqual(await listIds(store, { tags }), ["more", "both"]);
      assert.deepEqual(await listIds(store, { tags, definition: "refund" }), ["more"]);
      assert.deepEqual(await listIds(store, { tags, limit: 1 }), ["more"]);
    }
    assert.deepEqual(await listIds(store, { tags: ["eu", "no"] }), []);
    assert.deepEqual(await listIds(store, { tags: [] }), ["more", "other", "c", "b", "a", "both"]);
  }),

  storeCase("a list holds the runs that were created or ended in a period", async (store, t) => {
    const worker = await registerWorker(store);
    const times: number[] = [];
    for (const id of ["a", "b", "c"]) {
      times.push(store.now());
      await startRun(store, `${id} live`);
      const held = await startHeld(store, worker, `${id} ended`, { tags: ["x"] });
      t.clock.advance(1_000);
      await commitTurn(store, held, COMPLETES);
      t.clock.advance(DAY);
    }
    const [a = 0, b = 0, c = 0] = times;
    assert.deepEqual(await listIds(store, { createdAfter: b }), ["c ended", "c live", "b ended", "b live"]);
    assert.deepEqual(await listIds(store, { createdAfter: b + 1, tags: ["x"] }), ["c ended"]);
    assert.deepEqual(await listIds(store, { createdBefore: b }), ["a ended", "a live"]);
    assert.deepEqual(await listIds(store, { createdAfter: b, createdBefore: c }), ["b ended", "b live"]);
    assert.deepEqual(await listIds(store, { endedAfter: b + 1_000 }), ["c ended", "b ended"]);
    assert.deepEqual(await listIds(store, { endedBefore: b + 1_000 }), ["a ended"]);
    assert.deepEqual(await listIds(store, { endedAfter: a + 1_001, endedBefore: c }), ["b ended"]);
    assert.deepEqual(await listIds(store, { endedAfter: a, createdAfter: c, definition: "checkout" }), ["c ended"]);
  }),

  storeCase("a list holds the runs whose id contains a text", async (store) => {
    for (const id of ["order-17", "order-7", "Order-7", "%", "a_b", "äöü-7"])
      await startRun(store, id, { tags: ["x"] });
    assert.deepEqual(await listIds(store, { idContains: "order-7" }), ["order-7"]);
    assert.deepEqual(await listIds(store, { idContains: "-7" }), ["äöü-7", "Order-7", "order-7"]);
    assert.deepEqual(await listIds(store, { idContains: "7", limit: 2 }), ["äöü-7", "Order-7"]);
    assert.deepEqual(await listIds(store, { idContains: "%" }), ["%"]);
    assert.deepEqual(await listIds(store, { idContains: "_", tags: ["x"] }), ["a_b"]);
    assert.deepEqual(await listIds(store, { idContains: "öü" }), ["äöü-7"]);
  }),

  storeCase("a list holds the children of all generations of a run, and no others", async (store) => {
    const worker = await registerWorker(store);
    const first = await startHeld(store, worker, "parent");
    const [parent, child] = await startChild(store, worker, first, "first");
    await startChild(store, worker, child, "grandchild");
    await goOn(store, parent, { claim: { worker, token: "next" } });
    const { run, head, chain } = await getRun(store, "parent");
    await startChild(store, worker, { run, id: "parent", token: "next", head, chain, read: 0, inbox: [] }, "second");
    await startRun(store, "other");
    assert.deepEqual(await listIds(store, { parent: "parent" }), ["second", "first"]);
    assert.deepEqual(await listIds(store, { parent: "first" }), ["grandchild"]);
    assert.deepEqual(await listIds(store, { parent: "parent", limit: 1 }), ["second"]);
    assert.deepEqual(await listIds(store, { parent: "parent", idContains: "fir" }), ["first"]);
    assert.deepEqual(await listIds(store, { parent: "other" }), []);
    assert.deepEqual(await listIds(store, { parent: "no such run" }), []);
  }),

  storeCase("a failed run has the code of its error, otherwise its name, until it is retried", async (store) => {
    const worker = await registerWorker(store);
    const fail = async (id: string, error: unknown): Promise<HeldTurn> =>
      commitTurn(store, await startHeld(store, worker, id), {
        entries: [["RunFailed", "", encode({ error })]],
        then: "failed",
      });
    await fail("code", Object.assign(new Error("declined"), { code: "CARD_DECLINED" }));
    const named = await fail("name", new TypeError("no"));
    await fail("text", "thrown text");
    await fail("long", Object.assign(new Error("long"), { code: "é".repeat(500) }));
    await startEnded(store, worker, "completed");
    assert.deepEqual((await getRun(store, "code")).errorCode, "CARD_DECLINED");
    assert.deepEqual((await getRun(store, "name")).errorCode, "TypeError");
    assert.deepEqual((await getRun(store, "text")).errorCode, undefined);
    assert.deepEqual((await getRun(store, "completed")).errorCode, undefined);
    assert.deepEqual((await getRun(store, "long")).errorCode, "é".repeat(200));
    assert.deepEqual(await listIds(store, { errorCode: "CARD_DECLINED" }), ["code"]);
    assert.deepEqual(await listIds(store, { errorCode: "TypeError", statuses: ["failed"] }), ["name"]);
    assert.deepEqual(await listIds(store, { errorCode: "typeerror" }), []);
    const { run, head } = named;
    const data = `{"commands":0,"from":${head}}`;
    await store.write([{ write: "retry", run, head, data, items: [], children: [], answers: [] }]);
    assert.deepEqual((await getRun(store, "name")).errorCode, undefined);
  }),

  storeCase("a flow that fails has the code of its error", async (store) => {
    const worker = await registerWorker(store);
    await startWithNodes(store, worker, "import-1", "x");
    const [x] = await takeNodes(store, worker, "x");
    const data = encode({ error: Object.assign(new Error("full"), { code: "ENOSPC" }) });
    await commit(store, completed(x, [], endParts("failed", [{ type: "RunFailed", command: "", data }])));
    assert.deepEqual((await getRun(store, "import-1")).errorCode, "ENOSPC");
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
    for (const [, record] of (await store.listRuns({ limit: 2, tags: ["even"] })).entries()) {
      even.push(record.id, ...(await listIds(store, { limit: 1, tags: ["even"], before: record.run })));
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
