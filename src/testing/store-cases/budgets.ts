import assert from "node:assert/strict";
import {
  MAX_BUDGET_REQUESTS,
  type Amounts,
  type BudgetCap,
  type Charge,
  type NewChild,
  type OfferedCall,
  type ReserveOutcome,
  type ReserveWrite,
  type Store,
} from "../../kernel/index.ts";
import {
  claimItems,
  claimTurns,
  COMPLETES,
  commitTurn,
  newRun,
  registerWorker,
  startHeld,
  taskParts,
  turnWrite,
  type HeldTurn,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const ASKS: BudgetCap = { cap: { calls: 3 }, onReached: "ask" };
const FAILS: BudgetCap = { cap: { calls: 3 }, onReached: "fail" };

function calls(count: number): Amounts {
  return { usd: 0, tokens: 0, calls: count };
}

async function reserve(
  store: Store,
  held: Pick<HeldTurn, "run" | "token">,
  count: number,
  parts: Partial<ReserveWrite> = {},
): Promise<ReserveOutcome> {
  const place = { run: held.run, budget: held.run, token: held.token, command: "Operation(0)", execution: 1 } as const;
  const [outcome] = await store.write([{ write: "reserve", ...place, reserve: calls(count), ...parts }]);
  return outcome;
}

/** Ends an operation of a run in a commit, with what it cost. */
async function settle(
  store: Store,
  held: HeldTurn,
  charge: Charge,
  execution = 1,
  command = "Operation(0)",
): Promise<HeldTurn> {
  const data = '{"index":0,"operationName":"model","result":1}';
  const write = turnWrite(store, held, { entries: [["OperationCompleted", command, data]], budget: held.run });
  const [outcome] = await store.write([
    { ...write, entries: write.entries.map((entry) => ({ ...entry, execution, charge })) },
  ]);
  assert.equal(outcome.status, "committed");
  return { ...held, head: held.head + 1, chain: write.chain };
}

async function books(store: Store, budget: number): Promise<readonly (number | undefined)[]> {
  const reading = await store.readBudget(budget);
  return [reading?.cap.calls, reading?.spent.calls, reading?.reserved.calls, reading?.lost.calls];
}

/** Calls that wait, in one transaction. */
async function reserveAll(store: Store, { run, token }: HeldTurn, count: number, each: number): Promise<void> {
  const place = { run, budget: run, token, execution: 1, reserve: calls(each) };
  const writes = Array.from({ length: count }, (_, n) => ({
    ...{ write: "reserve" as const, ...place },
    command: `Call(${n})`,
  }));
  for (const { status } of await store.write(writes)) assert.equal(status, "waiting");
}

async function offerBudget(
  store: Store,
  { id, run }: HeldTurn,
  except: readonly string[] = [],
): Promise<{ readonly woken: readonly string[]; readonly pending: readonly string[]; readonly mayFree: boolean }> {
  const calls = except.map((command) => ({ run, command }));
  const [{ woken, pending, mayFree }] = await store.write([{ write: "offer-budget", id, except: calls }]);
  const commandOf = ({ command }: OfferedCall): string => command;
  return { woken: woken.map(commandOf), pending: pending.map(commandOf), mayFree };
}

async function requests(store: Store): Promise<readonly string[]> {
  const { promises } = await store.listPromises({ limit: 100 });
  return promises.map(({ runId, command, budget }) => `${runId} ${command} ${budget?.reserve.calls}`);
}

async function start(store: Store, id: string, budget: BudgetCap = ASKS): Promise<HeldTurn> {
  return startHeld(store, await registerWorker(store), id, { budget });
}

/** A turn that starts a child, which pays from the parent's budget or from a part of it. */
async function startChild(store: Store, held: HeldTurn, budget?: BudgetCap): Promise<HeldTurn> {
  const run = newRun("child", { definition: "child", ...(budget && { budget }) });
  const taken = { type: "ChildWorkflowFailed", target: "ChildWorkflow(0)", data: "{}" } as const;
  const child: NewChild = { run, command: "ChildWorkflow(0)", detached: false, taken };
  const data = '{"childExecutionId":"child","childExecutionName":"child","childWorkflowKind":"workflow","index":0}';
  await commitTurn(store, held, {
    entries: [["ChildWorkflowInitiated", "ChildWorkflow(0)", data]],
    children: [child],
    budget: held.run,
  });
  const [claimed] = await claimTurns(store, await registerWorker(store), ["child"]);
  assert.ok(claimed);
  const { run: number, id, head, chain } = claimed.record;
  return { run: number, id, head, chain, token: claimed.token, read: 0, inbox: [] };
}

export const budgetCases: readonly StoreCase[] = [
  storeCase("a reservation counts until the commit of its end, which spends what the answer cost", async (store) => {
    const held = await start(store, "a");
    assert.equal((await reserve(store, held, 3)).status, "reserved");
    assert.deepEqual(await books(store, held.run), [3, 0, 3, 0]);
    await settle(store, held, calls(2));
    assert.deepEqual(await books(store, held.run), [3, 2, 0, 0]);
  }),

  storeCase("a failed execution loses its reservation, unless it is free", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 1);
    await settle(store, held, "free");
    assert.deepEqual(await books(store, held.run), [3, 0, 0, 0]);
    const other = await start(store, "b");
    await reserve(store, other, 1);
    await settle(store, other, "lost");
    assert.deepEqual(await books(store, other.run), [3, 0, 0, 1]);
  }),

  storeCase("an execution that reserves again makes what the one before reserved a loss", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 1);
    assert.equal((await reserve(store, held, 2, { execution: 2 })).status, "reserved");
    assert.deepEqual(await books(store, held.run), [3, 0, 2, 1]);
  }),

  storeCase("the end of an earlier execution changes nothing once a later one has reserved", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 1);
    await reserve(store, held, 1, { execution: 2 });
    await settle(store, held, "free", 1);
    assert.deepEqual(await books(store, held.run), [3, 0, 1, 1]);
  }),

  storeCase("a reservation that does not fit waits as an open promise until a raise", async (store) => {
    const held = await start(store, "a");
    assert.equal((await reserve(store, held, 4)).status, "waiting");
    assert.deepEqual(await requests(store), ["a Operation(0) 4"]);
    const [raised] = await store.write([{ write: "answer-budget", id: "a", add: { calls: 1 }, data: "{}" }]);
    assert.deepEqual(raised, { status: "committed", reached: [held.run] });
    assert.deepEqual(
      (await store.readInbox(held.run, 0)).map(({ type }) => type),
      ["BudgetRaised"],
    );
    assert.equal((await reserve(store, held, 4)).status, "reserved");
    assert.deepEqual(await requests(store), []);
    assert.deepEqual(await books(store, held.run), [4, 0, 4, 0]);
  }),

  storeCase("calls that wait are woken oldest first when others leave room for them, each once", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 2, { command: "Operation(0)" });
    for (const [command, count] of [
      ["Operation(1)", 3],
      ["Operation(2)", 2],
      ["Operation(3)", 1],
    ] as const)
      await reserve(store, held, count, { command });
    // The last one had room.
    assert.deepEqual(await books(store, held.run), [3, 0, 3, 0]);
    const offer = async (...except: readonly string[]): Promise<unknown> => {
      const { woken, mayFree } = await offerBudget(store, held, except);
      return [woken, mayFree];
    };
    assert.deepEqual(await offer(), [[], true]);
    const next = await settle(store, held, "free");
    assert.deepEqual(await offer(), [["Operation(2)"], true]);
    assert.deepEqual(await offer("Operation(2)"), [[], true]);
    assert.equal((await reserve(store, next, 2, { command: "Operation(2)" })).status, "reserved");
    assert.deepEqual(await requests(store), ["a Operation(1) 3"]);
    const last = await settle(store, { ...next }, "lost", undefined, "Operation(2)");
    await settle(store, last, "free", undefined, "Operation(3)");
    // Nothing is in progress any more: a person has to help.
    assert.deepEqual(await offer(), [[], false]);
  }),

  storeCase("calls that do not fit hide no call that fits", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 2, { command: "Operation(0)" });
    await reserveAll(store, held, MAX_BUDGET_REQUESTS, 3);
    await reserve(store, held, 2, { command: "Operation(1)" });
    const next = await settle(store, held, "free");
    await reserve(store, next, 1, { command: "Operation(0)" });
    assert.deepEqual((await offerBudget(store, next)).woken, ["Operation(1)"]);
  }),

  storeCase("the calls of a run that are woken together are one message, which names them", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 3, { command: "Operation(0)" });
    await reserveAll(store, held, 4, 1);
    const next = await settle(store, held, "free");
    await offerBudget(store, next);
    assert.deepEqual(
      (await store.readInbox(held.run, 0)).map(({ type, data }) => [type, data]),
      [["BudgetRaised", '{"woken":["Call(0)","Call(1)","Call(2)"]}']],
    );
  }),

  storeCase("offers wake all calls that fit, however many wait", async (store) => {
    const count = MAX_BUDGET_REQUESTS + 3;
    const held = await start(store, "a", { cap: { calls: count }, onReached: "ask" });
    await reserve(store, held, count, { command: "Operation(0)" });
    await reserveAll(store, held, count, 1);
    const next = await settle(store, held, "free");
    const first = await offerBudget(store, next);
    assert.deepEqual([first.woken.length, first.pending, first.mayFree], [MAX_BUDGET_REQUESTS, [], true]);
    await reserve(store, next, 1, { command: first.woken[0]! });
    const second = await offerBudget(store, next, first.woken);
    const pending = [second.woken.length, second.pending, second.mayFree];
    assert.deepEqual(pending, [3, first.woken.slice(1), false]);
    assert.equal(new Set([...first.woken, ...second.woken]).size, count);
  }),

  storeCase("a declined request is refused once, and is no longer listed", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 4);
    const [declined] = await store.write([{ write: "answer-budget", id: "a", data: "{}" }]);
    assert.equal(declined.status, "committed");
    assert.deepEqual(await requests(store), []);
    assert.equal((await reserve(store, held, 4)).status, "declined");
    const [again] = await store.write([{ write: "answer-budget", id: "a", data: "{}" }]);
    assert.equal(again.status, "none_waiting");
  }),

  storeCase("a budget that fails refuses what does not fit, and lists nothing", async (store) => {
    const held = await start(store, "a", FAILS);
    assert.equal((await reserve(store, held, 4)).status, "reached");
    assert.deepEqual(await requests(store), []);
    assert.equal((await reserve(store, held, 3)).status, "reserved");
  }),

  storeCase("a reservation needs the token of the turn", async (store) => {
    const held = await start(store, "a");
    assert.equal((await reserve(store, { ...held, token: "other" }, 1)).status, "lease_lost");
    assert.deepEqual(await books(store, held.run), [3, 0, 0, 0]);
  }),

  storeCase("a child pays from the budget of its parent: together they stay within it", async (store) => {
    const held = await start(store, "a", FAILS);
    const child = await startChild(store, held);
    const budget = held.run;
    assert.equal((await reserve(store, child, 2, { budget })).status, "reserved");
    assert.equal((await store.findRun("child"))?.budget, budget);
    const { token } = held;
    assert.equal((await reserve(store, { run: held.run, token }, 2)).status, "reached");
    assert.deepEqual(await books(store, budget), [3, 0, 2, 0]);
  }),

  storeCase("the budget of a child is a part of its parent's, and the rest returns with its end", async (store) => {
    const held = await start(store, "a");
    const child = await startChild(store, held, { cap: { calls: 2 }, onReached: "ask" });
    assert.deepEqual(await books(store, held.run), [3, 0, 2, 0]);
    await reserve(store, child, 1);
    const next = await settle(store, child, calls(1));
    await commitTurn(store, next, { ...COMPLETES, budget: child.run });
    assert.deepEqual(await books(store, child.run), [1, 1, 0, 0]);
    assert.deepEqual(await books(store, held.run), [3, 1, 0, 0]);
  }),

  storeCase("the end of a run makes its open reservations a loss, and its requests are gone", async (store) => {
    const held = await start(store, "a");
    await reserve(store, held, 2);
    await reserve(store, held, 2, { command: "Operation(1)" });
    await commitTurn(store, held, { ...COMPLETES, budget: held.run });
    assert.deepEqual(await books(store, held.run), [3, 0, 0, 2]);
    assert.deepEqual(await requests(store), []);
  }),

  storeCase(
    "an item whose reservation does not fit waits without a worker, and is ready after a raise",
    async (store) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "a", { budget: ASKS });
      await commitTurn(store, held, { ...taskParts(held, 1), budget: held.run, then: "release" });
      const [item] = await claimItems(store, worker);
      assert.equal(item?.budget, held.run);
      const { token, item: command } = item!;
      assert.equal((await reserve(store, { ...held, token }, 4, { command, item: {} })).status, "waiting");
      assert.deepEqual(await claimItems(store, worker), []);
      await store.write([{ write: "answer-budget", id: "a", add: { calls: 1 }, data: "{}" }]);
      const [again] = await claimItems(store, worker);
      assert.deepEqual([again?.item, again?.execution], [command, 1]);
    },
  ),
];
