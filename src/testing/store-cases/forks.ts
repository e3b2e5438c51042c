import assert from "node:assert/strict";
import {
  findJournalFault,
  snapshotText,
  type Arrival,
  type ForkWrite,
  type MessageWrite,
  type Store,
} from "../../kernel/index.ts";
import { GRAPH, startGraph, step, stepsOf } from "./checkpoints.ts";
import { arrival, commit, completed, counters, done, FLOW, NODE, startWithNodes, takeNodes } from "./flow-actions.ts";
import { assertNothingWritten } from "./store-dump.ts";
import {
  commitTurn,
  getRun,
  COMPLETES,
  newRun,
  registerWorker,
  startRun,
  takeTurn,
  type HeldTurn,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** A fork of a graph's step, with another value. */
export async function forkWrite(
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
    step: {
      data: JSON.stringify({ delta: { set: { n: 70 } }, frontier: [], key, label: "forked", step: from }),
      checkpoint: { step: from, key, label: "forked", state: snapshotText([], ['{"n":70}']) },
    },
    settled: [],
    ...overrides,
  };
}

/** A fork of a workflow that shares the entries up to `seq`. */
async function forkAtWrite(store: Store, origin: HeldTurn, seq: number, id: string): Promise<ForkWrite> {
  const [entry] = seq === 0 ? [] : await store.readJournal(origin.run, seq - 1, 1);
  const forked = { run: origin.id, generation: 0, at: "Task(0)", seq, chain: origin.chain };
  return {
    write: "fork",
    run: newRun(id, { started: JSON.stringify({ forked }) }),
    origin: { run: origin.run, seq, mark: entry?.mark },
    settled: [],
  };
}

export async function twoSteps(store: Store, worker: number, id: string): Promise<HeldTurn> {
  const held = await startGraph(store, worker, id);
  return commitTurn(store, held, step(held, 1));
}

const resolved: Arrival = { type: "PromiseResolved", target: "approval", data: '{"promiseId":"approval"}' };

const NO_SPREAD = { queued: undefined, window: undefined, firstSeq: undefined, perEntry: undefined };

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
        ["StepCommitted", write.step?.data],
      ],
    );
    const whole = await store.findCheckpoint(run, 9, true);
    assert.deepEqual(whole, { ...write.step?.checkpoint, seq: 2, chain });
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
      const [again] = await store.write([{ ...write, step: { ...write.step!, data: "{}" } }]);
      assert.equal(again.status, "exists");
      assert.equal(again.record.run, made.record.run);
      assert.equal(again.first.data, write.run.started);
      assert.equal(again.second?.data, write.step?.data);
      const [other] = await store.write([await forkWrite(store, origin, 1, "c")]);
      assert.equal(other.status, "exists");
      assert.equal(other.second, undefined);
    });
  }),

  storeCase("a fork at an entry has its first entry and a due turn, and keeps its origin", async (store, { clock }) => {
    const worker = await registerWorker(store);
    await startRun(store, "a");
    const origin = await commitTurn(store, await takeTurn(store, worker), { entries: [["TaskScheduled", "Task(0)"]] });
    const write = await forkAtWrite(store, origin, 2, "b");
    const [outcome] = await store.write([write]);
    assert.equal(outcome.status, "started");
    const { run, head } = outcome.record;
    assert.equal(head, 1);
    assert.deepEqual(
      (await store.readJournal(run, 0)).map(({ type, data }) => [type, data]),
      [["RunStarted", write.run.started]],
    );
    await commitTurn(store, origin, COMPLETES);
    const held = await takeTurn(store, worker);
    assert.equal(held.run, run);
    clock.advance(1_000);
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    assert.deepEqual(await store.deleteRun("a"), { status: "forked", run: "a", by: "b" });
    await commitTurn(store, held, COMPLETES);
    clock.advance(1_000);
    assert.deepEqual(await store.prune(store.now()), { runs: 2 });
  }),

  storeCase("a fork at an entry that does not exist or has another mark is refused", async (store) => {
    const worker = await registerWorker(store);
    await startRun(store, "a");
    const origin = await commitTurn(store, await takeTurn(store, worker), { entries: [["TaskScheduled", "Task(0)"]] });
    const { origin: place, ...write } = await forkAtWrite(store, origin, 2, "b");
    assert.ok("mark" in place && place.mark !== undefined);
    const others: readonly ForkWrite["origin"][] = [
      { ...place, seq: 3 },
      { ...place, mark: place.mark + 1 },
      { ...place, run: origin.run + 7 },
      // The origin shares the entry with its own origin.
      { run: origin.run + 7, seq: 0, mark: undefined },
    ];
    await assertNothingWritten(store, async () => {
      for (const other of others)
        assert.deepEqual(await store.write([{ ...write, origin: other }]), [{ status: "no_checkpoint" }]);
    });
    const [shared] = await store.write([await forkAtWrite(store, origin, 0, "b")]);
    assert.equal(shared.status, "started");
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
    await store.write([await forkWrite(store, origin, 1, "b", { settled: [resolved] })]);
    const message: MessageWrite = { write: "message", to: "b", arrival: resolved, once: true };
    const other: MessageWrite = { ...message, arrival: { ...resolved, target: "other" } };
    const [second, first] = await store.write([message, other]);
    assert.deepEqual(second, { status: "duplicate", settled: resolved.data });
    assert.equal(first.status, "committed");
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

  storeCase(
    "a flow's fork has the copied entries, counters and arrivals, and its ready nodes are queued",
    async (store) => {
      const worker = await registerWorker(store);
      const origin = await startWithNodes(store, worker, "import-1", "x", "w");
      const [x] = await takeNodes(store, worker, "x", "w");
      await commit(store, completed(x, [arrival("y", "x", 2)]));
      const { head, chain } = await getRun(store, "import-1");
      const [last] = await store.readJournal(origin.run, head - 1, 1);
      const write: ForkWrite = {
        write: "fork",
        run: newRun("import-2", {
          ...FLOW,
          started: JSON.stringify({ forked: { at: "z", chain, generation: 0, run: "import-1", seq: head } }),
        }),
        origin: { run: origin.run, seq: head, mark: last?.mark },
        flow: {
          entries: [done("x", '{"result":7}')],
          arrivals: [
            { target: "x", edge: "input", index: -1, kind: "value", seq: 1 },
            { target: "y", edge: "x", index: -1, kind: "value", seq: 2 },
            { target: "z", edge: "input", index: -1, kind: "value", seq: 1 },
          ],
          counters: [
            { node: "x", required: 1, completed: 1, ...NO_SPREAD },
            { node: "y", required: 2, completed: 1, ...NO_SPREAD },
            { node: "z", required: 1, completed: 1, ...NO_SPREAD },
          ],
          items: [{ item: "z", node: NODE, seq: 1 }],
        },
        settled: [],
      };
      const [outcome] = await store.write([write]);
      assert.equal(outcome.status, "started");
      const record = await getRun(store, "import-2");
      const journal = await store.readJournal(record.run, 0);
      assert.deepEqual([record.head, journal[1]?.type, journal[1]?.data], [2, "NodeCompleted", '{"result":7}']);
      assert.equal(findJournalFault(journal, record), undefined);
      assert.deepEqual(await counters(store, record.run), ["x 1/1", "y 1/2", "z 1/1"]);
      const [inputs] = await store.readInputs([{ run: record.run, targets: ["y"] }]);
      assert.deepEqual(
        inputs?.map(({ edge, seq, data }) => [edge, seq, data]),
        [["x", 2, '{"result":7}']],
      );
      // The last value that `y` waits for queues it, in the fork alone.
      const [z] = await takeNodes(store, worker, "z");
      assert.equal(z.run, record.run);
      await commit(store, completed(z, [arrival("y", "z", 2)]));
      const [y] = await takeNodes(store, worker, "y");
      assert.equal(y.run, record.run);
      assert.deepEqual(await counters(store, origin.run), ["w 1/1", "x 1/1", "y 1/2"]);
      const [refused] = await store.write([
        { ...write, run: { ...write.run, id: "import-3" }, origin: { run: origin.run, seq: head, mark: 1 } },
      ]);
      assert.equal(refused.status, "no_checkpoint");
    },
  ),
];
