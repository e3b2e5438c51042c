import assert from "node:assert/strict";
import type { Store } from "../../kernel/index.ts";
import {
  heldAfter,
  commitTurn,
  COMPLETES,
  getRun,
  newToken,
  registerWorker,
  startHeld,
  turnWrite,
  type EntryParts,
  type HeldTurn,
} from "./store-actions.ts";
import { storeCase, type CaseTools, type StoreCase } from "./store-case.ts";

const WROTE: EntryParts = ["OperationCompleted", "Operation(0)", '{"index":0,"operationName":"note"}'];

/** A held run, and a user's table. */
async function begin(store: Store, t: CaseTools): Promise<HeldTurn> {
  const worker = await registerWorker(store);
  const held = await startHeld(store, worker, "order-1");
  const made = await store.transact(
    (db) => t.userSql.create(db),
    () => turnWrite(store, held, {}),
  );
  assert.equal(made.status, "committed");
  return held;
}

async function notes(store: Store, t: CaseTools): Promise<readonly string[]> {
  let texts: readonly string[] | Promise<readonly string[]> = [];
  await store.transact(
    (db) => {
      texts = t.userSql.texts(db);
      return texts;
    },
    () => undefined,
  );
  return texts;
}

export const transactCases: readonly StoreCase[] = [
  storeCase("user SQL and its entry are committed together", async (store, t) => {
    const held = await begin(store, t);
    const write = turnWrite(store, held, { entries: [WROTE] });
    const outcome = await store.transact(
      (db) => t.userSql.insert(db, "once"),
      () => write,
    );
    assert.equal(outcome.status, "committed");
    assert.deepEqual(await notes(store, t), ["once"]);
    assert.equal((await getRun(store, "order-1")).head, 2);
    await commitTurn(store, heldAfter(held, write), COMPLETES);
  }),

  storeCase("user SQL is rolled back when the fence of its commit does not hold", async (store, t) => {
    const held = await begin(store, t);
    const outcome = await store.transact(
      (db) => t.userSql.insert(db, "void"),
      () => turnWrite(store, { ...held, token: newToken() }, { entries: [WROTE] }),
    );
    assert.equal(outcome.status, "lease_lost");
    assert.deepEqual(await notes(store, t), []);
    assert.equal((await getRun(store, "order-1")).head, 1);
  }),

  storeCase("user SQL whose function throws is rolled back, and the outcome holds the error", async (store, t) => {
    const held = await begin(store, t);
    const error = new Error("no");
    let asked = false;
    const outcome = await store.transact(
      (db) => {
        const inserted = t.userSql.insert(db, "thrown");
        if (inserted instanceof Promise) return inserted.then(() => Promise.reject(error));
        throw error;
      },
      () => {
        asked = true;
        return turnWrite(store, held, { entries: [WROTE] });
      },
    );
    assert.deepEqual([outcome, asked], [{ status: "threw", error }, false]);
    assert.deepEqual(await notes(store, t), []);
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("user SQL is rolled back when its run no longer needs it", async (store, t) => {
    await begin(store, t);
    const outcome = await store.transact(
      (db) => t.userSql.insert(db, "unwanted"),
      () => undefined,
    );
    assert.deepEqual(outcome, { status: "unwanted" });
    assert.deepEqual(await notes(store, t), []);
  }),
];
