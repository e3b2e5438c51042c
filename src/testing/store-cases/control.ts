import assert from "node:assert/strict";
import { commitTurn, registerWorker, schedules, startHeld, takeItem } from "./moves.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const controlCases: readonly StoreCase[] = [
  storeCase("who holds an item can see whether it still is theirs", async (store) => {
    const worker = await registerWorker(store);
    const started = await startHeld(store, worker, "order-1");
    const named = (n: number): { name: string } => ({ name: n === 0 ? "charge" : "refund" });
    const held = await commitTurn(store, started, schedules(started, 2, named));
    const item = await takeItem(store, worker);
    const asked = [
      { run: held.run, item: item.item },
      { run: held.run, item: "Task(1)" },
      { run: held.run, item: "Task(9)" },
      { run: held.run + 1, item: item.item },
    ];
    assert.deepEqual(await store.itemTokens(asked), [item.token, undefined, undefined, undefined]);
    assert.deepEqual(await store.itemTokens([]), []);
    await commitTurn(store, held, { entries: [["CancelRequested", ""]], dropped: [item.item] });
    assert.deepEqual(await store.itemTokens(asked.slice(0, 1)), [undefined]);
  }),
];
