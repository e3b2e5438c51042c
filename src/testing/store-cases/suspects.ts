import assert from "node:assert/strict";
import {
  ALONE_AFTER,
  groupSize,
  ISOLATED_AFTER,
  MAX_TAKEOVERS,
  SUSPECT_AFTER,
  type ClaimedItem,
  type ClaimedTurn,
  type NewItem,
  type Store,
} from "../../kernel/index.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  getRun,
  LEASE_MS,
  registerWorker,
  startRun,
  startWithTasks,
  takeItem,
  takeTurn,
} from "./store-actions.ts";
import { type CaseTools, storeCase, type StoreCase } from "./store-case.ts";

/** A worker claims, dies, and is taken over, `times` times. */
async function lose(store: Store, t: CaseTools, times: number, claim: (worker: number) => Promise<unknown>) {
  for (let n = 0; n < times; n++) {
    await claim(await registerWorker(store));
    t.clock.advance(LEASE_MS);
    await store.reap(await registerWorker(store, "reaper"));
  }
}

/** A run of another definition, taken over `times` times. */
async function startSuspect(store: Store, t: CaseTools, id: string, level: number): Promise<void> {
  await startRun(store, id, { definition: id });
  await lose(store, t, level, (worker) => takeTurn(store, worker, [id]));
}

/** A task of another name, taken over `times` times. */
async function startSuspectItem(
  store: Store,
  t: CaseTools,
  name: string,
  level: number,
  overrides: Partial<NewItem> = {},
): Promise<void> {
  await startWithTasks(store, await registerWorker(store), `run of ${name}`, 1, () => ({ name, ...overrides }));
  await lose(store, t, level, (worker) => takeItem(store, worker, [name]));
}

function idsOf(turns: readonly ClaimedTurn[]): readonly string[] {
  return turns.map(({ record }) => record.id).sort();
}

function namesOf(items: readonly ClaimedItem[]): readonly string[] {
  return items.map(({ name }) => name).sort();
}

/** The number of claimed suspects and their level; a claim returns one level only. */
function groupOf(claimed: readonly { readonly suspicion: number }[]): readonly [count: number, level: number] {
  assert.equal(new Set(claimed.map(({ suspicion }) => suspicion)).size, 1);
  return [claimed.length, claimed[0]!.suspicion];
}

/** More than the group of the third level holds. */
const MANY = groupSize(SUSPECT_AFTER + 1) + 6;
/** How many of `MANY` a claim returns after each takeover. */
const SHRINKING = [
  [MANY, 0],
  [MANY, 0],
  [MANY, 2],
  [64, 3],
  [8, 4],
  [1, ALONE_AFTER],
] as const;

export const suspectCases: readonly StoreCase[] = [
  storeCase(
    "suspect turns are claimed before other turns, in groups that shrink with each takeover",
    async (store, t) => {
      for (let n = 0; n < MANY; n++) await startRun(store, `suspect-${n}`);
      for (const [count, level] of SHRINKING) {
        if (level === SUSPECT_AFTER) await startRun(store, "innocent");
        await lose(store, t, 1, async (worker) =>
          assert.deepEqual(groupOf(await claimTurns(store, worker)), [count, level]),
        );
      }
      assert.deepEqual(groupOf(await claimTurns(store, await registerWorker(store))), [1, ISOLATED_AFTER]);
    },
  ),

  storeCase(
    "suspect items are claimed before other items, in groups that shrink with each takeover",
    async (store, t) => {
      await startWithTasks(store, await registerWorker(store), "order-1", MANY);
      for (const [count, level] of SHRINKING) {
        if (level === SUSPECT_AFTER) await startWithTasks(store, await registerWorker(store), "innocent", 1);
        await lose(store, t, 1, async (worker) =>
          assert.deepEqual(groupOf(await claimItems(store, worker)), [count, level]),
        );
      }
      assert.deepEqual(groupOf(await claimItems(store, await registerWorker(store))), [1, ISOLATED_AFTER]);
    },
  ),

  storeCase("the highest level of suspects is claimed first, across names", async (store, t) => {
    for (const [id, level] of Object.entries({ a: 2, b: 4, c: 3, d: 4 })) await startSuspect(store, t, id, level);
    const worker = await registerWorker(store);
    const next = async () => idsOf(await claimTurns(store, worker, ["a", "b", "c", "d"]));
    assert.deepEqual(await next(), ["b", "d"]);
    assert.deepEqual(await next(), ["c"]);
    assert.deepEqual(await next(), ["a"]);
    assert.deepEqual(await next(), []);

    for (const [name, level] of Object.entries({ e: 2, f: 4, g: 3, h: 4 }))
      await startSuspectItem(store, t, name, level);
    const another = await registerWorker(store);
    const nextItems = async () => namesOf(await claimItems(store, another, ["e", "f", "g", "h"]));
    assert.deepEqual(await nextItems(), ["f", "h"]);
    assert.deepEqual(await nextItems(), ["g"]);
    assert.deepEqual(await nextItems(), ["e"]);
    assert.deepEqual(await nextItems(), []);
  }),

  storeCase("suspects are spread over workers that claim at the same time", async (store, t) => {
    const other = await t.openAgain();
    for (let n = 0; n < 3; n++) await startRun(store, `suspect-${n}`);
    await lose(store, t, ALONE_AFTER - 1, (worker) => claimTurns(store, worker));
    await lose(store, t, 1, (worker) => claimTurns(store, worker));
    const claims = await Promise.all([
      claimTurns(store, await registerWorker(store)),
      claimTurns(other, await registerWorker(other)),
    ]);
    for (const claim of claims) assert.deepEqual(groupOf(claim), [1, ALONE_AFTER]);
    assert.equal(new Set(claims.flatMap(idsOf)).size, 2);
  }),

  storeCase("a worker that holds an isolated suspect claims no other one until it has committed", async (store, t) => {
    await startSuspect(store, t, "isolated", ISOLATED_AFTER);
    await startSuspect(store, t, "suspect", SUSPECT_AFTER);
    await startSuspectItem(store, t, "charge", SUSPECT_AFTER);
    await startRun(store, "innocent", { definition: "suspect" });
    const worker = await registerWorker(store);
    const held = await takeTurn(store, worker, ["isolated", "suspect"]);
    assert.equal(held.id, "isolated");
    assert.deepEqual(idsOf(await claimTurns(store, worker, ["isolated", "suspect"])), ["innocent"]);
    assert.deepEqual(await claimTurns(store, worker, ["suspect"]), []);
    assert.deepEqual(await claimItems(store, worker), []);

    await commitTurn(store, held, COMPLETES);
    assert.deepEqual(idsOf(await claimTurns(store, worker, ["suspect"])), ["suspect"]);
    assert.equal((await claimItems(store, worker)).length, 1);
  }),

  storeCase("a worker that holds an isolated item claims no other suspect", async (store, t) => {
    await startSuspectItem(store, t, "isolated", ISOLATED_AFTER);
    await startSuspectItem(store, t, "charge", SUSPECT_AFTER);
    await startSuspect(store, t, "suspect", SUSPECT_AFTER);
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    assert.deepEqual(namesOf(await claimItems(store, worker, ["charge", "isolated"])), ["isolated"]);
    assert.deepEqual(await claimItems(store, worker, ["charge", "isolated"]), []);
    assert.deepEqual(await claimTurns(store, worker, ["suspect"]), []);
    assert.deepEqual(namesOf(await claimItems(store, other, ["charge", "isolated"])), ["charge"]);
    assert.deepEqual(idsOf(await claimTurns(store, other, ["suspect"])), ["suspect"]);
  }),

  storeCase("a suspect whose queue has no free slot does not block other suspects", async (store, t) => {
    await store.write([{ write: "declare-queue", name: "mail", limits: { perKey: { concurrency: 1 } } }]);
    const keyed = (key: string): Partial<NewItem> => ({ slot: { queue: "mail", key } });
    const lost = await registerWorker(store);
    await startWithTasks(store, lost, "order-1", 3, (n) => keyed("abc"[n]!));
    await lose(store, t, ALONE_AFTER - 1, (worker) => claimItems(store, worker));
    await lose(store, t, 1, (worker) => claimItems(store, worker));
    const [busy, worker] = [await registerWorker(store), await registerWorker(store)];
    await startWithTasks(store, busy, "order-2", 2, (n) => ({ name: "other", ...keyed("ab"[n]!) }));
    assert.equal((await claimItems(store, busy, ["other"])).length, 2);
    assert.deepEqual(
      (await claimItems(store, worker)).map(({ item, suspicion }) => [item, suspicion]),
      [["Task(2)", ALONE_AFTER]],
    );
    assert.deepEqual(await claimItems(store, worker), []);
  }),

  storeCase("a run is blocked only after three takeovers alone", async (store, t) => {
    for (const id of ["culprit", "innocent"]) await startRun(store, id);
    await lose(store, t, ALONE_AFTER, (worker) => claimTurns(store, worker));
    for (let alone = ALONE_AFTER; alone < MAX_TAKEOVERS; alone++) {
      assert.equal((await getRun(store, "culprit")).status, "queued");
      await lose(store, t, 1, async (worker) => {
        const turns = await claimTurns(store, worker);
        assert.deepEqual(groupOf(turns), [1, alone]);
        if (turns[0]?.record.id === "culprit") return;
        // The other one was claimed first: it commits, and the culprit is claimed next.
        const { record, token } = turns[0]!;
        await commitTurn(store, { ...record, token, read: 0, inbox: [] }, COMPLETES);
        assert.deepEqual(idsOf(await claimTurns(store, worker)), ["culprit"]);
      });
    }
    assert.equal((await getRun(store, "culprit")).status, "blocked");
    assert.notEqual((await getRun(store, "innocent")).status, "blocked");
  }),
];
