import assert from "node:assert/strict";
import { findJournalFault, type NextGeneration, type RunRecord, type Store } from "../../kernel/index.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  type EntryParts,
  getRun,
  type HeldTurn,
  inboxData,
  message,
  newToken,
  registerWorker,
  resolved,
  taskParts,
  send,
  timerParts,
  startHeld,
  startRun,
  startWrite,
  takeTurn,
  turnWrite,
  type TurnParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const CONTINUED: EntryParts = ["RunContinued", "", '{"version":1}'];

function next(overrides: Partial<NextGeneration> = {}): NextGeneration {
  return { version: 1, started: '{"input":"again"}', runtime: "the next machine", carried: [], ...overrides };
}

/** Ends the held generation and starts the next. */
export async function goOn(
  store: Store,
  held: HeldTurn,
  overrides?: Partial<NextGeneration>,
  parts: TurnParts = {},
): Promise<RunRecord> {
  const entries = [...(parts.entries ?? []), CONTINUED];
  const write = turnWrite(store, held, { ...parts, entries, then: "continued", next: next(overrides) });
  const [outcome] = await store.write([write]);
  assert.equal(outcome.status, "committed");
  assert.ok(outcome.next !== undefined, "the next generation should be answered");
  return outcome.next;
}

const signalled = (data: string) => ({ type: "SignalReceived", target: "add", data }) as const;

export const generationCases: readonly StoreCase[] = [
  storeCase("a run that continues as new keeps its id and gets a new number and a new journal", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1", { tags: ["vip", "web"], priority: 3 });
    const record = await goOn(store, held, { version: 2 });
    assert.deepEqual(await getRun(store, "order-1"), record);
    assert.deepEqual(
      [record.generation, record.version, record.status, record.tags, record.priority, record.runtime],
      [1, 2, "queued", ["vip", "web"], 3, "the next machine"],
    );
    assert.ok(record.run !== held.run);
    const journal = await store.readJournal(record.run, 0);
    assert.deepEqual(
      journal.map(({ type, data }) => [type, data]),
      [["RunStarted", '{"input":"again"}']],
    );
    assert.equal(findJournalFault(journal, record), undefined);
    const before = await store.findRun("order-1", 0);
    assert.deepEqual([before?.run, before?.status, before?.unread], [held.run, "continued", 0]);
    assert.equal(await store.findRun("order-1", 2), undefined);
    assert.deepEqual(
      (await store.listRuns({ tags: ["vip"], limit: 5 })).map(({ run }) => run),
      [record.run, held.run],
    );
  }),

  storeCase("the next generation is due at once, or leased to its starter with a claim", async (store) => {
    const worker = await registerWorker(store);
    await goOn(store, await startHeld(store, worker, "due"));
    await commitTurn(store, await takeTurn(store, worker), COMPLETES);
    const claim = { worker, token: newToken() };
    const { run, id, head, chain } = await goOn(store, await startHeld(store, worker, "held"), { claim });
    assert.deepEqual(await claimTurns(store, worker), []);
    await commitTurn(store, { run, id, head, chain, token: claim.token, read: 0, inbox: [] }, COMPLETES);
    assert.equal((await getRun(store, "held")).status, "completed");
  }),

  storeCase("messages move to the next generation in order: carried ones first, then unread ones", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await store.write([message("order-1", signalled("1"))]);
    const read = await commitTurn(store, held, { entries: [["SignalReceived", "", "1"]], read: 1 });
    for (const data of ["2", "3"]) await send(store, "order-1", signalled(data));
    const record = await goOn(store, read, { carried: [signalled("1")] });
    assert.deepEqual([record.arrivals, await inboxData(store, record.run)], [3, ["1", "2", "3"]]);
    assert.deepEqual(await store.readInbox(held.run, 0), []);
    await send(store, "order-1", signalled("4"));
    const turn = await takeTurn(store, worker);
    assert.deepEqual(
      turn.inbox.map(({ arrival, data }) => [arrival, data]),
      [1, 2, 3, 4].map((n) => [n, String(n)]),
    );
  }),

  storeCase("an answer to a command of the old generation does not reach the next", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const tasks = taskParts(held, 2);
    const timers = timerParts({ ...held, head: held.head + 2 }, store.now() + 5, store.now() + 500);
    const busy = await commitTurn(store, held, {
      entries: [...tasks.entries, ...timers.entries],
      items: [...tasks.items, ...timers.items],
    });
    const [done, late] = await claimItems(store, worker);
    assert.ok(done !== undefined && late !== undefined);
    const arrival = { type: "TaskCompleted", target: "Task(0)", data: "{}" } as const;
    await store.write([{ write: "end-item", run: done.run, item: done.item, token: done.token, arrival }]);
    t.clock.advance(10);
    await store.write([{ write: "fire-due", limit: 10 }]);
    const record = await goOn(store, busy);
    assert.deepEqual([record.arrivals, await store.readInbox(record.run, 0)], [0, []]);
    // Results of its running items are dropped, and its timers do not fire.
    const [outcome] = await store.write([
      { write: "end-item", run: late.run, item: late.item, token: late.token, arrival },
    ]);
    assert.equal(outcome.status, "lease_lost");
    t.clock.advance(1_000);
    const [fired] = await store.write([{ write: "fire-due", limit: 10 }]);
    assert.deepEqual([fired.runs, fired.nextAt], [[], undefined]);
  }),

  storeCase("a message or a start by id finds the newest generation", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const record = await goOn(store, held);
    const [sent] = await store.write([message("order-1")]);
    assert.deepEqual(sent, { status: "committed", run: record.run });
    // A start compares with the input of the first generation.
    const [again] = await store.write([startWrite("order-1")]);
    assert.ok(again.status === "exists");
    assert.deepEqual([again.record.run, again.first.data], [record.run, JSON.stringify({ input: "order-1" })]);
  }),

  storeCase("dedup ids and settled promises move to the next generation", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const once = { ...message("order-1", resolved("{}", "early")), once: true };
    const marked = { ...message("order-1", signalled("1")), dedupId: "click" };
    await store.write([once, marked, { ...message("order-1", resolved("{}", "used")), once: true }]);
    const read = await commitTurn(store, held, { read: 3 });
    await goOn(store, read, { carried: [resolved("{}", "early")] });
    const outcomes = await store.write([once, marked, { ...message("order-1", resolved("{}", "used")), once: true }]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["duplicate", "duplicate", "committed"],
    );
  }),

  storeCase(
    "a next generation answers the parent of the first one, and receives its parent's messages",
    async (store) => {
      const worker = await registerWorker(store);
      const parent = await startHeld(store, worker, "parent");
      const command = "ChildWorkflow(0)";
      const child = {
        run: startWrite("child", { definition: "child" }).run,
        command,
        detached: false,
        taken: { type: "ChildWorkflowFailed", target: command, data: "{}" } as const,
      };
      const busy = await commitTurn(store, parent, {
        entries: [["ChildWorkflowInitiated", command]],
        children: [child],
      });
      const record = await goOn(store, await takeTurn(store, worker, ["child"]));
      assert.deepEqual([record.parent, record.parentCommand], [parent.run, command]);
      const cancel = { type: "CancelRequested", target: "", data: "{}" } as const;
      await commitTurn(store, busy, { messages: [{ to: "child", arrival: cancel }], then: "release" });
      const turn = await takeTurn(store, worker, ["child"]);
      assert.deepEqual([turn.run, turn.inbox.map(({ type }) => type)], [record.run, ["CancelRequested"]]);
    },
  ),

  storeCase("generations are pruned together, when the last has ended", async (store, t) => {
    const worker = await registerWorker(store);
    await goOn(store, await startHeld(store, worker, "order-1"));
    const turn = await takeTurn(store, worker);
    t.clock.advance(1_000);
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    await commitTurn(store, turn, COMPLETES);
    t.clock.advance(1_000);
    assert.deepEqual(await store.prune(store.now()), { runs: 2 });
    assert.equal(await store.findRun("order-1"), undefined);
  }),

  storeCase("only turns of the wanted versions are claimed, also when others are due", async (store) => {
    const worker = await registerWorker(store);
    for (const version of [1, 2, 3]) await startRun(store, `v${version}`, { version });
    const claimed = async (...versions: readonly number[]) =>
      (
        await claimTurns(
          store,
          worker,
          versions.map((version) => ({ name: "checkout", version })),
        )
      ).map(({ record }) => record.id);
    assert.deepEqual(await claimed(4), []);
    assert.deepEqual(await claimed(2), ["v2"]);
    assert.deepEqual(await claimed(1, 2, 3), ["v1", "v3"]);
  }),

  storeCase("live and due runs are counted by version, ended ones are not", async (store) => {
    const worker = await registerWorker(store);
    for (const [id, version] of [
      ["a", 1],
      ["b", 1],
      ["c", 2],
    ] as const)
      await startRun(store, id, { version });
    await startRun(store, "d", { definition: "refund" });
    await commitTurn(store, await startHeld(store, worker, "e", { version: 9 }), COMPLETES);
    await claimTurns(store, worker, ["checkout"], 1);
    assert.deepEqual(await store.countVersions(), [
      { name: "checkout", version: 1, live: 2, due: 1 },
      { name: "checkout", version: 2, live: 1, due: 1 },
      { name: "refund", version: 1, live: 1, due: 1 },
    ]);
  }),

  storeCase("a pause before a run continues as new applies to the next generation", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await store.write([{ write: "pause", id: "order-1" }]);
    const record = await goOn(store, held, { claim: { worker, token: newToken() } });
    assert.deepEqual([record.generation, record.status], [1, "paused"]);
    const [progress] = await store.readProgress([record.run]);
    assert.equal(progress?.token, undefined);
    assert.deepEqual(await claimTurns(store, worker), []);
    await store.write([{ write: "resume", id: "order-1" }]);
    assert.equal((await claimTurns(store, worker)).length, 1);
  }),
];
