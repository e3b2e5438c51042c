import assert from "node:assert/strict";
import { snapshotText, type Arrival, type ForkWrite, type MessageWrite, type Store } from "../../kernel/index.ts";
import { GRAPH, startGraph, step, stepsOf } from "./checkpoints.ts";
import { assertNothingWritten } from "./store-dump.ts";
import { commitTurn, COMPLETES, newRun, registerWorker, startRun, takeTurn, type HeldTurn } from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** A fork of a graph's step, with another value. */
async function forkWrite(
  store: Store,
  origin: HeldTurn,
  from: number,
  id: string,
  overrides: Partial<ForkWrite> = {},
): Promise<ForkWrite> {
  const row = await store.findCheckpoint(origin.run, from, false);
  const key = `${id}/${from}`;
  const forked = { run: origin.id, step: from, seq: row?.seq ?? 0, chain: row?.chain ?? "" };
  return {
    write: "fork",
    run: newRun(id, { ...GRAPH, started: JSON.stringify({ forked: { ...forked } }) }),
    origin: { run: origin.run, step: from, key: `${origin.id}/${from}` },
    data: JSON.stringify({ delta: { set: { n: 70 } }, frontier: [], key, label: "forked", step: from }),
    checkpoint: { step: from, key, label: "forked", state: snapshotText([], ['{"n":70}']) },
    settled: [],
    ...overrides,
  };
}

async function twoSteps(store: Store, worker: number, id: string): Promise<HeldTurn> {
  const held = await startGraph(store, worker, id);
  return commitTurn(store, held, step(held, 1));
}

const resolved: Arrival = { type: "PromiseResolved", target: "approval", data: '{"promiseId":"approval"}' };

export const forkCases: readonly StoreCase[] = [
  storeCase("a fork has two entries, its checkpoint and a due turn in one commit", async (store) => {
    const worker = await registerWorker(store);
    const origin = await twoSteps(store, worker, "a");
    const write = await forkWrite(store, origin, 1, "b");
    const [outcome] = await store.write([write]);
    assert.equal(outcome.status, "started");
    const { run, head, chain } = outcome.record;
    assert.equal(head, 2);
    const entries = await store.readJournal(run, 0);
    assert.deepEqual(
      entries.map(({ type, data }) => [type, data]),
      [
        ["RunStarted", write.run.started],
        ["StepCommitted", write.data],
      ],
    );
    const whole = await store.findCheckpoint(run, 9, true);
    assert.deepEqual(whole, { ...write.checkpoint, seq: 2, chain });
    const held = await takeTurn(store, worker, ["agent"]);
    assert.equal(held.run, run);
    assert.equal(held.head, 2);
    await commitTurn(store, held, step(held, 2));
    assert.deepEqual(await stepsOf(store, run), [
      [1, "b/1"],
      [2, "b/2"],
    ]);
    // The other run has not changed.
    assert.deepEqual(await stepsOf(store, origin.run), [
      [0, "a/0"],
      [1, "a/1"],
    ]);
  }),

  storeCase("a fork of a checkpoint that does not exist or has another key is refused", async (store, { clock }) => {
    const worker = await registerWorker(store);
    const origin = await twoSteps(store, worker, "a");
    const write = await forkWrite(store, origin, 1, "b");
    const others: readonly ForkWrite[] = [
      { ...write, origin: { ...write.origin, step: 2 } },
      { ...write, origin: { ...write.origin, key: "another" } },
      { ...write, origin: { ...write.origin, run: origin.run + 7 } },
    ];
    await assertNothingWritten(store, async () => {
      for (const other of others) assert.deepEqual(await store.write([other]), [{ status: "no_checkpoint" }]);
    });
    await commitTurn(store, origin, COMPLETES);
    clock.advance(1_000);
    await store.prune(store.now());
    assert.deepEqual(await store.write([write]), [{ status: "no_checkpoint" }]);
    assert.equal(await store.findRun("b"), undefined);
  }),

  storeCase("a fork with an id that is taken returns the existing run and changes nothing", async (store) => {
    const worker = await registerWorker(store);
    const origin = await twoSteps(store, worker, "a");
    const write = await forkWrite(store, origin, 1, "b");
    const [made] = await store.write([write]);
    assert.equal(made.status, "started");
    await startRun(store, "c", GRAPH);
    await assertNothingWritten(store, async () => {
      const [again] = await store.write([{ ...write, data: "{}" }]);
      assert.equal(again.status, "exists");
      assert.equal(again.record.run, made.record.run);
      assert.equal(again.first.data, write.run.started);
      assert.equal(again.second?.data, write.data);
      const [other] = await store.write([await forkWrite(store, origin, 1, "c")]);
      assert.equal(other.status, "exists");
      assert.equal(other.second, undefined);
    });
  }),

  storeCase("a run is not pruned while a fork of it exists", async (store, { clock }) => {
    const worker = await registerWorker(store);
    const origin = await twoSteps(store, worker, "a");
    await store.write([await forkWrite(store, origin, 1, "b")]);
    await commitTurn(store, origin, COMPLETES);
    const fork = await takeTurn(store, worker, ["agent"]);
    await store.write([await forkWrite(store, fork, 1, "c")]);
    await commitTurn(store, fork, COMPLETES);
    clock.advance(1_000);
    const last = await takeTurn(store, worker, ["agent"]);
    assert.deepEqual(await store.prune(store.now(), { dryRun: true }), { runs: 0 });
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    assert.deepEqual(await stepsOf(store, origin.run), [
      [0, "a/0"],
      [1, "a/1"],
    ]);
    await commitTurn(store, last, COMPLETES);
    clock.advance(1_000);
    assert.deepEqual(await store.prune(store.now(), { dryRun: true }), { runs: 3 });
    assert.deepEqual(await store.prune(store.now()), { runs: 3 });
    assert.deepEqual(await store.listRuns({ limit: 10 }), []);
  }),

  storeCase("a promise that is settled when the fork is made accepts no other value", async (store) => {
    const worker = await registerWorker(store);
    const origin = await twoSteps(store, worker, "a");
    await store.write([await forkWrite(store, origin, 1, "b", { settled: ["approval"] })]);
    const message: MessageWrite = { write: "message", to: "b", arrival: resolved, once: true };
    const other: MessageWrite = { ...message, arrival: { ...resolved, target: "other" } };
    assert.deepEqual(
      (await store.write([message, other])).map(({ status }) => status),
      ["duplicate", "committed"],
    );
  }),

  storeCase("the entries of steps are read between two steps, up to a limit", async (store) => {
    const worker = await registerWorker(store);
    let held = await startGraph(store, worker, "a");
    for (const number of [1, 2, 3, 4]) {
      held = await commitTurn(store, held, { entries: [["NodeCompleted", `Node(${number}.0)`]] });
      held = await commitTurn(store, held, step(held, number));
    }
    const read = async (...args: readonly [number, number, number?]): Promise<readonly number[]> =>
      (await store.readSteps(held.run, ...args)).map(({ type, seq, data }) => {
        assert.equal(type, "StepCommitted");
        const { step: number } = JSON.parse(data) as { step: number };
        assert.equal(seq, 2 + 2 * number);
        return number;
      });
    assert.deepEqual(await read(-1, 9), [0, 1, 2, 3, 4]);
    assert.deepEqual(await read(1, 3), [2, 3]);
    assert.deepEqual(await read(0, 9, 2), [1, 2]);
    assert.deepEqual(await store.readSteps(held.run + 1, -1, 9), []);
  }),

  storeCase("the newest checkpoint with a label is found, up to a step", async (store) => {
    const worker = await registerWorker(store);
    let held = await startGraph(store, worker, "a");
    for (const [number, label] of [
      [1, "asked"],
      [2, "told"],
      [3, "asked"],
      [4, undefined],
    ] as const)
      held = await commitTurn(store, held, step(held, number, label === undefined ? {} : { label }));
    const find = async (label: string, upTo: number): Promise<number | undefined> =>
      (await store.findLabeledCheckpoint(held.run, label, upTo))?.step;
    assert.equal(await find("asked", 9), 3);
    assert.equal(await find("asked", 2), 1);
    assert.equal(await find("told", 9), 2);
    assert.equal(await find("asked", 0), undefined);
    assert.equal(await find("nothing", 9), undefined);
    assert.equal(await store.findLabeledCheckpoint(held.run + 1, "asked", 9), undefined);
  }),
];
