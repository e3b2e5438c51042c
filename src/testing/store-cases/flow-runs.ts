import assert from "node:assert/strict";
import {
  MAX_TAKEOVERS,
  SUSPECT_AFTER,
  type Arrival,
  type ClaimedItem,
  type NewEntry,
  type Store,
} from "../../kernel/index.ts";
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
  FLOW,
  completedItem,
  leasedTo,
  NODE,
  ROUTE,
  RUN_COMPLETED,
  RUN_FAILED,
  spreadOf,
  startFlow,
  startWithNodes,
  statusOf,
  takeNodes,
} from "./flow-actions.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  fireDue,
  getRun,
  LEASE_MS,
  newRun,
  newToken,
  registerWorker,
  taskParts,
  send,
  startHeld,
  startWaiting,
  takeTurn,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const IMPORT = ["import"];
const CANCEL: Arrival = { type: "ChildWorkflowFailed", target: "x", data: "{}" };
const CANCELLED: NewEntry = { type: "RunCancelled", command: "", data: "{}" };
const INITIATED = ["ChildWorkflowInitiated", "ChildWorkflow(0)"] as const;

function initiated(node: string): NewEntry {
  return { type: "ChildWorkflowInitiated", command: node, data: "{}" };
}

function terminate(store: Store, id: string) {
  return store.write([{ write: "terminate", id, data: "{}", answer: '{"gone":true}', cancel: "{}" }]);
}

export const flowRunCases: readonly StoreCase[] = [
  // ── turns and claims ──

  storeCase(
    "a completion releases a flow's turn: the flow is running with nodes in the queue, and waiting without",
    async (store) => {
      const worker = await registerWorker(store);
      await startWithNodes(store, worker, "import-1", "x");
      assert.equal(await statusOf(store, "import-1"), "running");
      assert.deepEqual(await claimTurns(store, worker, IMPORT), []);
      const [x] = await takeNodes(store, worker, "x");
      const child = { run: newRun("child-1"), command: "x", detached: false, taken: CANCEL };
      const { children } = await commit(store, completed(x, [], { entries: [initiated("x")], children: [child] }));
      assert.equal(await statusOf(store, "import-1"), "waiting");
      assert.deepEqual(
        children.map(({ id, parent, parentCommand }) => [id, parent, parentCommand]),
        [["child-1", x.run, "x"]],
      );
      // A turn reads the child's answer and queues the next node.
      const answer = { type: "ChildWorkflowCompleted", target: "x", data: '{"output":1}' } as const;
      const held = await takeTurn(store, worker);
      await commitTurn(store, held, { ...COMPLETES, messages: [{ to: x.run, arrival: answer }] });
      const turn = await takeTurn(store, worker, IMPORT);
      assert.deepEqual(
        turn.inbox.map(({ target }) => target),
        ["x"],
      );
      const fence = { turn: turn.token, read: 1 };
      await commit(store, completeWrite(x.run, fence, { entries: [done("x")], arrivals: [arrival("y", "x", 1)] }));
      assert.equal(await statusOf(store, "import-1"), "running");
      assert.deepEqual(await store.readInbox(x.run, 0), []);
      assert.deepEqual(await claimTurns(store, worker, IMPORT), []);
      await takeNodes(store, worker, "y");
    },
  ),

  storeCase("a message that arrives while a flow's turn is held makes it due again, and sets `more`", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "import-1", FLOW);
    await send(store, "import-1");
    const fence = { turn: held.token, read: 0 };
    const arrivals = [arrival("x", "input", 1, { cause: undefined })];
    assert.equal((await commit(store, completeWrite(held.run, fence, { arrivals }))).more, true);
    const turn = await takeTurn(store, worker, IMPORT);
    assert.equal(turn.inbox.length, 1);
    // A node that ends in the meantime does not affect the turn.
    const [x] = await takeNodes(store, worker, "x");
    assert.equal((await commit(store, completed(x, [arrival("y", "x", 1)]))).more, true);
    const read = { turn: turn.token, read: 1 };
    assert.equal((await commit(store, completeWrite(held.run, read, {}))).more, false);
    assert.deepEqual(await claimTurns(store, worker, IMPORT), []);
  }),

  storeCase("a node is claimed by its route, with the seq of its entry", async (store) => {
    const worker = await registerWorker(store);
    const held = await startWithNodes(store, worker, "import-1", "x");
    assert.deepEqual(await claimItems(store, worker, ["import", "import\n2", "x"]), []);
    const [x] = await takeNodes(store, worker, "x");
    assert.deepEqual(x, {
      run: held.run,
      runId: "import-1",
      definition: "import",
      generation: 0,
      item: "x",
      kind: "node",
      name: ROUTE,
      token: x.token,
      attempt: 0,
      execution: 1,
      failures: undefined,
      seq: 1,
      data: "",
      suspicion: 0,
    });
    // A second attempt, later.
    const availableAt = store.now();
    await store.write([
      { write: "return-item", run: x.run, item: "x", token: x.token, attempt: 1, availableAt, failures: "[1]" },
    ]);
    await fireDue(store);
    const [again] = await takeNodes(store, worker, "x");
    assert.deepEqual([again.attempt, again.failures, again.kind], [1, "[1]", "node"]);
    await commit(store, completed(again, [arrival("y", "x", 1)]));
  }),

  storeCase(
    "a node whose worker died is queued again, and a completion by the dead worker is stale",
    async (store, t) => {
      const [dead, alive] = [await registerWorker(store), await registerWorker(store)];
      await startWithNodes(store, dead, "import-1", "x");
      const [old] = await takeNodes(store, dead, "x");
      t.clock.advance(60_000);
      await store.renewLease(alive, 60_000);
      assert.equal((await store.reap(alive)).items, 1);
      const [x] = await takeNodes(store, alive, "x");
      assert.deepEqual(await store.write([completed(old, [arrival("y", "x", 1)])]), [{ status: "stale" }]);
      await commit(store, completed(x, [arrival("y", "x", 1)]));
    },
  ),

  storeCase("nodes and tasks of one queue share its slots, and a completion frees the key", async (store) => {
    const worker = await registerWorker(store);
    const limits = { concurrency: 3, perKey: { concurrency: 1 } };
    await store.write([{ write: "declare-queue", name: "mail", limits }]);
    const node = (key: string) => ({ name: `${ROUTE}\nmail`, priority: 0, slot: { queue: "mail", key } });
    const arrivals = ["a", "b"].flatMap((key) =>
      [0, 1].map((n) => arrival(`${key}${n}`, "input", 1, { cause: undefined, node: node(key) })),
    );
    await startFlow(store, worker, "import-1", { arrivals });
    const held = await startHeld(store, worker, "order-1");
    const tasks = taskParts(held, 2, (n) => ({ slot: { queue: "mail", key: `t${n}` } }));
    await commitTurn(store, held, { ...tasks, then: "release" });
    const names = [`${ROUTE}\nmail`, "charge"];
    const first = await claimItems(store, worker, names);
    assert.deepEqual(first.map(({ item, kind }) => `${kind} ${item}`).toSorted(), [
      "node a0",
      "node b0",
      "task Task(0)",
    ]);
    const [a0] = first.filter(({ item }) => item === "a0") as [ClaimedItem];
    await commit(store, completed(a0, []));
    assert.deepEqual(
      (await claimItems(store, worker, names)).map(({ item }) => item),
      ["a1"],
    );
  }),

  // ── stopped runs (completion.C7) ──

  storeCase(
    "nodes that become ready while a flow is paused are stopped until it is resumed, and none is leased",
    async (store, t) => {
      const worker = await registerWorker(store);
      const { run } = await startWithNodes(store, worker, "import-1", "w", "x", "y", "z");
      const [w, x, y] = (await claimNodes(store, worker, 3)) as [ClaimedItem, ClaimedItem, ClaimedItem];
      await store.write([{ write: "pause", id: "import-1" }]);
      assert.deepEqual(await claimNodes(store, worker), []);
      const claim = { worker, token: newToken() };
      const { queued } = await commit(store, completed(x, [arrival("j", "x", 1, { node: leasedTo(claim) })]));
      assert.deepEqual(queued, [{ item: "j", seq: 2, token: undefined }]);
      assert.equal(await statusOf(store, "import-1"), "paused");
      // A node that is returned in the meantime waits, too.
      await store.write([
        { write: "return-item", run, item: w.item, token: w.token, attempt: 0 },
        { write: "return-item", run, item: y.item, token: y.token, attempt: 1, availableAt: store.now() + 10 },
      ]);
      t.clock.advance(10);
      await fireDue(store);
      assert.deepEqual(await claimNodes(store, worker), []);
      await store.write([{ write: "resume", id: "import-1" }]);
      await takeNodes(store, worker, "j", "w", "y", "z");
    },
  ),

  storeCase("a paused flow counts the arrivals of its spread, and its items wait", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startFlow(store, worker, "import-1", spreadOf(3, 2));
    const items = await takeNodes(store, worker, "saved[0]", "saved[1]");
    await store.write([{ write: "pause", id: "import-1" }]);
    for (const item of items) await commit(store, completedItem(item, leasedTo({ worker, token: newToken() })));
    assert.deepEqual(await store.readReadiness(run), [{ node: "saved", required: 3, completed: 2, queued: 3 }]);
    assert.deepEqual(await claimNodes(store, worker), []);
    await store.write([{ write: "resume", id: "import-1" }]);
    const [last] = await takeNodes(store, worker, "saved[2]");
    await commit(store, completedItem(last));
    await takeNodes(store, worker, "saved");
  }),

  storeCase(
    "a node that too many workers lost blocks its flow, and the other nodes wait until it is resumed",
    async (store, t) => {
      const keeper = await registerWorker(store);
      await startWithNodes(store, keeper, "import-1", "x");
      for (let deaths = 0; deaths < MAX_TAKEOVERS; deaths++) {
        const dead = await registerWorker(store);
        const [x] = await takeNodes(store, dead, "x");
        assert.equal(x.suspicion, deaths >= SUSPECT_AFTER ? deaths : 0);
        t.clock.advance(60_000);
        await store.renewLease(keeper, 60_000);
        await store.reap(keeper);
        if (deaths > 0) continue;
        // Another one, which kills no worker.
        await send(store, "import-1");
        const turn = await takeTurn(store, keeper, IMPORT);
        const arrivals = [arrival("y", "turn", 1, { cause: undefined, node: { ...NODE, name: `${ROUTE}\nmail` } })];
        await commit(store, completeWrite(turn.run, { turn: turn.token, read: 1 }, { arrivals }));
      }
      assert.equal(await statusOf(store, "import-1"), "blocked");
      assert.deepEqual(await claimItems(store, keeper, [ROUTE, `${ROUTE}\nmail`]), []);
      await store.write([{ write: "resume", id: "import-1" }]);
      const ready = await claimItems(store, keeper, [ROUTE, `${ROUTE}\nmail`]);
      assert.deepEqual(ready.map(({ item }) => item).toSorted(), ["x", "y"]);
    },
  ),

  // ── ends (completion.C5, rules.F9) ──

  storeCase(
    "a flow ends once: the first output is kept, the second completion is stale, and the queue is empty",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startWithNodes(store, worker, "import-1", "x", "y", "z");
      const [x, y] = (await claimNodes(store, worker, 2)) as [ClaimedItem, ClaimedItem];
      const output = (n: number) => ({ ...RUN_COMPLETED, data: `{"output":${n}}` });
      const [one, two] = await store.write([
        completed(x, [arrival("never", "x", 1)], endParts("completed", [done(x.item), output(1)])),
        completed(y, [], endParts("completed", [done(y.item), output(2)])),
      ]);
      assert.deepEqual([one.status, two.status], ["committed", "stale"]);
      assert.ok(one.status === "committed" && one.queued.length === 0);
      const record = await getRun(store, "import-1");
      assert.deepEqual([record.status, record.head, record.endedAt], ["completed", 3, store.now()]);
      assert.equal((await store.readJournal(run, 2))[0]?.data, '{"output":1}');
      assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
      assert.deepEqual(await claimNodes(store, worker), []);
      // Its counters stay, for people and for a retry.
      assert.deepEqual(await counters(store, run), ["never 1/1", "x 1/1", "y 1/1", "z 1/1"]);
    },
  ),

  storeCase(
    "after the end of a flow with more nodes than one transaction deletes, none can be claimed or completed",
    async (store) => {
      const worker = await registerWorker(store);
      await startFlow(store, worker, "import-1", { ...spreadOf(2_500, 2_500), arrivals: [arrival("x", "input", 1)] });
      const items = await claimNodes(store, worker, 1_500);
      const [x] = (await claimNodes(store, worker, 2_000)).filter(({ item }) => item === "x");
      const last = x ?? (items.find(({ item }) => item === "x") as ClaimedItem);
      await commit(store, completed(last, [], endParts("completed", [done("x"), RUN_COMPLETED])));
      const late = await store.write(items.slice(0, 10).map((item) => completedItem(item)));
      for (const outcome of late) assert.equal(outcome.status, "stale");
      assert.deepEqual(await claimNodes(store, worker), []);
      while ((await store.info()).items.leased > 0) await store.reap(worker);
      assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
    },
  ),

  storeCase("a flow that ends while a worker holds its turn voids the token of the turn", async (store) => {
    const worker = await registerWorker(store);
    await startWithNodes(store, worker, "import-1", "x");
    const [x] = await takeNodes(store, worker, "x");
    await send(store, "import-1");
    const turn = await takeTurn(store, worker, IMPORT);
    await commit(store, completed(x, [], endParts("completed", [done("x"), RUN_COMPLETED])));
    await assertNothingWritten(store, async () => {
      const late = completeWrite(turn.run, { turn: turn.token, read: 1 }, endParts("cancelled", [CANCELLED]));
      assert.deepEqual(await store.write([late]), [{ status: "stale" }]);
    });
    assert.equal((await getRun(store, "import-1")).unread, 1);
    assert.deepEqual(await store.readInbox(turn.run, 0), []);
  }),

  storeCase("a flow that ends answers its parent and cancels its live children", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startWaiting(store, worker, "order-1");
    const asChild = await startHeld(store, worker, "order-2");
    const made = { run: newRun("import-1", FLOW), command: "ChildWorkflow(0)", detached: false, taken: CANCEL };
    await commitTurn(store, asChild, { entries: [INITIATED], children: [made], then: "release" });
    const turn = await takeTurn(store, worker, IMPORT);
    const nodes = ["a", "b", "x"].map((name) => arrival(name, "input", 1, { cause: undefined }));
    await commit(store, completeWrite(turn.run, { turn: turn.token, read: 0 }, { arrivals: nodes }));
    const [a, b, x] = await takeNodes(store, worker, "a", "b", "x");
    for (const node of [a, b]) {
      const child = { run: newRun(`of-${node.item}`), command: node.item, detached: false, taken: CANCEL };
      await commit(store, completed(node, [], { entries: [initiated(node.item)], children: [child] }));
    }
    const [one, two] = await claimTurns(store, worker);
    assert.ok(one !== undefined && two !== undefined);
    const ofA = one.record.id === "of-a" ? one : two;
    await store.write([{ write: "terminate", id: "of-a", data: "{}", answer: "{}", cancel: "{}" }]);
    const failure = { type: "ChildWorkflowFailed", target: "ChildWorkflow(0)", data: '{"why":1}' } as const;
    const outcome = await commit(store, {
      ...completed(x, [], endParts("failed", [{ type: "NodeFailed", command: "x", data: "{}" }, RUN_FAILED])),
      messages: [
        { to: asChild.run, arrival: failure },
        { to: parent.run, arrival: failure },
      ],
      cancel: '{"reason":"over"}',
    });
    const live = ofA === one ? two : one;
    assert.deepEqual(outcome.notified, [live.record.run]);
    assert.deepEqual(
      (await store.readInbox(live.record.run, 0)).map(({ type, data }) => [type, data]),
      [["CancelRequested", '{"reason":"over"}']],
    );
    for (const run of [asChild.run, parent.run])
      assert.deepEqual(await store.readInbox(run, 0), [{ arrival: 1, ...failure }]);
    assert.equal(await statusOf(store, "import-1"), "failed");
  }),

  storeCase("a node's child whose id is taken puts `taken` into the flow's inbox", async (store) => {
    const worker = await registerWorker(store);
    await startWaiting(store, worker, "taken");
    const { run } = await startWithNodes(store, worker, "import-1", "x");
    const [x] = await takeNodes(store, worker, "x");
    const taken = { type: "ChildWorkflowFailed", target: "x", data: '{"taken":true}' } as const;
    const child = { run: newRun("taken"), command: "x", detached: false, taken };
    const outcome = await commit(store, completed(x, [], { entries: [initiated("x")], children: [child] }));
    assert.deepEqual([outcome.children, outcome.more], [[], true]);
    assert.deepEqual(await store.readInbox(run, 0), [{ arrival: 1, ...taken }]);
    await takeTurn(store, worker, IMPORT);
  }),

  // ── stops ──

  storeCase(
    "a flow stopped at a node keeps its evidence, and its nodes can be claimed only after a resume",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startWithNodes(store, worker, "import-1", "x", "y");
      const [x] = await claimNodes(store, worker, 1);
      assert.ok(x);
      const stop = { write: "stop", run, item: x.item, status: "blocked", evidence: '{"where":"x"}' } as const;
      await assertNothingWritten(store, async () => {
        assert.deepEqual(await store.write([{ ...stop, token: "another" }]), [{ status: "lease_lost" }]);
      });
      assert.deepEqual(await store.write([{ ...stop, token: x.token }]), [{ status: "committed" }]);
      const { status, evidence } = await getRun(store, "import-1");
      assert.deepEqual([status, evidence], ["blocked", '{"where":"x"}']);
      assert.deepEqual(await claimNodes(store, worker), []);
      await assertNothingWritten(store, async () => {
        const [late] = await store.write([completed(x, [])]);
        assert.equal(late.status, "stale");
      });
      await store.write([{ write: "resume", id: "import-1" }]);
      await takeNodes(store, worker, "x", "y");
    },
  ),

  storeCase(
    "a flow whose node killed too many workers is blocked, and its other nodes wait until it is resumed",
    async (store, t) => {
      await startWithNodes(store, await registerWorker(store), "import-1", "x", "y");
      for (let takeovers = 1; takeovers <= MAX_TAKEOVERS; takeovers++) {
        const [x] = await claimNodes(store, await registerWorker(store), 1);
        assert.equal(x?.item, "x");
        t.clock.advance(LEASE_MS);
        await store.reap(await registerWorker(store));
      }
      const worker = await registerWorker(store);
      assert.equal(await statusOf(store, "import-1"), "blocked");
      assert.deepEqual(await claimNodes(store, worker), []);
      await store.write([{ write: "resume", id: "import-1" }]);
      await takeNodes(store, worker, "x", "y");
    },
  ),

  // ── maintenance ──

  storeCase(
    "a failed flow that is retried has the planned nodes ready again and its counters unchanged",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startFlow(store, worker, "import-1", spreadOf(3, 3));
      const [zero, one] = await takeNodes(store, worker, "saved[0]", "saved[1]", "saved[2]");
      await commit(store, completedItem(zero));
      const failed = { type: "NodeFailed", command: "saved[1]", data: "{}" } as const;
      await commit(store, completed(one, [], endParts("failed", [failed, RUN_FAILED])));
      const { head } = await getRun(store, "import-1");
      const items = ["saved[1]", "saved[2]"].map(
        (item) => ({ item, kind: "node", name: ROUTE, priority: 0, seq: 2 }) as const,
      );
      const data = JSON.stringify({ from: head - 1, commands: 0 });
      const [outcome] = await store.write([{ write: "retry", run, head, data, items, children: [], answers: [] }]);
      assert.equal(outcome.status, "committed");
      const again = await takeNodes(store, worker, "saved[1]", "saved[2]");
      assert.deepEqual(
        again.map(({ kind }) => kind),
        ["node", "node"],
      );
      const [, last] = await store.write(again.map((item) => completedItem(item)));
      assert.ok(last?.status === "committed" && last.queued[0]?.item === "saved");
    },
  ),

  storeCase(
    "the arrivals and counters of a flow are deleted when its run is pruned, and those of other runs stay",
    async (store, t) => {
      const worker = await registerWorker(store);
      const old = await startFlow(store, worker, "import-1", spreadOf(2_500, 2_500));
      for (
        let items = await claimNodes(store, worker, 500);
        items.length > 0;
        items = await claimNodes(store, worker, 500)
      )
        await store.write(items.filter(({ item }) => item !== "saved").map((item) => completedItem(item)));
      await terminate(store, "import-1");
      assert.deepEqual(await counters(store, old.run), ["saved 2500/2500"]);
      t.clock.advance(1_000);
      const young = await startWithNodes(store, worker, "import-2", "x");
      assert.deepEqual(await store.prune(store.now()), { runs: 1 });
      assert.deepEqual(await store.readReadiness(old.run), []);
      assert.deepEqual(await store.readInputs([{ run: old.run, targets: ["saved"] }]), [[]]);
      assert.deepEqual(await counters(store, young.run), ["x 1/1"]);
    },
  ),
];
