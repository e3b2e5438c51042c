import assert from "node:assert/strict";
import type { Store } from "../../kernel/index.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  newTokens,
  registerWorker,
  send,
  startHeld,
  startRun,
  startWaiting,
  startWithTasks,
  startWrite,
  versioned,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

async function startRuns(store: Store, count: number): Promise<void> {
  await store.write(Array.from({ length: count }, (_, n) => startWrite(`order-${n}`)));
}

export const claimCases: readonly StoreCase[] = [
  storeCase("a due turn is claimed by one worker only", async (store) => {
    const [one, two] = [await registerWorker(store), await registerWorker(store)];
    await startRuns(store, 30);
    const claims = await Promise.all([one, two, one, two].map((worker) => claimTurns(store, worker, ["checkout"], 10)));
    const ids = claims.flat().map((turn) => turn.record.id);
    assert.equal(ids.length, 30);
    assert.equal(new Set(ids).size, 30);
    assert.deepEqual(await claimTurns(store, one), []);
  }),

  storeCase("two connections that claim at the same time share the turns without overlap", async (store, t) => {
    const other = await t.openAgain();
    const [one, two] = [await registerWorker(store), await registerWorker(other)];
    await startRuns(store, 40);
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        n % 2 === 0 ? claimTurns(store, one, ["checkout"], 5) : claimTurns(other, two, ["checkout"], 5),
      ),
    );
    const ids = claims.flat().map((turn) => turn.record.id);
    assert.equal(new Set(ids).size, ids.length, "a turn was handed out twice");
    assert.equal(ids.length, 40);
  }),

  storeCase("two connections that claim at the same time share the items without overlap", async (store, t) => {
    const other = await t.openAgain();
    const [one, two] = [await registerWorker(store), await registerWorker(other)];
    await startWithTasks(store, one, "order-1", 40);
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        n % 2 === 0 ? claimItems(store, one, ["charge"], 5) : claimItems(other, two, ["charge"], 5),
      ),
    );
    const items = claims.flat().map((item) => item.item);
    assert.equal(new Set(items).size, items.length, "an item was handed out twice");
    assert.equal(items.length, 40);
  }),

  storeCase("a claim takes at most as many turns as it brings tokens, and each has one of them", async (store) => {
    const worker = await registerWorker(store);
    await startRuns(store, 5);
    const tokens = newTokens(3);
    const [turns] = await store.write([{ write: "claim-turns", worker, tokens, definitions: [versioned("checkout")] }]);
    assert.deepEqual(turns.map((turn) => turn.token).sort(), [...tokens].sort());
    const pulses = await store.readProgress(turns.map((turn) => turn.record.run));
    const held = new Map(pulses.map((pulse) => [pulse.run, pulse.token]));
    for (const turn of turns) assert.equal(held.get(turn.record.run), turn.token);
    assert.deepEqual(await claimTurns(store, worker, ["checkout"], 0), []);
    assert.equal((await claimTurns(store, worker)).length, 2);
  }),

  storeCase("only turns of the named definitions are claimed", async (store) => {
    const worker = await registerWorker(store);
    await startRun(store, "a", { definition: "checkout" });
    await startRun(store, "b", { definition: "Checkout" });
    await startRun(store, "c", { definition: "refund" });
    assert.deepEqual(await claimTurns(store, worker, []), []);
    assert.deepEqual(await claimTurns(store, worker, ["unknown"]), []);
    assert.deepEqual(
      (await claimTurns(store, worker, ["checkout"])).map((turn) => turn.record.id),
      ["a"],
    );
    assert.deepEqual((await claimTurns(store, worker, ["refund", "Checkout"])).map((turn) => turn.record.id).sort(), [
      "b",
      "c",
    ]);
  }),

  storeCase("the turn with the highest priority is claimed first, then the oldest", async (store, t) => {
    const worker = await registerWorker(store);
    for (const [id, priority] of [
      ["low-old", 0],
      ["high-old", 5],
      ["low-new", 0],
      ["negative", -1],
      ["high-new", 5],
    ] as const) {
      await startRun(store, id, { priority });
      t.clock.advance(1);
    }
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 5; n++) order.push((await claimTurns(store, worker, ["checkout"], 1))[0]?.record.id);
    assert.deepEqual(order, ["high-old", "high-new", "low-old", "low-new", "negative"]);
  }),

  storeCase("priority counts across definitions", async (store) => {
    const worker = await registerWorker(store);
    await startRun(store, "a", { definition: "a", priority: 1 });
    await startRun(store, "b", { definition: "b", priority: 2 });
    await startRun(store, "c", { definition: "a", priority: 3 });
    const order = (await claimTurns(store, worker, ["a", "b"], 2)).map((turn) => turn.record.id);
    assert.deepEqual(order.sort(), ["b", "c"]);
  }),

  storeCase("a claimed run has its head, chain and read messages", async (store) => {
    const worker = await registerWorker(store);
    const waiting = await startWaiting(store, worker, "order-1", { tags: ["vip"], version: 4 });
    await send(store, "order-1");
    const [turn] = await claimTurns(store, worker, [{ name: "checkout", version: 4 }]);
    assert.ok(turn !== undefined);
    const { head, chain, arrivals, tags, version } = turn.record;
    assert.deepEqual(
      { head, chain, arrivals, tags, version },
      {
        head: waiting.head,
        chain: waiting.chain,
        arrivals: 1,
        tags: ["vip"],
        version: 4,
      },
    );
  }),

  storeCase("readProgress returns id, status, arrivals and token of every run that exists", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "held");
    await send(store, "held");
    const waiting = await startWaiting(store, worker, "waiting");
    const ended = await commitTurn(store, await startHeld(store, worker, "ended"), COMPLETES);
    const pulses = await store.readProgress([held.run, waiting.run, ended.run, 4_711]);
    const byRun = new Map(pulses.map((pulse) => [pulse.run, pulse]));
    assert.equal(byRun.size, 3);
    assert.deepEqual([byRun.get(held.run)?.arrivals, byRun.get(held.run)?.token], [1, held.token]);
    assert.deepEqual([byRun.get(waiting.run)?.arrivals, byRun.get(waiting.run)?.token], [0, undefined]);
    const { run } = ended;
    assert.deepEqual(byRun.get(run), { run, id: "ended", status: "completed", arrivals: 0, token: undefined });
    assert.deepEqual(await store.readProgress([]), []);
  }),
];
