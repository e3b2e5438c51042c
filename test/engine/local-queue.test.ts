// Tasks of more runs than the worker has slots: they are leased in the commit that schedules them and wait for a slot in memory.

import { expect, test } from "vitest";
import { createEngine, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { sqlite } from "reprise/sqlite";
import {
  aroundWrites,
  createFolder,
  createGate,
  storeAround,
  until,
  within,
  type AnyWrite,
  type Gate,
} from "./world.ts";

/** A task that ends at once, unless it gets the name of a gate. */
function gatedTask(gates: Readonly<Record<string, Gate>>, called: string[]) {
  return task("gated", async (_ctx, name: string) => {
    called.push(name);
    await gates[name]?.wait();
    return name;
  });
}

const burst = 40;

function definitionsOf(gates: Readonly<Record<string, Gate>>, called: string[]) {
  const gated = gatedTask(gates, called);
  const all = workflow("all", async (ctx, names: readonly string[]) =>
    Promise.all(names.map((name) => ctx.task(gated, name))),
  );
  const one = workflow("one", async (ctx, name: string) => ctx.task(gated, name));
  return { gated, all, one, definitions: [gated, all, one] };
}

test("once a task is known to be short, every task of 64 runs is leased in the commit that schedules it", async () => {
  const writes: AnyWrite[] = [];
  const store = storeAround((batch, apply) => {
    writes.push(...batch);
    return apply();
  });
  const short = task("short", async (_ctx, n: number) => n);
  const chain = workflow("chain", async (ctx, n: number) => {
    let sum = 0;
    for (let step = 0; step < 5; step += 1) sum += await ctx.task(short, n);
    return sum;
  });
  await using engine = await createTestEngine({ store, definitions: [chain, short], worker: { concurrency: 4 } });
  const round = async (): Promise<readonly number[]> =>
    Promise.all(
      (await Promise.all(Array.from({ length: 64 }, (_, n) => engine.start(chain, n)))).map((run) => run.result()),
    );
  for (let warmUp = 0; warmUp < 8; warmUp += 1) await round();
  writes.length = 0;
  expect(await round()).toEqual(Array.from({ length: 64 }, (_, n) => 5 * n));
  const turns = writes.filter((write) => write.write === "turn");
  expect(turns.flatMap(({ items }) => items).filter(({ claim }) => claim !== undefined).length).toBe(320);
  // Through the queue, a result is written apart from the turn that takes it.
  expect(writes.filter(({ write }) => write === "end-item" || write === "return-item")).toEqual([]);
});

/** Lets `engine` execute tasks in bursts until it leases more of them than it has slots. */
async function widen(start: (names: readonly string[]) => Promise<unknown>): Promise<void> {
  for (let round = 0; round < 6; round += 1) await start(Array.from({ length: burst }, () => "quick"));
}

test("a cancel reaches a task that waits for a slot: its function is never called", async () => {
  const gates = { first: createGate(), last: createGate() };
  const called: string[] = [];
  const { all, one, definitions } = definitionsOf(gates, called);
  await using engine = await createTestEngine({ definitions, worker: { concurrency: 1 } });
  await widen(async (names) => (await engine.start(all, names)).result());
  const first = await engine.start(one, "first");
  await gates.first.reached;
  const waiting = await engine.start(one, "waiting");
  await engine.clock.advance(0);
  expect(called).not.toContain("waiting");
  await waiting.cancel();
  await expect(waiting.result()).rejects.toMatchObject({ code: "CANCELLED" });
  gates.first.open();
  expect(await first.result()).toBe("first");
  expect(called).not.toContain("waiting");
});

test("a draining worker gives back the tasks that wait for a slot, and another worker executes them", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const gates = { first: createGate() };
  const called: string[] = [];
  const calledThere: string[] = [];
  const here = definitionsOf(gates, called);
  const engine = await createEngine({ store, definitions: here.definitions, worker: { concurrency: 1 } });
  await widen(async (names) => (await engine.start(here.all, names)).result());
  const first = await engine.start(here.one, "first");
  await gates.first.reached;
  const waiting = await Promise.all(["a", "b", "c"].map((name) => engine.start(here.one, name)));
  const there = definitionsOf({}, calledThere);
  const drained = engine.drain();
  await using other = await createEngine({ store, definitions: there.definitions });
  const results = waiting.map(({ id }) => other.get(there.one, id).result());
  expect(await within(10_000, Promise.all(results))).toEqual(["a", "b", "c"]);
  expect(called).not.toContain("a");
  expect(calledThere.toSorted()).toEqual(["a", "b", "c"]);
  gates.first.open();
  await drained;
  expect(await within(10_000, other.get(there.one, first.id).result())).toBe("first");
});

test("tasks that wait behind a function that does not end go to another worker", async () => {
  using folder = createFolder();
  const path = folder.file("shared.db");
  const gates = { first: createGate() };
  const called: string[] = [];
  const calledThere: string[] = [];
  const returned: AnyWrite[] = [];
  const here = definitionsOf(gates, called);
  const watched = aroundWrites(sqlite(path), (batch, apply) => {
    returned.push(...batch.filter(({ write }) => write === "return-item"));
    return apply();
  });
  await using engine = await createEngine({
    store: watched,
    definitions: here.definitions,
    worker: { concurrency: 1 },
  });
  await widen(async (names) => (await engine.start(here.all, names)).result());
  const first = await engine.start(here.one, "first");
  await gates.first.reached;
  const waiting = await Promise.all(["a", "b", "c"].map((name) => engine.start(here.one, name)));
  const there = definitionsOf({}, calledThere);
  await using _other = await createEngine({ store: `sqlite:${path}`, definitions: [there.gated] });
  await until(() => calledThere.length === 3);
  expect(await within(10_000, Promise.all(waiting.map((run) => run.result())))).toEqual(["a", "b", "c"]);
  expect(called).not.toContain("a");
  expect(returned.length).toBe(3);
  gates.first.open();
  expect(await first.result()).toBe("first");
});
