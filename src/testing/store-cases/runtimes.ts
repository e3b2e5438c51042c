import assert from "node:assert/strict";
import { MAX_RUNTIMES, type Store } from "../../kernel/index.ts";
import { arrival, commit, completed, completeWrite, FLOW, RUN_COMPLETED, takeNodes } from "./flow-actions.ts";
import {
  commitTurn,
  COMPLETES,
  getRun,
  newToken,
  registerWorker,
  send,
  startHeld,
  startWaiting,
  takeTurn,
  turnWrite,
  WAITS,
  WAITS_AGAIN,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const STARTER = '{"node":"24.1.0"}';
const [FIRST, SECOND, THIRD] = ["first", "second", "third"].map((code) => `{"code":"${code}"}`) as [
  string,
  string,
  string,
];

async function runtimes(store: Store, id: string): Promise<readonly string[]> {
  return (await getRun(store, id)).runtime.split("\n");
}

export const runtimeCases: readonly StoreCase[] = [
  storeCase("a turn adds the runtime that it names once, after those the row has", async (store) => {
    const worker = await registerWorker(store);
    await startWaiting(store, worker, "order-1", { runtime: STARTER });
    assert.deepEqual(await runtimes(store, "order-1"), [STARTER]);
    for (const runtime of [SECOND, FIRST, SECOND, STARTER]) {
      await send(store, "order-1");
      const held = await takeTurn(store, worker);
      await commitTurn(store, held, { read: held.inbox.length + held.read, runtime, then: "release" });
    }
    assert.deepEqual(await runtimes(store, "order-1"), [STARTER, SECOND, FIRST]);
    await send(store, "order-1");
    const last = await takeTurn(store, worker);
    await commitTurn(store, last, { ...COMPLETES, read: last.inbox.length + last.read, runtime: THIRD });
    assert.deepEqual(await runtimes(store, "order-1"), [STARTER, SECOND, FIRST, THIRD]);
  }),

  storeCase("a run keeps the first 16 runtimes", async (store) => {
    const worker = await registerWorker(store);
    let held = await startHeld(store, worker, "order-1", { runtime: STARTER });
    const added = Array.from({ length: MAX_RUNTIMES + 2 }, (_, n) => `{"code":"${n}"}`);
    for (const [n, runtime] of added.entries())
      held = await commitTurn(store, held, { entries: [["StateSet", `State(${n})`, '{"k":1}']], runtime });
    assert.deepEqual(await runtimes(store, "order-1"), [STARTER, ...added.slice(0, MAX_RUNTIMES - 1)]);
  }),

  storeCase("a rejected commit adds no runtime", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1", { runtime: STARTER });
    const wrong = turnWrite(store, { ...held, token: newToken() }, { entries: [WAITS], runtime: FIRST });
    const [rejected, kept] = await store.write([wrong, turnWrite(store, held, { entries: [WAITS_AGAIN] })]);
    assert.deepEqual([rejected.status, kept.status], ["lease_lost", "committed"]);
    assert.deepEqual(await runtimes(store, "order-1"), [STARTER]);
  }),

  storeCase("the turn and the nodes of a flow add the runtimes they name once each", async (store) => {
    const [first, second] = [await registerWorker(store, "first"), await registerWorker(store, "second")];
    const held = await startHeld(store, first, "import-1", { ...FLOW, runtime: STARTER });
    const arrivals = ["A", "B", "C"].map((name) => arrival(name, "input", 1, { cause: undefined }));
    await commit(store, completeWrite(held.run, { turn: held.token, read: 0 }, { arrivals, runtime: FIRST }));
    assert.deepEqual(await runtimes(store, "import-1"), [STARTER, FIRST]);
    const [a, b, c] = await takeNodes(store, second, "A", "B", "C");
    // The first two share a transaction, and the row that it keeps in memory.
    const outcomes = await store.write([
      completed(a, [], { runtime: SECOND }),
      completed(b, [], { runtime: SECOND }),
      completed({ ...b, token: newToken() }, [], { runtime: THIRD }),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["committed", "committed", "stale"],
    );
    assert.deepEqual(await runtimes(store, "import-1"), [STARTER, FIRST, SECOND]);
    // oxlint-disable-next-line unicorn/no-thenable -- `then` is a field of the port, and a write is never awaited.
    await commit(store, completed(c, [], { entries: [RUN_COMPLETED], then: "completed", runtime: THIRD }));
    const record = await getRun(store, "import-1");
    assert.deepEqual([record.status, record.head], ["completed", 4]);
    assert.deepEqual(await runtimes(store, "import-1"), [STARTER, FIRST, SECOND, THIRD]);
  }),
];
