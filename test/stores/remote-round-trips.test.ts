// Round trips of a remote store for the most frequent operations. Each call of a connection is a round trip; this test detects
// additional ones.

import { expect, test } from "vitest";
import { systemRandom, systemTimers } from "../../src/base/index.ts";
import { memoText, type Store, type TurnWrite } from "../../src/kernel/index.ts";
import type { Backend } from "../../src/stores/remote/backend.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import { openSimBackend } from "../simulation/store/sim-backend.ts";
import {
  heldAfter,
  claimTurns,
  newToken,
  newTokens,
  registerWorker,
  startWrite,
  turnWrite,
  type HeldTurn,
} from "../../src/testing/store-cases/store-actions.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";

const CALLS = ["query", "read", "commit", "rollback"] as const;
type Calls = Record<(typeof CALLS)[number], number>;
const MANY = 50;

class World implements AsyncDisposable {
  readonly store: Store;
  readonly worker: number;
  readonly #calls: Calls;

  private constructor(store: Store, worker: number, calls: Calls) {
    this.store = store;
    this.worker = worker;
    this.#calls = calls;
  }

  static async open(): Promise<World> {
    const time = createVirtualTime();
    const calls: Calls = { query: 0, read: 0, commit: 0, rollback: 0 };
    const backend = counted(openSimBackend({ now: () => time.now() }), calls);
    const ports = { clock: time.clock, timers: systemTimers, random: systemRandom };
    const store = await openRemoteStore(backend, { ...ports, durability: "full", time: "given" });
    return new World(store, await registerWorker(store), calls);
  }

  /** The round trips of `act`. */
  async count<T>(act: () => Promise<T>): Promise<{ readonly result: T; readonly calls: Partial<Calls> }> {
    const before = { ...this.#calls };
    const result = await act();
    const made = CALLS.map((call) => [call, this.#calls[call] - before[call]] as const).filter(
      ([, count]) => count > 0,
    );
    return { result, calls: Object.fromEntries(made) };
  }

  async started(): Promise<readonly HeldTurn[]> {
    const starts = Array.from({ length: MANY }, (_, n) => {
      return { ...startWrite(`run ${n}`), claim: { worker: this.worker, token: newToken() } };
    });
    const outcomes = await this.store.write(starts);
    return outcomes.map((outcome, index) => {
      if (outcome.status !== "started") throw new Error(outcome.status);
      const { run, id, head, chain } = outcome.record;
      return { run, id, head, chain, token: starts[index]!.claim.token, read: 0, inbox: [] };
    });
  }

  /** Commits one turn of each run; returns their new heads. */
  async turns(
    all: readonly HeldTurn[],
    parts: (held: HeldTurn) => Parameters<typeof turnWrite>[2],
  ): Promise<readonly HeldTurn[]> {
    const writes = all.map((held): TurnWrite => turnWrite(this.store, held, parts(held)));
    const outcomes = await this.store.write(writes);
    expect(outcomes.map(({ status }) => status)).toEqual(all.map(() => "committed"));
    return all.map((held, index) => heldAfter(held, writes[index]!));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
  }
}

function counted(backend: Backend, calls: Calls): Backend {
  return new Proxy(backend, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      if (name !== "connect") return member.bind(target) as unknown;
      return async () => {
        const connection = await target.connect();
        for (const call of CALLS) {
          const made = connection[call].bind(connection) as (...given: readonly unknown[]) => unknown;
          Object.assign(connection, { [call]: (...given: readonly unknown[]) => ((calls[call] += 1), made(...given)) });
        }
        return connection;
      };
    },
  });
}

const STEP = { entries: [["OperationCompleted", "Operation(0)"]] } as const;
const END = { entries: [["RunCompleted", ""]], then: "completed" } as const;

test("starts, steps and ends of held runs are one commit each, without queries", async () => {
  await using world = await World.open();
  const { result: held, calls: starting } = await world.count(() => world.started());
  expect(starting).toEqual({ commit: 1 });
  const { result: further, calls: stepping } = await world.count(() => world.turns(held, () => STEP));
  expect(stepping).toEqual({ commit: 1 });
  const { calls: ending } = await world.count(() => world.turns(further, () => END));
  expect(ending).toEqual({ commit: 1 });
});

test("tasks that start and end in this process are one commit each, without queries", async () => {
  await using world = await World.open();
  const { worker } = world;
  const claim = { worker, token: newToken() };
  const item = { item: "Task(0)", kind: "task", name: "charge", priority: 0, seq: 2, claim } as const;
  const held = await world.started();
  const { result: scheduled, calls: scheduling } = await world.count(() =>
    world.turns(held, () => ({ entries: [["TaskScheduled", "Task(0)"]], items: [item] })),
  );
  expect(scheduling).toEqual({ commit: 1 });
  const { calls: finishing } = await world.count(() =>
    world.turns(scheduled, () => ({
      entries: [["TaskCompleted", "Task(0)"]],
      finished: [{ item: "Task(0)", token: claim.token }],
    })),
  );
  expect(finishing).toEqual({ commit: 1 });
});

test("results of pure steps are in the commit of their steps, and any number of them is read in one round trip", async () => {
  await using world = await World.open();
  const held = await world.started();
  const keyOf = (run: number): string => String(run).padStart(64, "0");
  const { calls: remembering } = await world.count(async () => {
    const turns = held.map((one) => turnWrite(world.store, one, STEP));
    const memoOf = (run: number) => ({ memo: keyOf(run), value: memoText(String(run)), by: "test" });
    await world.store.write(
      turns.map((turn) => ({ ...turn, entries: turn.entries.map((entry) => ({ ...entry, memo: memoOf(turn.run) })) })),
    );
  });
  expect(remembering).toEqual({ commit: 1 });
  const { result, calls: recalling } = await world.count(() =>
    world.store.readMemos(held.map(({ run }) => keyOf(run))),
  );
  expect(result).toEqual(held.map(({ run }) => ({ status: "known", result: String(run) })));
  expect(recalling).toEqual({ read: 1 });
});

test("a poll for all kinds of work is one round trip when there is none", async () => {
  await using world = await World.open();
  const { store, worker } = world;
  const definitions = [{ name: "checkout", version: 1 }];
  const { calls } = await world.count(() =>
    store.write([
      { write: "admit", definitions, limit: 10 },
      { write: "claim-turns", worker, tokens: newTokens(10), definitions },
      { write: "claim-items", worker, tokens: newTokens(10), names: ["charge"] },
      { write: "fire-due", limit: 10 },
    ]),
  );
  expect(calls).toEqual({ read: 1 });
});

test("claimed runs that have only been started end without queries", async () => {
  await using world = await World.open();
  await world.store.write(Array.from({ length: MANY }, (_, n) => startWrite(`run ${n}`)));
  const { result: turns, calls: claiming } = await world.count(() => claimTurns(world.store, world.worker));
  // A read without locks; the turns with locks; their rows.
  expect(claiming).toEqual({ read: 1, query: 2, commit: 1 });
  const held = turns.map(({ record: { run, id, head, chain }, token }) => {
    return { run, id, head, chain, token, read: 0, inbox: [] };
  });
  const { calls } = await world.count(() => world.turns(held, () => END));
  expect(calls).toEqual({ commit: 1 });
});

test("concurrent reads of runs share round trips", async () => {
  await using world = await World.open();
  await world.started();
  const { calls } = await world.count(() =>
    Promise.all(Array.from({ length: MANY }, (_, n) => world.store.findRun(`run ${n}`))),
  );
  // Runs, then their tags.
  expect(calls).toEqual({ read: 2 });
});

test("a run and its last entry are read in one round trip", async () => {
  await using world = await World.open();
  const [held] = await world.turns(await world.started(), () => END);
  const { result, calls } = await world.count(() => world.store.readEnd(held!.run));
  expect(result?.last?.seq).toBe(result?.record.head);
  expect(calls).toEqual({ read: 1 });
});

test("the backlog and the queues are read in three round trips", async () => {
  await using world = await World.open();
  await world.store.write([
    { write: "declare-queue", name: "mail", limits: { concurrency: 1 } },
    ...Array.from({ length: MANY }, (_, n) => startWrite(`run ${n}`, { version: 1 + (n % 2), priority: n % 3 })),
    ...Array.from({ length: MANY }, (_, n) => startWrite(`queued ${n}`, { slot: { queue: "mail", key: `k${n % 5}` } })),
  ]);
  // The names, their counts and priorities, the first row of each priority.
  const { result: backlog, calls } = await world.count(() => world.store.readBacklog(1_000));
  expect(backlog.map(({ kind, count }) => [kind, count])).toEqual([
    ["start", 50],
    ["turn", 25],
    ["turn", 25],
  ]);
  expect(calls).toEqual({ read: 3 });
  const { result: queues, calls: listing } = await world.count(() => world.store.listQueues(1_000));
  expect(queues).toMatchObject([{ name: "default" }, { name: "mail", ready: 50 }]);
  expect(listing).toEqual({ read: 3 });
});

test("ended runs are pruned in a few round trips, however many they are", async () => {
  await using world = await World.open();
  await world.turns(await world.started(), () => END);
  const { result, calls } = await world.count(() => world.store.prune(world.store.now() + 1));
  expect(result).toEqual({ runs: MANY });
  // Reads: the highest run; a window of runs; what prevents deleting them; the kinds of start keys. Transactions: the runs;
  // leftovers, their runs, their rows; no more leftovers.
  expect(calls).toEqual({ read: 4, query: 5, commit: 2, rollback: 1 });
});
