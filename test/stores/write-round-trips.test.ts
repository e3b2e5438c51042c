// Round trips before a list of writes can be committed on a remote store. This test detects additional
// ones.

import { expect, test } from "vitest";
import type { ClaimItemsOutcome, Outcome, TurnWrite, Write } from "../../src/kernel/index.ts";
import { reap, registerWorker } from "../../src/stores/rules/worker-leases.ts";
import {
  arrival,
  completed,
  completeWrite,
  endParts,
  FLOW,
  ROUTE,
  RUN_COMPLETED,
} from "../../src/testing/store-cases/flow-actions.ts";
import {
  message,
  newRun,
  newToken,
  newTokens,
  resolved,
  turnWrite,
  type HeldTurn,
  type TurnParts,
} from "../../src/testing/store-cases/store-actions.ts";
import { RowStore } from "./differential/row-store.ts";

class World {
  time = 1_000;
  readonly rowStore = new RowStore(() => this.time);
  #nextRun = 1;
  #workers = 0;

  /** The outcomes, and the round trips for them. */
  async write(
    ...writes: readonly Write[]
  ): Promise<{ readonly outcomes: readonly Outcome[]; readonly rounds: number }> {
    const outcomes = await this.rowStore.write(this.time, this.#nextRun, writes);
    this.#nextRun += writes.length * 2;
    return { outcomes, rounds: this.rowStore.rounds };
  }

  async worker(leaseMs = 30_000): Promise<number> {
    const worker = (this.#workers += 1);
    await this.rowStore.transact(this.time, (tx) => registerWorker(tx, worker, "worker", leaseMs));
    return worker;
  }

  turn(held: HeldTurn, parts: TurnParts): TurnWrite {
    return turnWrite({ now: () => this.time } as never, held, parts);
  }

  /** Runs whose turns are held by a worker. */
  async held(worker: number, count: number, overrides = {}): Promise<readonly HeldTurn[]> {
    const starts = Array.from({ length: count }, (_, n) => {
      const claim = { worker, token: newToken() };
      return { write: "start", run: newRun(`held ${this.#nextRun} ${n}`, overrides), claim } as const;
    });
    const { outcomes } = await this.write(...starts);
    return outcomes.map((outcome, index) => {
      const { record } = outcome as { record: { run: number; id: string; head: number; chain: string } };
      const { run, id, head, chain } = record;
      return { run, id, head, chain, token: starts[index]!.claim.token, read: 0, inbox: [] };
    });
  }
}

const task = (n: number, overrides = {}) => ({
  item: `Task(${n})`,
  kind: "task" as const,
  name: "charge",
  priority: 0,
  seq: 1,
  ...overrides,
});

test("100 starts need one round trip", async () => {
  const world = new World();
  const starts = Array.from({ length: 100 }, (_, n) => ({ write: "start", run: newRun(`run ${n}`) }) as const);
  expect((await world.write(...starts)).rounds).toBe(1);
});

test("100 turns with entries, items and messages need one round trip", async () => {
  const world = new World();
  const worker = await world.worker();
  const parents = await world.held(worker, 100);
  const turns = parents.map((held, n) =>
    world.turn(held, {
      entries: [["TaskScheduled", "Task(0)"]],
      items: [task(0)],
      dropped: ["Timer(9)"],
      messages: [{ to: parents[(n + 1) % 100]!.run, arrival: resolved() }],
    }),
  );
  const { rounds, outcomes } = await world.write(...turns);
  expect(rounds).toBe(1);
  expect(outcomes).toMatchObject(parents.map(() => ({ status: "committed" })));
});

test("a turn that finishes items, starts children, emits, sends and stores a checkpoint needs one round trip", async () => {
  const world = new World();
  const worker = await world.worker();
  const [held] = await world.held(worker, 1);
  const claim = { worker, token: newToken() };
  const first = world.turn(held!, { entries: [["TaskScheduled", "Task(0)"]], items: [task(0, { claim })] });
  await world.write(first);
  const now = { ...held!, head: 2, chain: first.chain };
  const taken = { type: "ChildWorkflowFailed", target: "Child(0)", data: "{}" } as const;
  const second = world.turn(now, {
    entries: [
      ["TaskCompleted", "Task(0)"],
      ["MessageSent", "Message(0)"],
    ],
    finished: [{ item: "Task(0)", token: claim.token }],
    children: [{ run: newRun("child"), command: "Child(0)", detached: false, taken }],
    chunks: [{ stream: "log", number: 0, data: "1" }],
    outgoing: [{ seq: 4, destination: "erp" }],
    checkpoints: [{ step: 1, seq: 3, chain: "c", key: "k", label: undefined, state: undefined }],
  });
  const { rounds, outcomes } = await world.write(second);
  expect(outcomes).toMatchObject([{ status: "committed", children: [{ id: "child" }] }]);
  expect(rounds).toBe(1);
});

test("runs that end need one round trip, also with unread messages", async () => {
  const world = new World();
  const worker = await world.worker();
  const some = await world.held(worker, 10);
  const bare = some.map((held) => world.turn(held, { entries: [["RunCompleted", ""]], then: "completed" }));
  expect((await world.write(...bare)).rounds).toBe(1);
  const messaged = await world.held(worker, 10);
  await world.write(...messaged.map(({ id }) => message(id)));
  const unread = messaged.map((held) => world.turn(held, { entries: [["RunCompleted", ""]], then: "completed" }));
  expect((await world.write(...unread)).rounds).toBe(1);
});

test("a run that continues as new needs at most two round trips", async () => {
  const world = new World();
  const [held] = await world.held(await world.worker(), 1, { tags: ["blue"], deadlineMs: 9_000 });
  await world.write(message(held!.id));
  const next = { version: 1, started: "{}", runtime: "", carried: [] };
  const { rounds, outcomes } = await world.write(
    world.turn(held!, { entries: [["RunContinued", ""]], then: "continued", next }),
  );
  expect(outcomes).toMatchObject([{ status: "committed", next: { generation: 1, arrivals: 1 } }]);
  expect(rounds).toBeLessThanOrEqual(2);
});

test("messages need one round trip, and one more if they are deduplicated", async () => {
  const world = new World();
  const some = await world.held(await world.worker(), 50);
  expect((await world.write(...some.map(({ id }) => message(id)))).rounds).toBe(1);
  const once = some.map(({ id }) => ({ ...message(id), once: true, dedupId: "m" }));
  expect((await world.write(...once)).rounds).toBe(2);
});

test("50 items are claimed in two round trips, in a queue with limits in three; their ends need one", async () => {
  const world = new World();
  const worker = await world.worker();
  const [held] = await world.held(worker, 1);
  const slot = { queue: "mail", key: "k" };
  await world.write({ write: "declare-queue", name: "mail", limits: { concurrency: 60, perKey: { concurrency: 50 } } });
  const items = Array.from({ length: 100 }, (_, n) => task(n, n < 50 ? {} : { name: "send", slot }));
  await world.write(world.turn(held!, { entries: [["TaskScheduled", "Task(0)"]], items }));
  const claim = (name: string): Write => ({ write: "claim-items", worker, tokens: newTokens(50), names: [name] });
  for (const [name, rounds] of [
    ["charge", 2],
    ["send", 3],
  ] as const) {
    const claimed = await world.write(claim(name));
    expect(claimed.rounds).toBe(rounds);
    const taken = (claimed.outcomes[0] as ClaimItemsOutcome).items;
    expect(taken).toHaveLength(50);
    const done = taken.map(({ run, item, token, slot: its }): Write => {
      const answer = { type: "TaskCompleted", target: item, data: "1" } as const;
      return { write: "end-item", run, item, token, ...(its && { slot: its }), arrival: answer };
    });
    expect((await world.write(...done)).rounds).toBe(1);
  }
});

test("50 turns are claimed in two round trips, among many names in three", async () => {
  const world = new World();
  const worker = await world.worker();
  const starts = Array.from(
    { length: 100 },
    (_, n) => ({ write: "start", run: newRun(`r${n}`, { tags: ["t"] }) }) as const,
  );
  await world.write(...starts);
  await world.write(...starts.map(({ run }) => message(run.id)));
  const many = Array.from({ length: 40 }, (_, n) => ({ name: `other ${n}`, version: 1 }));
  for (const [others, rounds] of [
    [[], 2],
    [many, 3],
  ] as const) {
    const definitions = [{ name: "checkout", version: 1 }, ...others];
    const claimed = await world.write({ write: "claim-turns", worker, tokens: newTokens(50), definitions });
    expect(claimed.outcomes[0]).toHaveLength(50);
    expect(claimed.rounds).toBe(rounds);
  }
});

test("100 timers are fired in two round trips", async () => {
  const world = new World();
  const some = await world.held(await world.worker(), 100, { deadlineMs: 5_000 });
  const timers = some.map((held) =>
    world.turn(held, {
      entries: [["TimerStarted", "Timer(0)"]],
      items: [{ item: "Timer(0)", kind: "timer", name: "TimerFired", priority: 0, availableAt: 2_000, seq: 2 }],
    }),
  );
  await world.write(...timers);
  for (const time of [3_000, 6_500]) {
    world.time = time;
    const fired = await world.write({ write: "fire-due", limit: 100 });
    expect(fired.outcomes).toMatchObject([{ runs: some.map(({ run }) => run) }]);
    expect(fired.rounds).toBe(2);
  }
});

test("runs are admitted from a queue in three round trips", async () => {
  const world = new World();
  await world.write({ write: "declare-queue", name: "mail", limits: { concurrency: 10, perKey: { concurrency: 3 } } });
  const starts = Array.from({ length: 10 }, (_, n) => ({
    write: "start" as const,
    run: newRun(`r${n}`, { slot: { queue: "mail", key: `k${n % 5}` } }),
  }));
  await world.write(...starts);
  const admitted = await world.write({ write: "admit", definitions: [{ name: "checkout", version: 1 }], limit: 10 });
  expect((admitted.outcomes[0] as { runs: readonly number[] }).runs).toHaveLength(10);
  expect(admitted.rounds).toBe(3);
});

test("any number of nodes of flows end in one round trip, and so does the flow", async () => {
  const world = new World();
  const worker = await world.worker();
  const flows = await world.held(worker, 20, FLOW);
  const firsts = flows.map(({ run, token }) =>
    completeWrite(run, { turn: token, read: 0 }, { arrivals: [arrival("a", "input", 1, { cause: undefined })] }),
  );
  expect((await world.write(...firsts)).rounds).toBe(1);
  const claimed = await world.write({ write: "claim-items", worker, tokens: newTokens(20), names: [ROUTE] });
  expect(claimed.rounds).toBe(2);
  const { items } = claimed.outcomes[0] as ClaimItemsOutcome;
  expect(items).toHaveLength(20);
  const nodes = items.map((item) => completed(item, [arrival("b", "a", 1)]));
  expect((await world.write(...nodes)).rounds).toBe(1);
  const last = await world.write({ write: "claim-items", worker, tokens: newTokens(20), names: [ROUTE] });
  const over = (last.outcomes[0] as ClaimItemsOutcome).items.map((item) =>
    completed(item, [], { ...endParts("completed", [RUN_COMPLETED]), cancel: "{}" }),
  );
  expect((await world.write(...over)).rounds).toBeLessThanOrEqual(2);
});

test("the work of two dead workers is taken over in three round trips", async () => {
  const world = new World();
  for (let n = 0; n < 2; n++) {
    const worker = await world.worker(1_000);
    const claim = { worker, token: newToken() };
    const held = await world.held(worker, 20);
    await world.write(
      ...held.map((one) => world.turn(one, { entries: [["TaskScheduled", "Task(0)"]], items: [task(0, { claim })] })),
    );
  }
  world.time = 5_000;
  const reaped = await world.rowStore.transact(world.time, (tx) => reap(tx, 99));
  expect(reaped).toEqual({ workers: 2, turns: 40, items: 40 });
  expect(world.rowStore.rounds).toBeLessThanOrEqual(3);
});
