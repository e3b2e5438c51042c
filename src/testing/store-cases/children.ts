import assert from "node:assert/strict";
import { findJournalFault, type NewChild, type NewRun } from "../../kernel/index.ts";
import {
  heldAfter,
  claimTurns,
  commitTurn,
  COMPLETES,
  type EntryParts,
  getRun,
  newRun,
  newToken,
  registerWorker,
  startHeld,
  startRun,
  takeTurn,
  turnWrite,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

function newChild(n: number, id: string, overrides: Partial<NewRun> = {}): NewChild {
  const command = `ChildWorkflow(${n})`;
  return {
    run: newRun(id, { definition: "child", ...overrides }),
    command,
    detached: false,
    taken: { type: "ChildWorkflowFailed", target: command, data: `{"taken":${JSON.stringify(id)}}` },
  };
}

function initiated(...children: readonly NewChild[]): readonly EntryParts[] {
  return children.map((child) => ["ChildWorkflowInitiated", child.command, JSON.stringify({ id: child.run.id })]);
}

export const childCases: readonly StoreCase[] = [
  storeCase("children start in their parent's commit, linked to it", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    const children = [newChild(0, "child-0", { tags: ["t"], version: 3 }), newChild(1, "child-1")];
    const [outcome] = await store.write([
      turnWrite(store, parent, { entries: initiated(...children), children, then: "release" }),
    ]);
    assert.equal(outcome.status, "committed");
    assert.deepEqual(
      outcome.children.map((record) => record.id),
      ["child-0", "child-1"],
    );
    for (const [n, child] of outcome.children.entries()) {
      assert.deepEqual(await getRun(store, `child-${n}`), child);
      assert.deepEqual(
        [child.parent, child.parentCommand, child.status],
        [parent.run, `ChildWorkflow(${n})`, "queued"],
      );
      const journal = await store.readJournal(child.run, 0);
      assert.deepEqual(
        journal.map((entry) => [entry.type, entry.data]),
        [["RunStarted", children[n]?.run.started]],
      );
      assert.equal(findJournalFault(journal, child), undefined);
    }
    assert.equal((await claimTurns(store, worker, ["child", { name: "child", version: 3 }])).length, 2);
  }),

  storeCase("a child started with a claim is leased to the worker that started it", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    const claim = { worker, token: newToken() };
    const child = { ...newChild(0, "child"), claim };
    const [outcome] = await store.write([
      turnWrite(store, parent, { entries: initiated(child), children: [child], then: "release" }),
    ]);
    assert.equal(outcome.status, "committed");
    assert.deepEqual(await claimTurns(store, worker, ["child"]), []);
    const [record] = outcome.children;
    assert.ok(record !== undefined);
    const { run, id, head, chain } = record;
    await commitTurn(store, { run, id, head, chain, token: claim.token, read: 0, inbox: [] }, COMPLETES);
  }),

  storeCase("a child's id that belongs to another run puts `taken` into the parent's inbox", async (store) => {
    const worker = await registerWorker(store);
    const stranger = await startRun(store, "child-1", { definition: "stranger" });
    const parent = await startHeld(store, worker, "parent");
    const children = [newChild(0, "child-0"), newChild(1, "child-1"), newChild(2, "child-2")];
    const write = turnWrite(store, parent, { entries: initiated(...children), children, then: "release" });
    const [outcome] = await store.write([write]);
    assert.equal(outcome.status, "committed");
    assert.equal(outcome.more, true);
    assert.deepEqual(
      outcome.children.map((record) => record.id),
      ["child-0", "child-2"],
    );
    assert.deepEqual(await getRun(store, "child-1"), stranger);

    const turn = await takeTurn(store, worker);
    assert.deepEqual(turn.inbox, [{ arrival: 1, ...children[1]?.taken }]);
    assert.equal(turn.head, heldAfter(parent, write).head);
  }),

  storeCase("of two children with one id in one commit the first is started", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    const children = [newChild(0, "child"), newChild(1, "child")];
    const [outcome] = await store.write([turnWrite(store, parent, { entries: initiated(...children), children })]);
    assert.equal(outcome.status, "committed");
    assert.deepEqual([outcome.children.length, outcome.more], [1, true]);
    assert.equal((await getRun(store, "child")).parentCommand, "ChildWorkflow(0)");
    assert.deepEqual(
      (await store.readInbox(parent.run, 0)).map((row) => row.target),
      ["ChildWorkflow(1)"],
    );
  }),

  storeCase("a child's answer reaches its parent in the commit that ends the child", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    const child = newChild(0, "child");
    await commitTurn(store, parent, { entries: initiated(child), children: [child], then: "release" });
    assert.deepEqual(await claimTurns(store, worker), []);

    const record = await getRun(store, "child");
    assert.ok(record.parent !== undefined && record.parentCommand !== undefined);
    const arrival = { type: "ChildWorkflowCompleted", target: record.parentCommand, data: '{"output":7}' } as const;
    const turn = await takeTurn(store, worker, ["child"]);
    await commitTurn(store, turn, { ...COMPLETES, messages: [{ to: record.parent, arrival }] });
    assert.deepEqual((await takeTurn(store, worker)).inbox, [{ arrival: 1, ...arrival }]);
  }),

  storeCase("a detached child answers no command and outlives its parent", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    const child = { ...newChild(0, "child"), detached: true };
    const busy = await commitTurn(store, parent, { entries: initiated(child), children: [child] });
    assert.equal((await getRun(store, "child")).parentCommand, undefined);
    await commitTurn(store, busy, COMPLETES);
    await commitTurn(store, await takeTurn(store, worker, ["child"]), COMPLETES);
    assert.equal((await getRun(store, "parent")).arrivals, 0);
  }),

  storeCase("a child continues after its parent has ended, and its answer is dropped", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    const child = newChild(0, "child");
    await commitTurn(
      store,
      await commitTurn(store, parent, { entries: initiated(child), children: [child] }),
      COMPLETES,
    );
    const turn = await takeTurn(store, worker, ["child"]);
    const arrival = { type: "ChildWorkflowCompleted", target: "ChildWorkflow(0)", data: "{}" } as const;
    await commitTurn(store, turn, { ...COMPLETES, messages: [{ to: parent.run, arrival }] });
    assert.deepEqual(await store.readInbox(parent.run, 0), []);
    assert.equal((await getRun(store, "parent")).arrivals, 0);
  }),

  storeCase("parents and children that end in one batch all get their answers", async (store) => {
    const worker = await registerWorker(store);
    const parents = await Promise.all([0, 1].map((n) => startHeld(store, worker, `parent-${n}`)));
    const started = [];
    for (const [n, parent] of parents.entries()) {
      const child = newChild(0, `child-${n}`);
      started.push(await commitTurn(store, parent, { entries: initiated(child), children: [child] }));
    }
    const turns = await claimTurns(store, worker, ["child"]);
    const arrival = { type: "ChildWorkflowCompleted", target: "ChildWorkflow(0)", data: "{}" } as const;
    const ends = turns.map(({ record, token }) => {
      const { run, id, head, chain } = record;
      const held = { run, id, head, chain, token, read: 0, inbox: [] };
      return turnWrite(store, held, { ...COMPLETES, messages: [{ to: record.parent ?? 0, arrival }] });
    });
    const [first, second] = started;
    assert.ok(first !== undefined && second !== undefined);
    const outcomes = await store.write([
      ...ends,
      turnWrite(store, second, { then: "release" }),
      turnWrite(store, first, COMPLETES),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      Array(4).fill("committed"),
    );
    assert.equal((await getRun(store, "parent-0")).unread, 1);
    assert.equal((await takeTurn(store, worker)).inbox.length, 1);
  }),
];
