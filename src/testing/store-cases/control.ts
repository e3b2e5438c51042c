import assert from "node:assert/strict";
import { findJournalFault, type NewRun, type RetryWrite, type Store, type TerminateWrite } from "../../kernel/index.ts";
import { assertNothingWritten } from "./store-dump.ts";
import {
  claimTurns,
  commitTurn,
  COMPLETES,
  fireDue,
  getRun,
  type HeldTurn,
  LEASE_MS,
  newRun,
  registerWorker,
  taskParts,
  send,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  takeItem,
  takeTurn,
  turnWrite,
  type TurnParts,
  WAITS,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

function terminate(id: string): TerminateWrite {
  return { write: "terminate", id, data: '{"terminated":true}', answer: '{"error":"x"}', cancel: '{"reason":"y"}' };
}

/** A child for its parent's commit. */
function childOf(id: string, overrides?: Partial<NewRun>): TurnParts {
  const command = "ChildWorkflow(0)";
  const taken = { type: "ChildWorkflowFailed", target: command, data: "{}" } as const;
  return {
    entries: [["ChildWorkflowInitiated", command]],
    children: [{ run: newRun(id, overrides), command, detached: false, taken }],
    then: "release",
  };
}

function retry(run: number, head: number): RetryWrite {
  return { write: "retry", run, head, data: '{"commands":1,"from":5}', items: [], children: [], answers: [] };
}

/** A run of five entries that failed while a task, a timer and a child were open. */
async function startFailed(store: Store, worker: number, id: string): Promise<HeldTurn> {
  return commitTurn(store, await startHeld(store, worker, id), {
    entries: [
      ["TaskScheduled", "Task(0)", '{"index":0}'],
      ["TimerStarted", "Timer(0)", '{"index":0}'],
      ["ChildWorkflowInitiated", "ChildWorkflow(0)", '{"index":0}'],
      ["RunFailed", ""],
    ],
    then: "failed",
  });
}

export const controlCases: readonly StoreCase[] = [
  storeCase("the holder of an item can read whether it still holds it", async (store) => {
    const worker = await registerWorker(store);
    const started = await startHeld(store, worker, "order-1");
    const named = (n: number): { name: string } => ({ name: n === 0 ? "charge" : "refund" });
    const held = await commitTurn(store, started, taskParts(started, 2, named));
    const item = await takeItem(store, worker);
    const asked = [
      { run: held.run, item: item.item },
      { run: held.run, item: "Task(1)" },
      { run: held.run, item: "Task(9)" },
      { run: held.run + 1, item: item.item },
    ];
    assert.deepEqual(await store.readItemTokens(asked), [item.token, undefined, undefined, undefined]);
    assert.deepEqual(await store.readItemTokens([]), []);
    await commitTurn(store, held, { entries: [["CancelRequested", ""]], dropped: [item.item] });
    assert.deepEqual(await store.readItemTokens(asked.slice(0, 1)), [undefined]);
  }),

  storeCase(
    "a deadline fires once, counted from the start, and is deleted when the run ends",
    async (store, { clock }) => {
      const worker = await registerWorker(store);
      const late = await startWaiting(store, worker, "late", { deadlineMs: 5_000 });
      const ended = await startHeld(store, worker, "ended", { deadlineMs: 5_000 });
      await startWaiting(store, worker, "free");
      await commitTurn(store, ended, COMPLETES);
      clock.advance(4_999);
      assert.deepEqual((await fireDue(store)).runs, []);
      clock.advance(1);
      assert.deepEqual((await fireDue(store)).runs, [late.run]);
      assert.deepEqual((await fireDue(store)).runs, []);
      const taken = await takeTurn(store, worker);
      assert.deepEqual(
        taken.inbox.map(({ type }) => type),
        ["DeadlineExceeded"],
      );
    },
  ),

  storeCase("a child's deadline is counted from the start of the child", async (store, { clock }) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    clock.advance(1_000);
    await commitTurn(store, parent, childOf("child", { deadlineMs: 5_000 }));
    clock.advance(5_000);
    assert.deepEqual((await fireDue(store)).runs, [(await getRun(store, "child")).run]);
  }),

  storeCase("a paused run keeps its messages, and its turn is due only after resume", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startWaiting(store, worker, "order-1");
    const paused = [{ status: "committed", run }];
    assert.deepEqual(await store.write([{ write: "pause", id: "order-1" }]), paused);
    assert.deepEqual(await store.write([{ write: "pause", id: "order-1" }]), paused);
    await send(store, "order-1");
    assert.deepEqual(await claimTurns(store, worker), []);
    assert.equal((await getRun(store, "order-1")).status, "paused");
    await store.write([{ write: "resume", id: "order-1" }]);
    const taken = await takeTurn(store, worker);
    assert.deepEqual([taken.run, taken.inbox.length], [run, 1]);
    await commitTurn(store, taken, { ...COMPLETES, read: 1 });
  }),

  storeCase(
    "a run that pauses itself keeps the reason until it is resumed, and its holder keeps the turn",
    async (store) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1");
      const own = { token: held.token, evidence: '{"message":"no room\u2028"}' };
      assert.deepEqual(await store.write([{ write: "pause", id: "order-1", own }]), [
        { status: "committed", run: held.run },
      ]);
      const paused = await getRun(store, "order-1");
      assert.deepEqual([paused.status, paused.evidence], ["paused", own.evidence]);
      await commitTurn(store, held, { entries: [WAITS], then: "hold" });
      await store.write([{ write: "resume", id: "order-1" }]);
      const resumed = await getRun(store, "order-1");
      assert.deepEqual([resumed.status, resumed.evidence], ["running", undefined]);
    },
  ),

  storeCase(
    "a worker cannot pause a run that another worker holds, and can pause one that no worker holds",
    async (store) => {
      const worker = await registerWorker(store);
      await startHeld(store, worker, "held");
      const { run } = await startWaiting(store, worker, "waiting");
      await assertNothingWritten(store, async () => {
        assert.deepEqual(
          await store.write([
            { write: "pause", id: "held", own: { token: "another", evidence: "{}" } },
            { write: "pause", id: "held", own: { token: undefined, evidence: "{}" } },
          ]),
          [
            { status: "not_pausable", as: "running" },
            { status: "not_pausable", as: "running" },
          ],
        );
      });
      assert.deepEqual(
        await store.write([{ write: "pause", id: "waiting", own: { token: undefined, evidence: "{}" } }]),
        [{ status: "committed", run }],
      );
      assert.equal((await getRun(store, "waiting")).evidence, "{}");
    },
  ),

  storeCase("a due run is no longer due once it is paused", async (store) => {
    const worker = await registerWorker(store);
    await startRun(store, "order-1");
    await store.write([{ write: "pause", id: "order-1" }]);
    assert.deepEqual(await claimTurns(store, worker), []);
    await store.write([{ write: "resume", id: "order-1" }]);
    assert.equal((await claimTurns(store, worker)).length, 1);
  }),

  storeCase("the holder of a paused run can commit, and releases the turn without making it due", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await store.write([{ write: "pause", id: "order-1" }]);
    assert.equal((await store.readProgress([held.run]))[0]?.token, held.token);
    const next = await commitTurn(store, held, { entries: [WAITS] });
    await send(store, "order-1");
    await commitTurn(store, next, { then: "release" });
    assert.equal((await getRun(store, "order-1")).status, "paused");
    assert.deepEqual(await claimTurns(store, worker), []);
    await store.write([{ write: "resume", id: "order-1" }]);
    assert.equal((await takeTurn(store, worker)).inbox.length, 1);
  }),

  storeCase("a paused run whose turn is returned or taken over stays paused", async (store, { clock }) => {
    const worker = await registerWorker(store);
    const [first, second, third] = [
      await startHeld(store, worker, "order-1"),
      await startHeld(store, worker, "order-2"),
      await startHeld(store, await registerWorker(store, "dying"), "order-3"),
    ];
    for (const { id } of [first, second, third]) await store.write([{ write: "pause", id }]);
    await store.write([{ write: "return-turn", run: first.run, token: first.token }]);
    await store.releaseWorker(worker);
    clock.advance(LEASE_MS + 1);
    const next = await registerWorker(store, "next");
    await store.reap(next);
    for (const { id } of [first, second, third]) assert.equal((await getRun(store, id)).status, "paused");
    assert.deepEqual(await claimTurns(store, next), []);
    for (const { id } of [first, second, third]) await store.write([{ write: "resume", id }]);
    assert.equal((await claimTurns(store, next)).length, 3);
  }),

  storeCase(
    "a run resumed while it is held continues with its holder, and is due when the holder returns the turn",
    async (store) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1");
      await store.write([{ write: "pause", id: "order-1" }]);
      await store.write([{ write: "resume", id: "order-1" }]);
      assert.equal((await getRun(store, "order-1")).status, "running");
      assert.deepEqual(await claimTurns(store, worker), []);
      await commitTurn(store, held, { entries: [WAITS] });
      await store.write([{ write: "return-turn", run: held.run, token: held.token }]);
      assert.equal((await claimTurns(store, worker)).length, 1);
    },
  ),

  storeCase("pause refuses a run that has ended, is stopped or does not exist", async (store) => {
    const worker = await registerWorker(store);
    await startEnded(store, worker, "ended");
    const held = await startHeld(store, worker, "stopped");
    await store.write([{ write: "stop", run: held.run, token: held.token, status: "blocked", evidence: "{}" }]);
    await assertNothingWritten(store, async () => {
      assert.deepEqual(
        await store.write([
          { write: "pause", id: "unknown" },
          { write: "pause", id: "ended" },
          { write: "pause", id: "stopped" },
        ]),
        [{ status: "no_run" }, { status: "not_pausable", as: "completed" }, { status: "not_pausable", as: "blocked" }],
      );
    });
  }),

  storeCase(
    "a terminated run has ended with an entry RunCancelled, and its holder's next commit is rejected",
    async (store) => {
      const worker = await registerWorker(store);
      const started = await startHeld(store, worker, "order-1");
      const held = await commitTurn(store, started, taskParts(started, 2));
      await send(store, "order-1");
      const [outcome] = await store.write([terminate("order-1")]);
      assert.equal(outcome.status, "committed");
      const record = await getRun(store, "order-1");
      assert.deepEqual(outcome, { status: "committed", record, notified: [] });
      assert.deepEqual(
        [record.status, record.endedAt, record.head, record.unread],
        ["cancelled", store.now(), held.head + 1, 1],
      );
      const [last] = await store.readJournal(record.run, held.head);
      assert.deepEqual([last?.type, last?.data], ["RunCancelled", '{"terminated":true}']);
      assert.deepEqual(await store.readInbox(record.run, 0), []);
      assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
      await assertNothingWritten(store, async () => {
        const [late] = await store.write([turnWrite(store, held, COMPLETES)]);
        assert.equal(late.status, "lease_lost");
      });
    },
  ),

  storeCase("termination answers the parent and cancels live children, in the same write", async (store) => {
    const worker = await registerWorker(store);
    const top = await startHeld(store, worker, "top");
    await commitTurn(store, top, childOf("middle"));
    const middle = await takeTurn(store, worker);
    await commitTurn(store, middle, childOf("leaf"));
    const leaf = await takeTurn(store, worker);
    const [outcome] = await store.write([terminate("middle")]);
    assert.equal(outcome.status, "committed");
    assert.deepEqual(outcome.status === "committed" && outcome.notified, [top.run, leaf.run]);
    const [answer] = await store.readInbox(top.run, 0);
    assert.deepEqual(
      [answer?.type, answer?.target, answer?.data],
      ["ChildWorkflowFailed", "ChildWorkflow(0)", '{"error":"x"}'],
    );
    const [cancel] = await store.readInbox(leaf.run, 0);
    assert.deepEqual([cancel?.type, cancel?.data], ["CancelRequested", '{"reason":"y"}']);
    assert.equal((await takeTurn(store, worker)).run, top.run);
  }),

  storeCase("terminate refuses a run that has ended or does not exist", async (store) => {
    const worker = await registerWorker(store);
    await startEnded(store, worker, "ended");
    await assertNothingWritten(store, async () => {
      assert.deepEqual(await store.write([terminate("unknown"), terminate("ended")]), [
        { status: "no_run" },
        { status: "ended", as: "completed" },
      ]);
    });
  }),

  storeCase(
    "a failed run that is retried is live again, continues its journal and has its items back",
    async (store, { clock }) => {
      const worker = await registerWorker(store);
      const failed = await startFailed(store, worker, "order-1");
      const before = await getRun(store, "order-1");
      const items = [
        { item: "Task(0)", kind: "task", name: "charge", priority: 0, seq: 2 },
        { item: "Timer(0)", kind: "timer", name: "TimerFired", priority: 0, availableAt: store.now() + 10, seq: 3 },
      ] as const;
      const answer = { type: "ChildWorkflowCompleted", target: "ChildWorkflow(0)", data: "{}" } as const;
      const [outcome] = await store.write([{ ...retry(failed.run, before.head), items, answers: [answer] }]);
      assert.deepEqual(outcome, { status: "committed" });
      const record = await getRun(store, "order-1");
      assert.deepEqual(
        [record.status, record.endedAt, record.head, record.unread],
        ["queued", undefined, before.head + 1, 0],
      );
      const journal = await store.readJournal(record.run, 0);
      assert.deepEqual([journal.at(-1)?.type, journal.at(-1)?.data], ["RunRetried", '{"commands":1,"from":5}']);
      assert.equal(findJournalFault(journal, record), undefined);
      assert.equal((await takeItem(store, worker)).item, "Task(0)");
      clock.advance(10);
      assert.deepEqual((await fireDue(store)).runs, [record.run]);
      const taken = await takeTurn(store, worker);
      assert.deepEqual(
        taken.inbox.map(({ type }) => type),
        ["ChildWorkflowCompleted", "TimerFired"],
      );
    },
  ),

  storeCase("a retried run gets a new deadline", async (store, { clock }) => {
    const worker = await registerWorker(store);
    const { run } = await startFailed(store, worker, "order-1");
    clock.advance(1_000);
    await store.write([{ ...retry(run, 5), deadlineMs: 500 }]);
    clock.advance(499);
    assert.deepEqual((await fireDue(store)).runs, []);
    clock.advance(1);
    assert.deepEqual((await fireDue(store)).runs, [run]);
  }),

  storeCase("a retry planned for another head or for an ended child writes nothing", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startFailed(store, worker, "order-1");
    const ended = await startEnded(store, worker, "ended");
    await assertNothingWritten(store, async () => {
      assert.deepEqual(
        await store.write([
          retry(run, 4),
          { ...retry(run, 5), children: [ended.run] },
          retry(ended.run, ended.head),
          retry(run + 100, 1),
        ]),
        [{ status: "moved" }, { status: "moved" }, { status: "moved" }, { status: "moved" }],
      );
    });
  }),

  storeCase("a parent that is retried after its child in one batch finds the child live", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startFailed(store, worker, "parent");
    const child = await startFailed(store, worker, "child");
    assert.deepEqual(await store.write([retry(child.run, 5), { ...retry(parent.run, 5), children: [child.run] }]), [
      { status: "committed" },
      { status: "committed" },
    ]);
  }),

  storeCase(
    "a retried run keeps the dedup ids of its messages and its settled ports, except those that are reopened",
    async (store) => {
      const worker = await registerWorker(store);
      const deliver = (target: string, dedupId?: string) =>
        ({
          write: "message",
          to: "order-1",
          arrival: { type: dedupId === undefined ? "PromiseResolved" : "SignalReceived", target, data: "{}" },
          once: dedupId === undefined,
          ...(dedupId !== undefined && { dedupId }),
        }) as const;
      const held = await startHeld(store, worker, "order-1");
      await store.write([deliver("add", "click-1"), deliver("paid"), deliver("approved")]);
      const ends = { entries: [["RunFailed", ""]], then: "failed", read: 3 } as const;
      await commitTurn(store, held, ends);
      const { run, head } = await getRun(store, "order-1");
      await store.write([{ ...retry(run, head), data: '{"commands":0,"from":2}', reopened: ["approved"] }]);
      const outcomes = await store.write([
        deliver("add", "click-1"),
        deliver("paid"),
        deliver("approved"),
        deliver("approved"),
      ]);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ["duplicate", "duplicate", "committed", "duplicate"],
      );
    },
  ),

  storeCase("a retried run takes a slot of its queue, even when none is free", async (store) => {
    const worker = await registerWorker(store);
    await store.write([{ write: "declare-queue", name: "builds", limits: { concurrency: 1 } }]);
    const { run } = await startFailed(store, worker, "order-1");
    const line = { queue: "builds" };
    await store.write([{ write: "start", run: newRun("order-2", { slot: line }) }]);
    const admit = { write: "admit", definitions: [{ name: "checkout", version: 1 }], limit: 10 } as const;
    await store.write([admit]);
    await store.write([{ ...retry(run, 5), slot: line }]);
    const builds = (await store.listQueues()).find(({ name }) => name === "builds");
    assert.deepEqual([builds?.leased, builds?.ready], [2, 0]);
    await store.write([{ write: "start", run: newRun("order-3", { slot: line }) }]);
    assert.deepEqual((await store.write([admit]))[0].runs, []);
  }),

  storeCase(
    "a retry is refused while another live run has its singleton key, and takes the key afterwards",
    async (store) => {
      const worker = await registerWorker(store);
      const { run } = await startFailed(store, worker, "order-1");
      await store.write([{ write: "start", run: newRun("order-2"), singleton: "one" }]);
      const again = { ...retry(run, 5), singleton: "one" };
      await assertNothingWritten(store, async () => {
        assert.deepEqual(await store.write([again]), [{ status: "taken", by: "order-2" }]);
      });
      await commitTurn(store, await takeTurn(store, worker), { entries: [["RunCompleted", ""]], then: "completed" });
      assert.deepEqual(await store.write([again]), [{ status: "committed" }]);
      const [third] = await store.write([{ write: "start", run: newRun("order-3"), singleton: "one" }]);
      assert.deepEqual([third.status, third.record.id], ["singleton", "order-1"]);
    },
  ),
];
