import assert from "node:assert/strict";
import { nodeRoute, type ClaimedItem, type NodeItem } from "../../kernel/index.ts";
import {
  arrival,
  claimNodes,
  commit,
  completed,
  counters,
  done,
  endParts,
  indexOf,
  completedItem,
  leasedTo,
  NODE,
  RUN_COMPLETED,
  spreadOf,
  startFlow,
  takeNodes,
} from "./flow-actions.ts";
import { claimItems, newToken, registerWorker } from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const spreadCases: readonly StoreCase[] = [
  storeCase("items that end in reverse are read in the numeric order of their index", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startFlow(store, worker, "import-1", spreadOf(12, 12, 5));
    const items = await claimNodes(store, worker);
    const backwards = items.toSorted((a, b) => indexOf(b.item) - indexOf(a.item));
    assert.deepEqual(
      backwards.map(({ item }) => item),
      Array.from({ length: 12 }, (_, n) => `saved[${11 - n}]`),
    );
    // Entries 2, 3 and 4 hold five each.
    for (const { item, seq } of items) assert.equal(seq, 2 + Math.floor(indexOf(item) / 5));
    for (const [n, item] of backwards.entries()) {
      assert.deepEqual(await counters(store, run), [`saved ${n}/12`]);
      const { queued } = await commit(store, completedItem(item));
      assert.deepEqual(queued, n === 11 ? [{ item: "saved", seq: 16, token: undefined }] : []);
    }
    const [inputs] = await store.readInputs([{ run, targets: ["saved"] }]);
    assert.deepEqual(
      inputs?.map(({ index, data }) => [index, data]),
      Array.from({ length: 12 }, (_, n) => [n, `{"result":${n}}`]),
    );
    const [barrier] = await takeNodes(store, worker, "saved");
    await commit(store, completed(barrier, [], endParts("completed", [done("saved"), RUN_COMPLETED])));
  }),

  storeCase("a spread of no items queues its barrier in the same commit", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startFlow(store, worker, "import-1", spreadOf(0, 8));
    assert.deepEqual(await store.readReadiness(run), [{ node: "saved", required: 0, completed: 0, queued: 0 }]);
    const [barrier] = await takeNodes(store, worker, "saved");
    assert.equal(barrier.seq, 2);
    assert.deepEqual(await store.readInputs([{ run, targets: ["saved"] }]), [[]]);
    await commit(store, completed(barrier, [], endParts("completed", [done("saved"), RUN_COMPLETED])));
  }),

  storeCase(
    "a spread queues at most as many items at once as its window, and one more for each that ends",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startFlow(store, worker, "import-1", spreadOf(7, 3, 2));
      const ready = [...(await takeNodes(store, worker, "saved[0]", "saved[1]", "saved[2]"))] as ClaimedItem[];
      for (let next = 3; next < 7; next++) {
        assert.equal((await store.readReadiness(run))[0]?.queued, next);
        const { queued } = await commit(store, completedItem(ready.shift() as ClaimedItem));
        const seq = 2 + Math.floor(next / 2);
        assert.deepEqual(queued, [{ item: `saved[${next}]`, seq, token: undefined }]);
        ready.push(...(await claimNodes(store, worker)));
        assert.equal(ready.length, 3);
      }
      assert.deepEqual(await store.readReadiness(run), [{ node: "saved", required: 7, completed: 4, queued: 7 }]);
      const outcomes = await store.write(ready.map((item) => completedItem(item)));
      assert.deepEqual(
        outcomes.map((outcome) => outcome.status === "committed" && outcome.queued.map(({ item }) => item)),
        [[], [], ["saved"]],
      );
      await takeNodes(store, worker, "saved");
    },
  ),

  storeCase("items that end in one batch queue as many others, each once", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startFlow(store, worker, "import-1", spreadOf(20, 8));
    let ended = 0;
    for (let items = await claimNodes(store, worker); ended < 20; items = await claimNodes(store, worker)) {
      assert.equal(items.length, Math.min(8, 20 - ended));
      // The same spread twice in one write: two of its items have ended.
      const [first, second, ...others] = items.map((item) => completedItem(item));
      const writes =
        second && first && ended === 0
          ? [{ ...first, advances: [...first.advances, ...second.advances] }, { ...second, advances: [] }, ...others]
          : [first, second, ...others];
      const outcomes = await store.write(writes.filter((write) => write !== undefined));
      for (const outcome of outcomes) assert.equal(outcome.status, "committed");
      ended += items.length;
    }
    assert.deepEqual(await store.readReadiness(run), [{ node: "saved", required: 20, completed: 20, queued: 20 }]);
    const entries = await store.readJournal(run, 2);
    assert.equal(new Set(entries.map(({ command }) => command)).size, 20);
  }),

  storeCase("items and barriers with a claim are leased by the commit that queues them", async (store) => {
    const worker = await registerWorker(store);
    const claims = [newToken(), newToken()].map((token) => ({ worker, token }));
    const { run } = await startFlow(store, worker, "import-1", spreadOf(4, 3, 10, claims));
    const [third] = await takeNodes(store, worker, "saved[2]");
    const held = claims.map(({ token }, n) => ({ ...third, item: `saved[${n}]`, token }));
    assert.deepEqual(
      await store.readItemTokens(held),
      claims.map(({ token }) => token),
    );
    const next = { worker, token: newToken() };
    const { queued } = await commit(store, completedItem(held[0] as ClaimedItem, leasedTo(next)));
    assert.deepEqual(queued, [{ item: "saved[3]", seq: 2, token: next.token }]);
    assert.deepEqual(await claimItems(store, worker, [NODE.name]), []);
    const last = { worker, token: newToken() };
    const rest = [held[1] as ClaimedItem, third, { ...third, item: "saved[3]", token: next.token }].map((item) => {
      const write = completedItem(item);
      return { ...write, arrivals: write.arrivals.map((one) => ({ ...one, node: leasedTo(last) })) };
    });
    const outcomes = await store.write(rest);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status === "committed" && outcome.queued),
      [[], [], [{ item: "saved", seq: 6, token: last.token }]],
    );
    assert.deepEqual(await store.readItemTokens([{ run, item: "saved" }]), [last.token]);
  }),

  storeCase("ready nodes are counted by flow, version and queue", async (store) => {
    const worker = await registerWorker(store);
    const inQueue: NodeItem = { name: nodeRoute("import", 1, "gpu"), priority: 0, slot: { queue: "gpu" } };
    const { run } = await startFlow(store, worker, "import-1", {
      arrivals: [
        arrival("x", "input", 1, { cause: undefined }),
        arrival("y", "input", 1, { cause: undefined }),
        arrival("drawn", "input", 1, { cause: undefined, node: inQueue }),
        arrival("later", "input", 2, { cause: undefined }),
      ],
    });
    const counted = async (): Promise<readonly unknown[]> =>
      (await store.readBacklog()).map(({ oldestAt = Number.NaN, ...nodes }) => {
        assert.equal(oldestAt <= store.now(), true);
        return nodes;
      });
    const flow = { kind: "node", name: "import", version: 1, label: undefined };
    const drawn = { ...flow, queue: "gpu", count: 1 };
    assert.deepEqual(await counted(), [{ ...flow, queue: undefined, count: 2 }, drawn]);
    await takeNodes(store, worker, "x", "y");
    assert.deepEqual(await counted(), [drawn]);
    await store.write([{ write: "pause", id: "import-1" }]);
    assert.deepEqual(await counted(), []);
    assert.equal((await store.readItems(run, ["drawn"]))[0]?.state, "stopped");
  }),
];
