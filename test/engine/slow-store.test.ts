// An engine whose store answers asynchronously, under virtual time and through a crash.

import { expect, test } from "vitest";
import { createEngine, promise, queue, task, workflow, type Database, type StoreSource } from "reprise";
import { createTestEngine } from "reprise/testing";
import { systemTimers } from "../../src/base/index.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import { PERFECT_WIRE, SimServer, type SimWire } from "../simulation/store/sim-backend.ts";
import { simulatedSource } from "../stores/remote-fixture.ts";
import { aroundWrites, createGate, macrotask, until } from "./world.ts";

/** Every call takes a turn of the event loop, as a reply from a server does. */
function slowSource(): StoreSource {
  const wire: SimWire = {
    ...PERFECT_WIRE,
    pass: () => new Promise<void>((resolve) => systemTimers.soon(resolve)),
  };
  return {
    "~open": (options) => openRemoteStore(new SimServer("rc", () => options.clock.now()).backend(wire), options),
  };
}

const remind = task("remind", async (_ctx, to: string) => `reminded ${to}`);
const trial = workflow("trial", { ports: { approved: promise<boolean>() } }, async (ctx, user: string) => {
  await ctx.run("greet", () => `hello ${user}`);
  await ctx.sleep("30 days");
  const reminder = await ctx.task(remind, user);
  return `${reminder}, ${String(await ctx.promise("approved"))}`;
});

test.each([
  ["at once", simulatedSource],
  ["a moment later", slowSource],
] as const)("a run survives thirty days, a crash and a message on a store that answers %s", async (_when, source) => {
  await using engine = await createTestEngine({ store: source(), definitions: [trial, remind] });
  const run = await engine.start(trial, "ann");
  await engine.clock.advance("1 day");
  await engine.crash();
  await engine.clock.advance("29 days");
  await run.resolve("approved", true);
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe("reminded ann, true");
});

test("work that becomes ready during a claim is claimed right after it", async () => {
  const hold = createGate();
  let isHeld = false;
  const source = aroundWrites(simulatedSource(), async (writes, apply) => {
    const outcomes = await apply();
    if (isHeld && writes.some(({ write }) => write === "claim-turns")) await hold.wait();
    return outcomes;
  });
  const waits = workflow("waits", { ports: { go: promise<number>() } }, async (ctx) => ctx.promise("go"));
  await using engine = await createTestEngine({ store: source, definitions: [waits] });
  const run = await engine.start(waits, undefined, { id: "run-1" });
  await engine.clock.advance(0);
  isHeld = true;
  const crashed = engine.crash();
  // The next process has polled, and found nothing.
  await hold.reached;
  await until(() => engine.find("run-1").then(Boolean, () => false));
  await run.resolve("go", 7);
  // Enough time for another poll, if none were in flight.
  for (let turn = 0; turn < 5; turn += 1) await macrotask();
  isHeld = false;
  hold.open();
  await crashed;
  expect(await run.result()).toBe(7);
});

/** The outcomes of polls that take nothing. */
const NO_WORK: Readonly<Record<string, unknown>> = {
  admit: { runs: [], nextAt: undefined, held: false },
  "claim-turns": [],
  "claim-items": { items: [], nextAt: undefined, held: false },
  "claim-messages": { messages: [], nextAt: undefined },
  "fire-due": { runs: [], ready: 0, nextAt: undefined },
};

test("an item that a claim skipped beside a commit of the same worker is claimed after it", async () => {
  const other = createGate();
  let skipped = 0;
  const source = aroundWrites(simulatedSource(), async (writes, apply) => {
    const claim = writes.findIndex(({ write }) => write === "claim-items");
    if (claim < 0 || skipped > 0 || !isQueued) return apply();
    skipped += 1;
    // Another batch starts while this claim is in flight, and locks the rows that the claim would take.
    await other.wait();
    return writes.map(({ write }) => NO_WORK[write]!);
  });
  let isQueued = false;
  const work = task("work", { queue: queue("line") }, () => 7);
  const works = workflow("works", async (ctx) => {
    isQueued = true;
    return ctx.task(work);
  });
  const waits = workflow("waits", { ports: { go: promise<number>() } }, async (ctx) => ctx.promise("go"));
  await using engine = await createTestEngine({ store: source, definitions: [works, waits, work] });
  const waiting = await engine.start(waits, undefined, { id: "waits-1" });
  const run = await engine.start(works, undefined, { id: "works-1" });
  await other.reached;
  await waiting.resolve("go", 1);
  other.open();
  expect(await run.result()).toBe(7);
  expect(skipped).toBe(1);
});

const chain = workflow("chain", async (ctx, steps: number) => {
  let sum = 0;
  for (let step = 1; step <= steps; step += 1) sum += await ctx.run(`step ${step}`, () => step);
  return sum;
});

/** The largest number of commits in flight while this many runs executed their steps. */
async function commitsAtOnce(runs: number): Promise<number> {
  let inFlight = 0;
  let most = 0;
  const wire: SimWire = {
    ...PERFECT_WIRE,
    pass(call, place) {
      if (call === "commit" && place === "before") most = Math.max(most, (inFlight += 1));
      if (call === "commit" && place === "after") inFlight -= 1;
      return new Promise<void>((resolve) => systemTimers.soon(resolve));
    },
  };
  const store: StoreSource = {
    "~open": (options) => openRemoteStore(new SimServer("rc", () => options.clock.now()).backend(wire), options),
  };
  await using engine = await createTestEngine({ store, definitions: [chain] });
  const started = await Promise.all(Array.from({ length: runs }, () => engine.start(chain, 4)));
  expect(await Promise.all(started.map((run) => run.result()))).toEqual(Array.from({ length: runs }, () => 10));
  return most;
}

test("with many runs, the code of one half continues while the other half is committed; a few runs share one commit", async () => {
  expect(await commitsAtOnce(200)).toBe(2);
  expect(await commitsAtOnce(5)).toBe(1);
});

test("frequent polls do not keep a worker from claiming the tasks of its own runs eagerly", async () => {
  let found = 0;
  let polls = 0;
  const watched = aroundWrites(simulatedSource(), async (writes, apply) => {
    const outcomes = await apply();
    // The next poll is requested while one is in flight.
    const before = polls;
    if (writes.some(({ write }) => write === "claim-items")) await until(() => polls > before + 1);
    writes.forEach(({ write }, index) => {
      if (write === "claim-items") found += (outcomes[index] as { readonly items: readonly unknown[] }).items.length;
    });
    return outcomes;
  });
  const restless: StoreSource = {
    async "~open"(options) {
      const store = await watched["~open"](options);
      return new Proxy(store, {
        get: (target, key) => (key === "pollChanges" ? () => (polls += 1) > 0 : (Reflect.get(target, key) as unknown)),
      });
    },
  };
  const batch = workflow("batch", async (ctx) => {
    for (let turn = 0; turn < 20; turn += 1) await ctx.task(remind, `nr ${turn}`);
  });
  await using engine = await createEngine({ store: restless, definitions: [batch, remind] });
  await Promise.all(Array.from({ length: 20 }, async () => (await engine.start(batch)).result()));
  expect(found).toBe(0);
});

const simulated: Database<unknown, false> = { "~kind": "simulated" };

test("transactions of several runs are open at once, and other runs continue between them", async () => {
  const many = 200;
  let open = 0;
  let most = 0;
  let done = 0;
  const moving = workflow("moving", async (ctx) => {
    await ctx.tx("move", simulated, async () => {
      most = Math.max(most, (open += 1));
      const until = performance.now() + 2;
      while (performance.now() < until) await macrotask();
      open -= 1;
      done += 1;
    });
  });
  await using engine = await createEngine({ store: simulatedSource(), definitions: [moving, chain] });
  const moves = await Promise.all(Array.from({ length: many }, () => engine.start(moving)));
  await (await engine.start(chain, 3)).result();
  expect(done).toBeLessThan(many);
  await Promise.all(moves.map((run) => run.result()));
  expect([most, done]).toEqual([4, many]);
});
