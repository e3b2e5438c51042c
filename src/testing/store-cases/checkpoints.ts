import assert from "node:assert/strict";
import { chainAfter, snapshotText, type NewCheckpoint, type Store } from "../../kernel/index.ts";
import {
  commitTurn,
  COMPLETES,
  LEASE_MS,
  newToken,
  registerWorker,
  startHeld,
  takeTurn,
  turnWrite,
  type EntryParts,
  type HeldTurn,
  type TurnParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const GRAPH = { kind: "graph", definition: "agent" } as const;

/** The commit of a step: its entry and its checkpoint. Step 0 holds the whole state. */
export function step(
  held: HeldTurn,
  number: number,
  overrides: { key?: string; n?: number; label?: string } = {},
): TurnParts {
  const { key = `${held.id}/${number}`, n = number, label } = overrides;
  const delta = { set: { n } };
  const data = JSON.stringify({ delta, frontier: [], key, ...(label !== undefined && { label }), step: number });
  const entry: EntryParts = ["StepCommitted", "", data];
  const chain = chainAfter(held.chain, ...([entry[0], entry[1], data] as const));
  const state = number === 0 ? snapshotText([], [`{"n":${n}}`]) : undefined;
  return { entries: [entry], checkpoints: [{ step: number, seq: held.head + 1, chain, key, label, state }] };
}

export async function startGraph(store: Store, worker: number, id: string): Promise<HeldTurn> {
  const held = await startHeld(store, worker, id, GRAPH);
  return commitTurn(store, held, step(held, 0));
}

export async function stepsOf(store: Store, run: number): Promise<readonly (readonly [number, string])[]> {
  return (await store.readCheckpoints(run, -1)).map(({ step: number, key }) => [number, key] as const);
}

async function outcomeOf(store: Store, held: HeldTurn, parts: TurnParts): Promise<string> {
  const [outcome] = await store.write([turnWrite(store, held, parts)]);
  return outcome.status;
}

export const checkpointCases: readonly StoreCase[] = [
  storeCase("a checkpoint is committed with its step, and read back as it was written", async (store) => {
    const worker = await registerWorker(store);
    let held = await startGraph(store, worker, "a");
    held = await commitTurn(store, held, step(held, 1, { label: "asked" }));
    const expected: readonly NewCheckpoint[] = [
      {
        step: 1,
        seq: 3,
        chain: held.chain,
        key: "a/1",
        label: "asked",
        state: undefined,
      },
    ];
    assert.deepEqual(await store.readCheckpoints(held.run, 0), expected);
    assert.deepEqual(await store.findCheckpoint(held.run, 7, false), expected[0]);
    const whole = await store.findCheckpoint(held.run, 7, true);
    assert.equal(whole?.step, 0);
    assert.equal(whole.state, '{"state":{"n":0},"told":[]}');
    assert.equal((await store.readCheckpoints(held.run, -1, 1)).length, 1);
    assert.equal(await store.findCheckpoint(held.run + 1, 7, false), undefined);
  }),

  storeCase(
    "a step that is committed again with the same key is already committed, for every caller",
    async (store) => {
      const worker = await registerWorker(store);
      const before = await startGraph(store, worker, "a");
      const write = turnWrite(store, before, step(before, 1));
      assert.equal((await store.write([write]))[0].status, "committed");
      assert.equal((await store.write([write]))[0].status, "already_committed");
      const stranger = { ...write, token: newToken() };
      assert.equal((await store.write([stranger]))[0].status, "already_committed");
      assert.deepEqual(await stepsOf(store, before.run), [
        [0, "a/0"],
        [1, "a/1"],
      ]);
      assert.equal((await store.readJournal(before.run, 0)).length, 3);
    },
  ),

  storeCase(
    "another state for a committed step from a worker that lost the turn is lease_lost and changes nothing",
    async (store, { clock }) => {
      const worker = await registerWorker(store);
      const late = await startGraph(store, worker, "a");
      clock.advance(LEASE_MS);
      const other = await registerWorker(store, "other");
      await store.reap(other);
      const held = await takeTurn(store, other, ["agent"]);
      await commitTurn(store, held, step(held, 1, { n: 10 }));
      assert.equal(await outcomeOf(store, late, step(late, 1, { key: "a/1 otherwise", n: 11 })), "lease_lost");
      assert.deepEqual((await stepsOf(store, held.run)).at(-1), [1, "a/1"]);
      assert.equal((await store.findRun("a"))?.status, "running");
    },
  ),

  storeCase(
    "another state for a committed step from the holder is a conflict: the first checkpoint is kept, and the run stops with evidence",
    async (store) => {
      const worker = await registerWorker(store);
      const before = await startGraph(store, worker, "a");
      await commitTurn(store, before, step(before, 1));
      assert.equal(await outcomeOf(store, before, step(before, 1, { key: "a/1 otherwise", n: 7 })), "conflict");
      assert.deepEqual(await stepsOf(store, before.run), [
        [0, "a/0"],
        [1, "a/1"],
      ]);
      const run = await store.findRun("a");
      assert.equal(run?.status, "determinism_violation");
      const evidence = JSON.parse(run.evidence ?? "{}") as Record<string, unknown>;
      assert.equal(evidence["where"], "step 1");
      assert.equal(evidence["expected"], "a/1 otherwise");
      assert.equal(evidence["actual"], "a/1");
    },
  ),

  storeCase("a checkpoint key is unique in the whole store", async (store) => {
    const worker = await registerWorker(store);
    await startGraph(store, worker, "a");
    const held = await startHeld(store, worker, "b", GRAPH);
    assert.equal(await outcomeOf(store, held, step(held, 0, { key: "a/0" })), "conflict");
    assert.deepEqual(await stepsOf(store, held.run), []);
    assert.equal((await store.readJournal(held.run, 0)).length, 1);
  }),

  storeCase("a rejected commit leaves no checkpoint", async (store) => {
    const worker = await registerWorker(store);
    const held = await startGraph(store, worker, "a");
    assert.equal(await outcomeOf(store, { ...held, token: newToken() }, step(held, 1)), "lease_lost");
    assert.deepEqual(await stepsOf(store, held.run), [[0, "a/0"]]);
  }),

  storeCase(
    "of 100 concurrent commits of one checkpoint one succeeds, and 99 are already committed",
    async (store, tools) => {
      const worker = await registerWorker(store);
      const held = await startGraph(store, worker, "a");
      const write = turnWrite(store, held, step(held, 1));
      const stores = [store, await tools.openAgain(), await tools.openAgain(), await tools.openAgain()];
      const outcomes = await Promise.all(
        Array.from({ length: 100 }, async (_, n) => (await stores[n % stores.length]!.write([write]))[0].status),
      );
      assert.equal(outcomes.filter((status) => status === "committed").length, 1);
      assert.equal(outcomes.filter((status) => status === "already_committed").length, 99);
      assert.deepEqual((await stepsOf(store, held.run)).at(-1), [1, "a/1"]);
    },
  ),

  storeCase("checkpoints outlive the end of their run and are deleted when it is pruned", async (store, { clock }) => {
    const worker = await registerWorker(store);
    const held = await startGraph(store, worker, "a");
    await commitTurn(store, held, COMPLETES);
    assert.deepEqual(await stepsOf(store, held.run), [[0, "a/0"]]);
    clock.advance(1_000);
    await store.prune(store.now());
    await store.reap(worker);
    assert.deepEqual(await stepsOf(store, held.run), []);
  }),
];
