import assert from "node:assert/strict";
import { memoText, type Arrival, type MemoAnswer, type NewMemo, type Store } from "../../kernel/index.ts";
import { commit, completed, endParts, RUN_COMPLETED, startWithNodes, takeNodes } from "./flow-actions.ts";
import {
  COMPLETES,
  endItemWrite,
  newToken,
  registerWorker,
  startHeld,
  startWithTasks,
  takeItem,
  turnWrite,
  type HeldTurn,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** Two keys, in their order. */
const [FIRST, SECOND] = ["1".repeat(64), "2".repeat(64)];

function row(memo: string, result: string | undefined): NewMemo {
  return { memo, value: memoText(result), by: "store cases" };
}

function known(result: string | undefined): MemoAnswer {
  return { status: "known", result };
}

/** Commits one pure operation, and ends the run. */
function remember(store: Store, held: HeldTurn, memo: NewMemo) {
  const { entries, ...write } = turnWrite(store, held, {
    ...COMPLETES,
    entries: [["OperationCompleted", "Operation(0)", '{"index":0,"operationName":"double"}'], ...COMPLETES.entries!],
  });
  return store.write([{ ...write, entries: entries.map((entry, n) => (n === 0 ? { ...entry, memo } : entry)) }]);
}

async function startRemembering(store: Store, id: string, memo: NewMemo): Promise<HeldTurn> {
  const held = await startHeld(store, await registerWorker(store), id);
  assert.equal((await remember(store, held, memo))[0].status, "committed");
  return held;
}

export const memoCases: readonly StoreCase[] = [
  storeCase(
    "the memos of a turn are committed with it, and read by their keys, in the order of the keys",
    async (store) => {
      await startRemembering(store, "order-1", row(SECOND, '{"n":"ä"}'));
      await startRemembering(store, "order-2", row(FIRST, undefined));
      assert.deepEqual(await store.readMemos([FIRST, "3".repeat(64), SECOND]), [
        known(undefined),
        undefined,
        known('{"n":"ä"}'),
      ]);
      assert.deepEqual(await store.readMemos([]), []);
    },
  ),
  storeCase("the memos of one run are listed alone", async (store) => {
    const { run } = await startRemembering(store, "order-1", row(FIRST, "1"));
    await startRemembering(store, "order-2", row(SECOND, "2"));
    await startRemembering(store, "order-3", row(FIRST, "3"));
    const { groups, next } = await store.listMemos({ run, limit: 10 });
    assert.deepEqual(
      groups.map(({ memo, status, rows }) => [memo, status, rows.map(({ runId, value }) => [runId, value])]),
      [[FIRST, "known", [["order-1", memoText("1")]]]],
    );
    assert.equal(next, undefined);
  }),
  storeCase("a turn that is not committed remembers nothing", async (store) => {
    const held = await startHeld(store, await registerWorker(store), "order-1");
    const [outcome] = await remember(store, { ...held, token: newToken() }, row(FIRST, "1"));
    assert.equal(outcome.status, "lease_lost");
    assert.deepEqual(await store.readMemos([FIRST]), [undefined]);
  }),
  storeCase("the memo of a task is committed with its end, once, under the entry that scheduled it", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    const item = await takeItem(store, worker);
    const ran = { execution: 1, worker: "shop-1", startedAt: store.now(), tookMs: 1 };
    const ended = (memo: NewMemo): Arrival => ({
      type: "TaskCompleted",
      target: item.item,
      data: '{"result":1}',
      ran: { ...ran, memo: { ...memo, seq: item.seq } },
    });
    const [first] = await store.write([{ ...endItemWrite(item), arrival: ended(row(FIRST, "1")) }]);
    const [again] = await store.write([{ ...endItemWrite(item), arrival: ended(row(FIRST, "2")) }]);
    assert.deepEqual([first.status, again.status], ["committed", "lease_lost"]);
    assert.deepEqual(await store.readMemos([FIRST]), [known("1")]);
    const { groups } = await store.listMemos({ limit: 10 });
    assert.deepEqual(
      groups.map(({ rows }) => rows.map(({ seq, entry }) => [seq, entry.type])),
      [[[item.seq, "TaskScheduled"]]],
    );
  }),
  storeCase("the memo of a flow's node is committed with its entry", async (store) => {
    const worker = await registerWorker(store);
    await startWithNodes(store, worker, "import-1", "fetch");
    const [node] = await takeNodes(store, worker, "fetch");
    const ran = { execution: 1, worker: "shop-1", startedAt: store.now(), tookMs: 1, memo: row(FIRST, "7") };
    const entry = { type: "NodeCompleted", command: "fetch", data: '{"result":7}', ran } as const;
    const outcome = await commit(store, completed(node, [], endParts("completed", [entry, RUN_COMPLETED])));
    const { groups } = await store.listMemos({ limit: 10 });
    assert.deepEqual(
      groups.map(({ memo, status, rows }) => [memo, status, rows.map(({ seq, runId }) => [seq, runId])]),
      [[FIRST, "known", [[outcome.seq, "import-1"]]]],
    );
  }),
  storeCase("two values of a key are a divergence, and the same value twice is none", async (store) => {
    await startRemembering(store, "order-1", row(FIRST, "1"));
    await startRemembering(store, "order-2", row(FIRST, "1"));
    await startRemembering(store, "order-3", row(SECOND, "1"));
    assert.deepEqual(await store.readMemos([FIRST, SECOND]), [known("1"), known("1")]);
    await startRemembering(store, "order-4", row(FIRST, "2"));
    assert.deepEqual(await store.readMemos([FIRST, SECOND]), [{ status: "divergent" }, known("1")]);
    const { groups } = await store.listMemos({ limit: 10, off: true });
    assert.deepEqual(
      groups.map(({ memo, rows }) => [memo, rows.map(({ runId, by }) => [runId, by])]),
      [[FIRST, ["order-1", "order-2", "order-4"].map((id) => [id, "store cases"])]],
    );
  }),
  storeCase("a value that does not match its key is damaged, and never known", async (store) => {
    const value = memoText("12").replace("12}", "13}");
    await startRemembering(store, "order-1", { ...row(FIRST, "12"), value });
    assert.deepEqual(await store.readMemos([FIRST]), [{ status: "damaged" }]);
    assert.deepEqual(
      (await store.listMemos({ limit: 10, off: true })).groups.map(({ status }) => status),
      ["damaged"],
    );
    assert.deepEqual(
      (await store.check()).map(({ invariant }) => invariant),
      ["I47 memo matches its key"],
    );
    assert.equal(await store.clearMemos([FIRST]), 1);
  }),
  storeCase("the memo is listed page by page, with all rows of a key", async (store) => {
    for (const [n, key] of [FIRST, SECOND, SECOND, "3".repeat(64)].entries())
      await startRemembering(store, `order-${n}`, row(key, "1"));
    const pages: unknown[] = [];
    for (let after: string | undefined; ;) {
      const { groups, next } = await store.listMemos({ limit: 2, ...(after !== undefined && { after }) });
      pages.push(groups.map(({ memo, rows }) => [memo[0], rows.length]));
      if (next === undefined) break;
      after = next;
    }
    assert.deepEqual(pages, [[["1", 1]], [["2", 2]], [["3", 1]]]);
  }),
  storeCase("the memo of some keys, or all of it, can be cleared", async (store) => {
    await startRemembering(store, "order-1", row(FIRST, "1"));
    await startRemembering(store, "order-2", row(SECOND, "2"));
    assert.equal(await store.clearMemos([FIRST, "3".repeat(64)]), 1);
    assert.deepEqual(await store.readMemos([FIRST, SECOND]), [undefined, known("2")]);
    assert.equal(await store.clearMemos("all"), 1);
    assert.deepEqual(await store.readMemos([SECOND]), [undefined]);
  }),
  storeCase("the memo of a run that is deleted is deleted with it", async (store) => {
    await startRemembering(store, "order-1", row(FIRST, "1"));
    await startRemembering(store, "order-2", row(SECOND, "2"));
    assert.equal((await store.deleteRun("order-1")).status, "deleted");
    assert.deepEqual(await store.readMemos([FIRST, SECOND]), [undefined, known("2")]);
  }),
];
