import assert from "node:assert/strict";
import { findJournalFault, type ClaimedItem, type CompleteWrite } from "../../kernel/index.ts";
import { assertNothingWritten } from "./store-dump.ts";
import {
  arrival,
  claimNodes,
  commit,
  completed,
  completeWrite,
  counters,
  done,
  endParts,
  RUN_COMPLETED,
  spreadOf,
  startFlow,
  startWithNodes,
  takeNodes,
} from "./flow-actions.ts";
import { getRun, message, newToken, registerWorker, takeTurn } from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const JOIN = ["x", "y", "z"] as const;
const ORDERS = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const;

/** One of the three arrivals that J requires. */
function toJoin(item: ClaimedItem): CompleteWrite {
  return completed(item, [arrival("j", item.item, 3)]);
}

export const completionCases: readonly StoreCase[] = [
  // ── readiness (completion.C2, completion.C3) ──

  storeCase("a node is queued by the completion that brings its last arrival, in any order", async (store) => {
    const worker = await registerWorker(store);
    for (const order of ORDERS) {
      const id = `order-${order.join("")}`;
      const { run } = await startWithNodes(store, worker, id, ...JOIN);
      const items = await takeNodes(store, worker, ...JOIN);
      for (const [turn, index] of order.entries()) {
        assert.deepEqual(await claimNodes(store, worker), []);
        const { queued } = await commit(store, toJoin(items[index]));
        assert.equal((await counters(store, run))[0], `j ${turn + 1}/3`);
        assert.deepEqual(
          queued.map(({ item }) => item),
          turn === 2 ? ["j"] : [],
        );
      }
      const [join] = await takeNodes(store, worker, "j");
      await commit(store, completed(join, [], endParts("completed", [done("j"), RUN_COMPLETED])));
    }
  }),

  storeCase("the last of a node's arrivals in one batch queues the node once", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startWithNodes(store, worker, "import-1", ...JOIN);
    const items = await takeNodes(store, worker, ...JOIN);
    const outcomes = await store.write(items.map(toJoin));
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status === "committed" && outcome.queued.length),
      [0, 0, 1],
    );
    assert.deepEqual(await counters(store, run), ["j 3/3", "x 1/1", "y 1/1", "z 1/1"]);
    await takeNodes(store, worker, "j");
  }),

  storeCase(
    "when several connections bring a node's arrivals at the same time, one of them queues it",
    async (store, t) => {
      const worker = await registerWorker(store);
      const others = [await t.openAgain(), await t.openAgain()];
      for (let n = 0; n < 10; n++) {
        const { run } = await startWithNodes(store, worker, `import-${n}`, ...JOIN);
        const items = await takeNodes(store, worker, ...JOIN);
        const outcomes = await Promise.all(
          [store, ...others].map((one, index) => one.write([toJoin(items[index] as ClaimedItem)])),
        );
        const queued = outcomes.flatMap(([outcome]) => (outcome.status === "committed" ? outcome.queued : []));
        assert.deepEqual(
          queued.map(({ item }) => item),
          ["j"],
        );
        assert.equal((await counters(store, run))[0], "j 3/3");
        await takeNodes(store, worker, "j");
      }
    },
  ),

  storeCase("a second arrival with the same target, edge and index is stored once and counted once", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startWithNodes(store, worker, "import-1", "x", "y");
    const [x, y] = await takeNodes(store, worker, "x", "y");
    const twice = [arrival("j", "x", 2), arrival("j", "x", 2, { kind: "skip" })];
    await commit(store, completed(x, twice));
    assert.deepEqual((await counters(store, run))[0], "j 1/2");
    // Another node on the same edge, like a node that ran twice.
    await commit(store, completed(y, [arrival("j", "x", 2, { kind: "failure" })]));
    assert.deepEqual((await counters(store, run))[0], "j 1/2");
    const [inputs] = await store.readInputs([{ run, targets: ["j"] }]);
    assert.deepEqual(
      inputs?.map(({ edge, kind }) => [edge, kind]),
      [["x", "value"]],
    );
    await store.write([{ write: "terminate", id: "import-1", data: "{}", answer: "{}", cancel: "{}" }]);
  }),

  storeCase("arrivals with different edges, indexes and targets are all counted", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startWithNodes(store, worker, "import-1", "x");
    const [x] = await takeNodes(store, worker, "x");
    const arrivals = [
      arrival("j", "x", 4),
      arrival("j", "X", 4),
      arrival("j", "x", 4, { index: 0 }),
      arrival("j", "x", 4, { index: 1 }),
      arrival("k", "x", 1),
    ];
    const { queued } = await commit(store, completed(x, arrivals));
    assert.deepEqual(await counters(store, run), ["j 4/4", "k 1/1", "x 1/1"]);
    assert.deepEqual(
      queued.map(({ item }) => item),
      ["j", "k"],
    );
  }),

  // ── rejected completions (completion.C1, completion.C4) ──

  storeCase("a repeated completion, or one with an old token, is stale and writes nothing", async (store, t) => {
    const [first, second] = [await registerWorker(store), await registerWorker(store)];
    const { run } = await startWithNodes(store, first, "import-1", "x");
    const [old] = await takeNodes(store, first, "x");
    t.clock.advance(60_000);
    await store.renewLease(second, 60_000);
    await store.reap(second);
    const [taken] = await takeNodes(store, second, "x");
    const write = completed(taken, [arrival("j", "x", 2)]);
    await assertNothingWritten(store, async () => {
      const late = completed(old, [arrival("j", "x", 2)]);
      assert.deepEqual(await store.write([late, { ...late, fence: { item: "y", token: taken.token } }]), [
        { status: "stale" },
        { status: "stale" },
      ]);
    });
    const [one, two] = await store.write([write, write]);
    assert.deepEqual([one.status, two.status], ["committed", "stale"]);
    await assertNothingWritten(store, async () => {
      assert.deepEqual(await store.write([write]), [{ status: "stale" }]);
    });
    assert.deepEqual(await counters(store, run), ["j 1/2", "x 1/1"]);
    await store.write([{ write: "terminate", id: "import-1", data: "{}", answer: "{}", cancel: "{}" }]);
  }),

  storeCase("a completion under a returned turn is stale", async (store) => {
    const worker = await registerWorker(store);
    const held = await startWithNodes(store, worker, "import-1", "x");
    await assertNothingWritten(store, async () => {
      for (const turn of [held.token, newToken()]) {
        const again = completeWrite(held.run, { turn, read: 0 }, { arrivals: [arrival("y", "input", 1)] });
        assert.deepEqual(await store.write([again]), [{ status: "stale" }]);
      }
    });
  }),

  storeCase("a completion for a run that has ended or does not exist is stale", async (store) => {
    const worker = await registerWorker(store);
    await startWithNodes(store, worker, "import-1", "x");
    const [x] = await takeNodes(store, worker, "x");
    await store.write([{ write: "terminate", id: "import-1", data: "{}", answer: "{}", cancel: "{}" }]);
    await assertNothingWritten(store, async () => {
      const write = completed(x, [arrival("j", "x", 1)]);
      assert.deepEqual(await store.write([write, { ...write, run: 999_999 }]), [
        { status: "stale" },
        { status: "stale" },
      ]);
    });
  }),

  storeCase(
    "a third arrival at a node that requires two blocks the run with evidence and does not change the counters",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startWithNodes(store, worker, "import-1", "w", ...JOIN);
      const [w, x, y, z] = await takeNodes(store, worker, "w", ...JOIN);
      await store.write([completed(x, [arrival("j", "x", 2)]), completed(y, [arrival("j", "y", 2)])]);
      const before = await getRun(store, "import-1");
      // Earlier writes of the batch are committed.
      const [fine, refused] = await store.write([
        completed(w, [arrival("k", "w", 2)]),
        completed(z, [arrival("k", "z", 2), arrival("j", "z", 2)]),
      ]);
      assert.equal(fine.status, "committed");
      const expected = { code: "READINESS_OVERFLOW", node: "j", completed: 2, required: 2, wanted: 3 } as const;
      assert.deepEqual(refused, { status: "blocked", evidence: expected });
      const blocked = await getRun(store, "import-1");
      assert.deepEqual([blocked.status, blocked.head], ["blocked", before.head + 1]);
      const { message: said, ...evidence } = JSON.parse(blocked.evidence ?? "") as Record<string, unknown>;
      assert.deepEqual(evidence, { ...expected, status: "blocked", where: "j" });
      assert.match(String(said), /Node j has 2 of 2/);
      assert.deepEqual((await counters(store, run)).slice(0, 2), ["j 2/2", "k 1/2"]);
      assert.deepEqual(await claimNodes(store, worker), []);
      // Its node is stopped, too, and both continue after a resume.
      assert.deepEqual(await store.write([completed(z, [])]), [{ status: "stale" }]);
      await store.write([{ write: "resume", id: "import-1" }]);
      await takeNodes(store, worker, "j", "z");
    },
  ),

  storeCase("an arrival at a barrier before its spread blocks the run", async (store) => {
    const worker = await registerWorker(store);
    await startWithNodes(store, worker, "import-1", "x");
    const [x] = await takeNodes(store, worker, "x");
    const [outcome] = await store.write([completed(x, [arrival("saved", "saved[]", undefined, { index: 0 })])]);
    assert.deepEqual(outcome, {
      status: "blocked",
      evidence: { code: "READINESS_OVERFLOW", node: "saved", completed: 0, required: 0, wanted: 1 },
    });
  }),

  storeCase(
    "another `required` than the first blocks the run with evidence, and nothing else is written",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startWithNodes(store, worker, "import-1", "x", "y");
      const [x, y] = await takeNodes(store, worker, "x", "y");
      await commit(store, completed(x, [arrival("j", "x", 2)]));
      const { head } = await getRun(store, "import-1");
      const [outcome] = await store.write([completed(y, [arrival("j", "y", 3), arrival("k", "y", 1)])]);
      assert.deepEqual(outcome, {
        status: "blocked",
        evidence: { code: "READINESS_MISMATCH", node: "j", completed: 1, required: 2, wanted: 3 },
      });
      assert.deepEqual(await counters(store, run), ["j 1/2", "x 1/1", "y 1/1"]);
      assert.equal((await getRun(store, "import-1")).head, head);
    },
  ),

  storeCase("a second spread of the same items blocks the run", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startFlow(store, worker, "import-1", {
      ...spreadOf(3, 3),
      arrivals: [arrival("again", "input", 1)],
    });
    const items = await claimNodes(store, worker);
    const again = items.find(({ item }) => item === "again") as ClaimedItem;
    const [outcome] = await store.write([completed(again, [], spreadOf(3, 3))]);
    assert.deepEqual(outcome, {
      status: "blocked",
      evidence: { code: "READINESS_OVERFLOW", node: "saved", completed: 0, required: 3, wanted: 3 },
    });
    assert.deepEqual((await counters(store, run))[1], "saved 0/3");
  }),

  // ── entries (completion.C6) ──

  storeCase(
    "completions of one run in one batch get dense entries in the order of the writes, and one chain",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startWithNodes(store, worker, "import-1", ...JOIN);
      const items = await takeNodes(store, worker, ...JOIN);
      const [x, y, z] = items.map(toJoin) as [CompleteWrite, CompleteWrite, CompleteWrite];
      const outcomes = await store.write([
        { ...y, entries: [done("y", '{"result":"ÿ"}'), done("extra")] },
        message("import-1"),
        { ...x, fence: { item: "x", token: newToken() } },
        z,
        x,
      ]);
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.status === "committed" && "seq" in outcome ? outcome.seq : outcome.status)),
        [2, "committed", "stale", 4, 5],
      );
      const entries = await store.readJournal(run, 0);
      assert.deepEqual(
        entries.map(({ command }) => command),
        ["", "y", "extra", "z", "x"],
      );
      const record = await getRun(store, "import-1");
      assert.equal(findJournalFault(entries, record), undefined);
      assert.equal(record.arrivals, 1);
      assert.ok(outcomes[0].status === "committed" && outcomes[0].at === entries[1]?.at);
      await takeTurn(store, worker, ["import"]);
    },
  ),

  // ── inputs (rules.F7) ──

  storeCase(
    "a node's inputs are read in one query, by target, edge and index, with the entries that hold them",
    async (store) => {
      const worker = await registerWorker(store);
      const one = await startWithNodes(store, worker, "import-1", ...JOIN);
      const two = await startWithNodes(store, worker, "import-2", "only");
      const items = (await claimNodes(store, worker)).filter(({ run }) => run === one.run);
      const byName = new Map(items.map((item) => [item.item, item]));
      const value = (node: string): CompleteWrite["entries"] => [done(node, `{"result":"of ${node}"}`)];
      for (const [node, arrivals] of [
        ["z", [arrival("list", "i[]", 11, { index: 10 }), arrival("j", "z", 3, { kind: "skip" })]],
        ["y", [arrival("list", "i[]", 11, { index: 9 }), arrival("j", "y", 3)]],
        ["x", [arrival("list", "i[]", 11, { index: 1 }), arrival("j", "x", 3, { cause: undefined })]],
      ] as const)
        await commit(store, completed(byName.get(node) as ClaimedItem, arrivals, { entries: value(node) }));
      const [both, none, other] = await store.readInputs([
        { run: one.run, targets: ["list", "j"] },
        { run: one.run, targets: ["unknown"] },
        { run: two.run, targets: ["only"] },
      ]);
      assert.deepEqual(both, [
        { target: "j", edge: "x", index: -1, kind: "value", seq: 1, data: '{"input":"import-1"}' },
        { target: "j", edge: "y", index: -1, kind: "value", seq: 3, data: '{"result":"of y"}' },
        { target: "j", edge: "z", index: -1, kind: "skip", seq: 2, data: '{"result":"of z"}' },
        { target: "list", edge: "i[]", index: 1, kind: "value", seq: 4, data: '{"result":"of x"}' },
        { target: "list", edge: "i[]", index: 9, kind: "value", seq: 3, data: '{"result":"of y"}' },
        { target: "list", edge: "i[]", index: 10, kind: "value", seq: 2, data: '{"result":"of z"}' },
      ]);
      assert.deepEqual(none, []);
      assert.deepEqual(
        other?.map(({ data }) => data),
        ['{"input":"import-2"}'],
      );
    },
  ),
];
