import assert from "node:assert/strict";
import type { NewPromise, OpenPromise, PromiseFilter, SentSettlement, Store } from "../../kernel/index.ts";
import {
  claimTurns,
  commitTurn,
  getRun,
  message,
  registerWorker,
  resolved,
  startEnded,
  startHeld,
  startRun,
  turnWrite,
  type EntryParts,
  type HeldTurn,
  type TurnParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

function waits(command: string, promiseId: string): EntryParts {
  return ["PromiseCreated", command, JSON.stringify({ promiseId })];
}

/** A turn that waits for promises, by name or by name and key, from `Promise(first)` on. */
function opening(store: Store, held: HeldTurn, names: readonly (readonly [string, string?])[], first = 0): TurnParts {
  const opened = names.map(([name, key], n): NewPromise => ({
    command: `Promise(${first + n})`,
    name,
    key,
    seq: held.head + 1 + n,
    at: store.now(),
  }));
  return {
    entries: opened.map(({ command, name, key }) => waits(command, key === undefined ? name : `${name}[${key}]`)),
    promises: { opened, closed: [] },
  };
}

async function startOpen(
  store: Store,
  worker: number,
  id: string,
  names: readonly (readonly [string, string?])[],
): Promise<HeldTurn> {
  const held = await startHeld(store, worker, id);
  return commitTurn(store, held, opening(store, held, names));
}

async function list(store: Store, filter: Partial<PromiseFilter> = {}): Promise<readonly OpenPromise[]> {
  return (await store.listPromises({ limit: 100, ...filter })).promises;
}

async function names(store: Store, filter?: Partial<PromiseFilter>): Promise<readonly string[]> {
  return (await list(store, filter)).map(({ runId, name, key = "" }) => `${runId} ${name} ${key}`.trim());
}

const FAILED: EntryParts = ["RunFailed", "", '{"commands":1,"error":{"$":"error","name":"Error","message":"no"}}'];

function settles(command: string, to: string, data = '{"promiseId":"approval","value":1}'): SentSettlement {
  return { command, to, definition: "checkout", arrival: { type: "PromiseResolved", target: "approval", data } };
}

export const promiseCases: readonly StoreCase[] = [
  storeCase("a promise is listed from the turn that opens it to the turn that closes it", async (store) => {
    const worker = await registerWorker(store);
    const held = await startOpen(store, worker, "order-1", [["approval"], ["approve", "ann"]]);
    const { run } = held;
    assert.deepEqual(await list(store), [
      {
        run,
        command: "Promise(0)",
        name: "approval",
        key: undefined,
        seq: 2,
        at: store.now(),
        runId: "order-1",
        definition: "checkout",
        data: '{"promiseId":"approval"}',
      },
      {
        run,
        command: "Promise(1)",
        name: "approve",
        key: "ann",
        seq: 3,
        at: store.now(),
        runId: "order-1",
        definition: "checkout",
        data: '{"promiseId":"approve[ann]"}',
      },
    ]);
    await commitTurn(store, held, {
      entries: [["PromiseResolved", "Promise(0)", '{"promiseId":"approval"}']],
      promises: { opened: [], closed: ["Promise(0)"] },
      then: "release",
    });
    assert.deepEqual(await names(store), ["order-1 approve ann"]);
    assert.deepEqual(await store.check(), []);
  }),

  storeCase("a turn that is not committed opens and closes no promise", async (store) => {
    const worker = await registerWorker(store);
    const held = await startOpen(store, worker, "order-1", [["approval"]]);
    const other = { ...held, token: "another" };
    const parts = opening(store, held, [["other"]], 1);
    const write = turnWrite(store, other, { ...parts, promises: { ...parts.promises!, closed: ["Promise(0)"] } });
    assert.equal((await store.write([write]))[0].status, "lease_lost");
    assert.deepEqual(await names(store), ["order-1 approval"]);
  }),

  storeCase("open promises are listed by name and by definition, page by page, by run", async (store) => {
    const worker = await registerWorker(store);
    await startOpen(store, worker, "order-1", [["approval"], ["approve", "ann"], ["approve", "bob"]]);
    await startOpen(store, worker, "order-2", [["approve", "ann"]]);
    const held = await startHeld(store, worker, "refund-1", { definition: "refund" });
    await commitTurn(store, held, opening(store, held, [["approve"]]));
    const approves = ["order-1 approve ann", "order-1 approve bob", "order-2 approve ann", "refund-1 approve"];
    assert.deepEqual(await names(store, { name: "approve" }), approves);
    assert.deepEqual(await names(store, { definition: "refund" }), ["refund-1 approve"]);
    assert.deepEqual(await names(store, { name: "approval", definition: "refund" }), []);
    for (const [filter, expected] of [
      [{ name: "approve" }, approves],
      [{}, ["order-1 approval", ...approves]],
    ] as const) {
      const found: string[] = [];
      for (let after = {}; ;) {
        const page = await store.listPromises({ ...filter, ...after, limit: 2 });
        found.push(...page.promises.map(({ runId, name, key = "" }) => `${runId} ${name} ${key}`.trim()));
        if (page.next === undefined) break;
        after = { after: page.next };
      }
      assert.deepEqual(found, expected);
    }
  }),

  storeCase("a run that ends, fails or is terminated has no open promises", async (store) => {
    const worker = await registerWorker(store);
    const none = { opened: [], closed: [] };
    for (const [entry, then] of [
      [["RunCompleted", ""], "completed"],
      [FAILED, "failed"],
    ] as const)
      await commitTurn(store, await startOpen(store, worker, then, [["approval"]]), {
        entries: [entry],
        then,
        promises: none,
      });
    await startOpen(store, worker, "terminated", [["approval"]]);
    const data = '{"terminated":true}';
    await store.write([{ write: "terminate", id: "terminated", data, answer: "{}", cancel: "{}" }]);
    assert.deepEqual(await names(store), []);
    assert.deepEqual(await store.check(), []);
  }),

  storeCase("a retried run has the open promises of its plan", async (store) => {
    const worker = await registerWorker(store);
    const held = await startOpen(store, worker, "order-1", [["approval"]]);
    const { run } = held;
    const at = store.now();
    const failed = await commitTurn(store, held, {
      entries: [FAILED],
      then: "failed",
      promises: { opened: [], closed: [] },
    });
    assert.deepEqual(await names(store), []);
    const promises = [{ command: "Promise(0)", name: "approval", seq: 2, at }];
    const data = '{"commands":1,"from":3}';
    const retry = { write: "retry", run, head: failed.head, data, items: [], children: [], answers: [] } as const;
    assert.equal((await store.write([{ ...retry, promises }]))[0].status, "committed");
    assert.deepEqual(await names(store), ["order-1 approval"]);
    assert.deepEqual(await store.check(), []);
  }),

  storeCase("a turn settles a promise of another run, and gets the answer in its own inbox", async (store) => {
    const worker = await registerWorker(store);
    const target = await startRun(store, "order-1");
    const held = await startHeld(store, worker, "decide-1");
    const write = turnWrite(store, held, {
      entries: [["SettleRequested", "Settle(0)"]],
      settlements: [settles("Settle(0)", "order-1")],
      then: "release",
    });
    const [outcome] = await store.write([write]);
    assert.equal(outcome.status, "committed");
    assert.deepEqual([outcome.more, outcome.reached], [true, [target.run]]);
    const [received] = await store.readInbox(target.run, 0);
    assert.deepEqual([received?.type, received?.target], ["PromiseResolved", "approval"]);
    const [answer] = await store.readInbox(held.run, 0);
    assert.deepEqual([answer?.type, answer?.target], ["SettleAnswered", "Settle(0)"]);
    assert.deepEqual(JSON.parse(answer?.data ?? ""), {
      promiseId: "approval",
      runId: "order-1",
      status: "accepted",
    });
    const claimed = await claimTurns(store, worker);
    assert.deepEqual(new Set(claimed.map(({ record }) => record.run)), new Set([target.run, held.run]));
  }),

  storeCase(
    "a settlement that another run refuses is answered with the reason, and writes nothing there",
    async (store) => {
      const worker = await registerWorker(store);
      const same = await startRun(store, "same");
      const other = await startRun(store, "other");
      const first = resolved('{"by":"Ann","promiseId":"approval","value":1}');
      const second = resolved('{"promiseId":"approval","value":2}');
      await store.write([
        { ...message("same", first), once: true },
        { ...message("other", second), once: true },
      ]);
      await startEnded(store, worker, "ended");
      await startRun(store, "refund-1", { definition: "refund" });
      const held = await startHeld(store, worker, "decide-1");
      const ids = ["same", "other", "ended", "refund-1", "unknown"];
      await commitTurn(store, held, {
        entries: ids.map((_, n): EntryParts => ["SettleRequested", `Settle(${n})`]),
        settlements: ids.map((id, n) => settles(`Settle(${n})`, id)),
        then: "release",
      });
      const answers = (await store.readInbox(held.run, 0)).map(
        ({ data }) => JSON.parse(data) as Record<string, unknown>,
      );
      const more = answers.map(({ promiseId: _promise, runId: _run, ...rest }) => rest);
      assert.deepEqual(more, [
        { status: "repeated" },
        { status: "already_settled", settled: { promiseId: "approval", value: 2 } },
        { status: "ended", as: "completed" },
        { status: "other_definition", definition: "refund" },
        { status: "no_run" },
      ]);
      for (const { run } of [same, other]) assert.equal((await store.readInbox(run, 0)).length, 1);
      assert.equal(await store.findRun("unknown"), undefined);
    },
  ),

  storeCase("a run that ends with a settlement delivers it, and has no answer", async (store) => {
    const worker = await registerWorker(store);
    const target = await startRun(store, "order-1");
    const held = await startHeld(store, worker, "decide-1");
    await commitTurn(store, held, {
      entries: [
        ["SettleRequested", "Settle(0)"],
        ["RunCompleted", ""],
      ],
      settlements: [settles("Settle(0)", "order-1")],
      then: "completed",
    });
    assert.equal((await store.readInbox(target.run, 0)).length, 1);
    assert.deepEqual(await store.readInbox(held.run, 0), []);
    assert.equal((await getRun(store, "decide-1")).unread, 0);
  }),

  storeCase("a retry sends a settlement again", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "decide-1");
    const entries: readonly EntryParts[] = [["SettleRequested", "Settle(0)", '{"index":0}'], FAILED];
    const failed = await commitTurn(store, held, {
      entries,
      settlements: [settles("Settle(0)", "order-1")],
      then: "failed",
    });
    const target = await startRun(store, "order-1");
    const data = '{"commands":1,"from":3}';
    const retry = {
      write: "retry",
      run: held.run,
      head: failed.head,
      data,
      items: [],
      children: [],
      answers: [],
    } as const;
    await store.write([{ ...retry, settlements: [settles("Settle(0)", "order-1")] }]);
    assert.equal((await store.readInbox(target.run, 0)).length, 1);
    assert.deepEqual(
      (await store.readInbox(held.run, 0)).map(({ type }) => type),
      ["SettleAnswered"],
    );
  }),
];
