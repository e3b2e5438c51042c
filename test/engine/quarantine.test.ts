// Suspects: how a worker runs work that was taken over several times in a row (store.S5).

import { expect, test } from "vitest";
import { task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";

/** Runs whose step does not end while `isStuck`; counts the steps started since the last crash. */
function createSubject() {
  const state = { isStuck: true, started: { operations: 0, tasks: 0 }, finishLast: (): void => {} };
  const step = (kind: "operations" | "tasks") => (): Promise<number> | number => {
    state.started[kind] += 1;
    return state.isStuck ? new Promise<number>((resolve) => (state.finishLast = () => resolve(1))) : 1;
  };
  const job = task("job", step("tasks"));
  const operating = workflow("operating", (ctx) => ctx.run("job", step("operations")));
  const delegating = workflow("delegating", (ctx) => ctx.task(job));
  return { state, operating, delegating, definitions: [operating, delegating, job] as const };
}

async function createWorld(operations: number, tasks: number) {
  const subject = createSubject();
  const engine = await createTestEngine({ definitions: subject.definitions, worker: { concurrency: 1_000 } });
  const runs = [
    ...(await Promise.all(Array.from({ length: operations }, () => engine.start(subject.operating)))),
    ...(await Promise.all(Array.from({ length: tasks }, () => engine.start(subject.delegating)))),
  ];
  await engine.clock.advance(0);
  const { state } = subject;
  const crash = async (): Promise<void> => {
    state.started = { operations: 0, tasks: 0 };
    await engine.crash();
  };
  return { engine, runs, state, crash, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
}

test("after each crash in a row a worker runs suspects in smaller groups, one group per quarantine window", async () => {
  await using world = await createWorld(260, 0);
  const { engine, state, crash } = world;
  const tried = async (afterMs: number): Promise<number> => {
    await engine.clock.advance(afterMs);
    return state.started.operations;
  };
  await crash();
  expect(await tried(0)).toBe(260);
  await crash();
  expect(await tried(0)).toBe(256);
  expect(await tried(249)).toBe(256);
  expect(await tried(1)).toBe(260);
  await crash();
  expect(await tried(0)).toBe(64);
  expect(await tried(250)).toBe(128);
  await crash();
  expect(await tried(0)).toBe(8);
  expect(await tried(100)).toBe(16);
  await crash();
  expect(await tried(0)).toBe(1);
  expect(await tried(100)).toBe(2);
});

test("a worker runs the next group as soon as the last one has committed, and blocks none of its runs", async () => {
  await using world = await createWorld(200, 0);
  const { runs, state, crash } = world;
  for (let crashes = 1; crashes <= 4; crashes += 1) await crash();
  expect(state.started.operations).toBe(8);
  await crash();
  state.isStuck = false;
  await crash();
  const results = await Promise.all(runs.map((run) => run.result()));
  expect(results).toEqual(results.map(() => 1));
});

test("a worker does not run suspect turns and suspect tasks at the same time", async () => {
  await using world = await createWorld(3, 3);
  const { engine, state, crash } = world;
  for (let crashes = 1; crashes <= 4; crashes += 1) await crash();
  expect(Object.values(state.started).toSorted()).toEqual([0, 3]);
  await engine.clock.advance(100);
  expect(state.started).toEqual({ operations: 3, tasks: 3 });
});

test("a worker that isolates a suspect a second time runs no other suspect until that one has committed", async () => {
  await using world = await createWorld(6, 0);
  const { engine, state, crash } = world;
  // Each crash makes the first ones suspects of a higher level.
  for (let crashes = 1; crashes <= 7; crashes += 1) await crash();
  expect(state.started.operations).toBe(1);
  await engine.clock.advance("10 s");
  expect(state.started.operations).toBe(1);
  state.finishLast();
  await engine.clock.advance(0);
  expect(state.started.operations).toBeGreaterThan(1);
});
