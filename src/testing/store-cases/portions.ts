// Portions: spreads and nodes with limits per key.

import assert from "node:assert/strict";
import type { ClaimedItem, Store } from "../../kernel/index.ts";
import {
  claimNodes,
  commit,
  completed,
  completedItem,
  completedPortion,
  endParts,
  MAIL_ROUTE,
  portionOf,
  RUN_COMPLETED,
  spreadOf,
  startFlow,
  startWithNodes,
  takeNodes,
} from "./flow-actions.ts";
import { claimItems, registerWorker, type HeldTurn } from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

async function limitKeys(store: Store, concurrency: number): Promise<void> {
  await store.write([{ write: "declare-queue", name: "mail", limits: { perKey: { concurrency } } }]);
}

/** A spread of `required` items, two per entry, whose first portion has these keys. */
function startSpread(store: Store, worker: number, required: number, letters: string): Promise<HeldTurn> {
  const { entries, spread } = spreadOf(required, 1, 2);
  return startFlow(store, worker, "import-1", { entries, spread: { ...spread, portion: portionOf(letters) } });
}

async function claimMail(store: Store, worker: number): Promise<readonly ClaimedItem[]> {
  const items = await claimItems(store, worker, [MAIL_ROUTE]);
  return items.toSorted((a, b) => (a.item < b.item ? -1 : 1));
}

function namesOf(items: readonly ClaimedItem[]): readonly string[] {
  return items.map(({ item, slot }) => `${item} ${slot?.key ?? ""}`);
}

export const portionCases: readonly StoreCase[] = [
  storeCase("each portion of a spread is queued with its keys, until all items are queued", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startSpread(store, worker, 5, "ab");
    assert.deepEqual(await store.readReadiness(run), [{ node: "saved", required: 5, completed: 0, queued: 2 }]);
    const [first] = await takeNodes(store, worker, "saved[more]");
    // Entries 2, 3 and 4 hold two each.
    assert.equal(first.seq, 3);
    const { queued } = await commit(store, completedPortion(first, "a "));
    assert.deepEqual(
      queued.map(({ item, seq }) => `${item} ${seq}`),
      ["saved[2] 3", "saved[3] 3", "saved[more] 4"],
    );
    const [second] = await takeNodes(store, worker, "saved[more]");
    assert.deepEqual((await commit(store, completedPortion(second, "c"))).queued.length, 1);
    assert.deepEqual(await claimNodes(store, worker), []);
    const items = await claimMail(store, worker);
    assert.deepEqual(namesOf(items), ["saved[0] a", "saved[1] b", "saved[2] a", "saved[3] ", "saved[4] c"]);
    assert.deepEqual(items[3]?.slot, { queue: "mail" });
    assert.deepEqual(await store.readReadiness(run), [{ node: "saved", required: 5, completed: 0, queued: 5 }]);
    // They advance no window: all items are queued.
    for (const item of items) await commit(store, completedItem(item));
    await takeNodes(store, worker, "saved");
  }),

  storeCase("items that wait for their key keep no other key of their spread waiting", async (store) => {
    const worker = await registerWorker(store);
    await limitKeys(store, 1);
    await startSpread(store, worker, 6, "aaa");
    const [first] = await takeNodes(store, worker, "saved[more]");
    const [a0] = (await claimMail(store, worker)) as [ClaimedItem];
    assert.equal(a0.item, "saved[0]");
    await commit(store, completedPortion(first, "aba"));
    assert.deepEqual(namesOf(await claimMail(store, worker)), ["saved[4] b"]);
    await commit(store, completedItem(a0));
    const next = await claimMail(store, worker);
    assert.deepEqual([next.length, next[0]?.slot], [1, { queue: "mail", key: "a" }]);
  }),

  storeCase("a portion is queued once: its repetition and one of a lost lease are stale", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startSpread(store, worker, 4, "ab");
    const [first] = await takeNodes(store, worker, "saved[more]");
    const lost = completedPortion({ ...first, token: "other" }, "xy");
    const [stale, done, again] = await store.write([
      lost,
      completedPortion(first, "cd"),
      completedPortion(first, "cd"),
    ]);
    assert.deepEqual([stale.status, done.status, again.status], ["stale", "committed", "stale"]);
    assert.deepEqual(await store.readReadiness(run), [{ node: "saved", required: 4, completed: 0, queued: 4 }]);
    assert.deepEqual(namesOf(await claimMail(store, worker)), ["saved[0] a", "saved[1] b", "saved[2] c", "saved[3] d"]);
  }),

  storeCase("a portion of a paused flow waits until the flow is resumed", async (store) => {
    const worker = await registerWorker(store);
    await startSpread(store, worker, 6, "ab");
    const [first] = await takeNodes(store, worker, "saved[more]");
    await store.write([{ write: "pause", id: "import-1" }]);
    await commit(store, completedPortion(first, "cd"));
    assert.deepEqual([await claimMail(store, worker), await claimNodes(store, worker)], [[], []]);
    await store.write([{ write: "resume", id: "import-1" }]);
    await takeNodes(store, worker, "saved[more]");
    assert.equal((await claimMail(store, worker)).length, 4);
  }),

  storeCase("a node that moves into a queue waits for a slot of its key", async (store) => {
    const worker = await registerWorker(store);
    await limitKeys(store, 1);
    const { run } = await startWithNodes(store, worker, "import-1", "x", "y", "z");
    const nodes = await takeNodes(store, worker, "x", "y", "z");
    const into = (key: string) => ({ name: MAIL_ROUTE, slot: { queue: "mail", key } });
    const moved = nodes.map(({ item, token }, n) => {
      const at = into(n < 2 ? "a" : "b");
      return { write: "return-item", run, item, token, attempt: 0, into: at } as const;
    });
    assert.deepEqual(
      (await store.write(moved)).map(({ status }) => status),
      ["committed", "committed", "committed"],
    );
    assert.deepEqual(await store.write(moved), Array(3).fill({ status: "lease_lost" }));
    assert.deepEqual(await claimNodes(store, worker), []);
    const [x, z] = (await claimMail(store, worker)) as [ClaimedItem, ClaimedItem];
    assert.deepEqual([namesOf([x, z]), x.attempt, x.kind], [["x a", "z b"], 0, "node"]);
    await commit(store, completed(x, []));
    const [y] = (await claimMail(store, worker)) as [ClaimedItem];
    assert.equal(y.item, "y");
    await commit(store, completed(y, [], endParts("completed", [RUN_COMPLETED])));
  }),
];
