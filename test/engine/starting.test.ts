// Starting, finding, listing, results and closing.

import { expect, test } from "vitest";
import { createClient, createEngine, promise, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection } from "./world.ts";

const echo = workflow("echo", async (ctx, value: unknown) => ctx.run("echo", () => value));
const other = workflow("other", async (ctx, value: unknown) => ctx.run("other", () => value));
const waiting = workflow("waiting", { ports: { go: promise<string>() } }, async (ctx) => ctx.promise("go"));
const failing = workflow("failing", async () => {
  throw new RangeError("out of range", { cause: { limit: 3 } });
});
const definitions = [echo, other, waiting, failing] as const;

test("the same id and input is the same run; another input or definition is START_CONFLICT and changes nothing", async () => {
  await using engine = await createTestEngine({ definitions });
  const input = { b: 1, a: [undefined, 2n] };
  const first = await engine.start(echo, input, { id: "order-7" });
  await first.result();
  const before = await first.info();
  const second = await engine.start(echo, { a: [undefined, 2n], b: 1 }, { id: "order-7" });
  expect(await second.result()).toEqual(input);
  const refusals = [
    [await rejection(engine.start(echo, { b: 2, a: [] }, { id: "order-7" })), '"b":2'],
    [await rejection(engine.start(other, input, { id: "order-7" })), "definition other"],
    [await rejection(engine.start(echo, undefined, { id: "order-7" })), "order-7"],
  ] as const;
  for (const [error, part] of refusals) {
    expect(error.code).toBe("START_CONFLICT");
    expect(error.message).toContain(part);
  }
  expect(await first.info()).toEqual(before);
  expect(await collect(engine.list())).toHaveLength(1);
});

test("a hundred starts of one id at once are one run", async () => {
  let executions = 0;
  const counted = workflow("counted", async (ctx) => ctx.run("count", () => ++executions));
  await using engine = await createTestEngine({ definitions: [counted] });
  const runs = await Promise.all(Array.from({ length: 100 }, () => engine.start(counted, undefined, { id: "one" })));
  expect(new Set(await Promise.all(runs.map((run) => run.result())))).toEqual(new Set([1]));
  expect(executions).toBe(1);
});

test("without an id every start is another run", async () => {
  await using engine = await createTestEngine({ definitions });
  const ids = await Promise.all([1, 2, 3].map(async (n) => (await engine.start(echo, n)).id));
  expect(new Set(ids).size).toBe(3);
});

test("every later handle reads the result of an ended run, and the cause of a failure", async () => {
  await using engine = await createTestEngine({ definitions });
  const done = await engine.start(echo, "x", { id: "done" });
  expect(await done.result()).toBe("x");
  expect(await done.result()).toBe("x");
  expect(await engine.get(echo, "done").result()).toBe("x");
  expect(await engine.get("echo", "done").result()).toBe("x");
  await engine.start(failing, undefined, { id: "failed" });
  for (const handle of [engine.get(failing, "failed"), engine.get("failing", "failed")]) {
    const error = await rejection(handle.result());
    expect(error.code).toBe("RUN_FAILED");
    expect(error.message).toContain("out of range");
    expect(error.cause).toBeInstanceOf(RangeError);
    expect((error.cause as Error).cause).toEqual({ limit: 3 });
  }
  expect((await engine.get(failing, "failed").info()).error).toBeInstanceOf(RangeError);
});

test("result({ timeout }) rejects with RESULT_TIMEOUT, and the run continues", async () => {
  await using engine = await createTestEngine({ definitions });
  const run = await engine.start(waiting);
  const result = rejection(run.result({ timeout: "1 minute" }));
  await engine.clock.advance("59s");
  await engine.clock.advance("1s");
  expect((await result).code).toBe("RESULT_TIMEOUT");
  await run.resolve("go", "on");
  expect(await run.result({ timeout: "1 minute" })).toBe("on");
});

test("a handle with the wrong definition, or of a run that does not exist, is refused", async () => {
  await using engine = await createTestEngine({ definitions });
  await engine.start(echo, 1, { id: "run-1" });
  const wrong = await rejection(engine.get(other, "run-1").result());
  expect(wrong.code).toBe("UNKNOWN_DEFINITION");
  expect(wrong.message).toContain("echo");
  for (const ask of ["info", "result", "verify", "replay", "resume", "cancel"] as const)
    expect((await rejection(engine.get(echo, "unknown")[ask]())).code, ask).toBe("RUN_NOT_FOUND");
  expect((await rejection(engine.get(waiting, "unknown").resolve("go", "x"))).code).toBe("RUN_NOT_FOUND");
  expect((await rejection(collect(engine.get(echo, "unknown").journal()))).code).toBe("RUN_NOT_FOUND");
});

test("a promise is resolved once; a run that has ended takes no more messages", async () => {
  await using engine = await createTestEngine({ definitions });
  const run = await engine.start(waiting);
  await run.resolve("go", "first");
  expect((await rejection(run.resolve("go", "second"))).code).toMatch(/PROMISE_ALREADY_RESOLVED|RUN_ENDED/);
  expect(await run.result()).toBe("first");
  const late = await rejection(run.resolve("go", "third"));
  expect(late.code).toBe("RUN_ENDED");
  expect(late.message).toContain("completed");
});

test("`find` and `list` select runs by definition, status, tag and age", async () => {
  await using engine = await createTestEngine({ definitions });
  for (let n = 0; n < 5; n += 1) {
    await (await engine.start(echo, n, { id: `echo-${n}`, tags: n % 2 === 0 ? ["even", "even"] : ["odd"] })).result();
    await engine.clock.advance("1s");
  }
  await engine.start(waiting, undefined, { id: "waits" });
  await rejection((await engine.start(failing, undefined, { id: "fails" })).result());
  await engine.clock.advance(0);
  const ids = async (filter?: Parameters<typeof engine.list>[0]) =>
    (await collect(engine.list(filter))).map(({ id }) => id);
  expect(await ids()).toEqual(["fails", "waits", "echo-4", "echo-3", "echo-2", "echo-1", "echo-0"]);
  expect(await ids({ definition: "echo", limit: 2 })).toEqual(["echo-4", "echo-3"]);
  expect(await ids({ tag: "even" })).toEqual(["echo-4", "echo-2", "echo-0"]);
  expect(await ids({ status: "waiting" })).toEqual(["waits"]);
  expect(await ids({ status: ["failed", "waiting"] })).toEqual(["fails", "waits"]);
  expect(await ids({ after: "echo-3" })).toEqual(["echo-2", "echo-1", "echo-0"]);
  expect(await ids({ after: "echo-3", tag: "even", status: "completed", definition: "echo", limit: 1 })).toEqual([
    "echo-2",
  ]);
  expect(await ids({ limit: 0 })).toEqual([]);
  expect(await ids({ definition: "unknown" })).toEqual([]);
  expect(await engine.find("unknown")).toBeUndefined();
  expect(await engine.find("echo-2")).toMatchObject({
    definition: "echo",
    status: "completed",
    tags: ["even"],
    kind: "workflow",
  });
  expect((await engine.find("fails"))?.error).toBeInstanceOf(RangeError);
});

test("`list` reads page by page, beyond one page", async () => {
  await using engine = await createTestEngine({ definitions });
  await Promise.all(Array.from({ length: 250 }, (_, n) => engine.start(echo, n, { id: `run-${n}` })));
  const all = await collect(engine.list());
  expect(all).toHaveLength(250);
  expect(new Set(all.map(({ id }) => id)).size).toBe(250);
  expect(await collect(engine.list({ limit: 201 }))).toHaveLength(201);
});

test("a closed engine refuses every call with ENGINE_CLOSED; a second close waits for the first", async () => {
  const engine = await createTestEngine({ definitions });
  const run = await engine.start(echo, 1, { id: "run-1" });
  await run.result();
  const schedule = await engine.schedule("daily", echo, 1, { every: "1 day" });
  await Promise.all([engine.close(), engine.close()]);
  await engine.close();
  const calls: (() => unknown)[] = [
    () => engine.start(echo, 1),
    () => engine.get(echo, "run-1"),
    () => engine.find("run-1"),
    () => collect(engine.list()),
    () => engine.drain(),
    () => engine.schedule("daily", echo, 1, { every: "1 day" }),
    () => engine.getSchedule("daily"),
    () => engine.findSchedule("daily"),
    () => engine.getQueue("default"),
    () => engine.findQueue("default"),
    () => collect(engine.listQueues()),
    () => collect(engine.listSchedules()),
    () => schedule.info(),
    () => schedule.pause(),
    () => schedule.resume(),
    () => schedule.trigger(),
    () => schedule.backfill(new Date(0), new Date(1)),
    () => schedule.remove(),
    () => run.info(),
    () => run.result(),
    () => run.cancel(),
    () => run.resume(),
    () => run.replay(),
    () => run.verify(),
    () => collect(run.journal()),
  ];
  for (const call of calls) expect((await rejection((async () => call())())).code, String(call)).toBe("ENGINE_CLOSED");
});

test("a caller that waits for a result is rejected when the engine closes", async () => {
  const engine = await createEngine({ store: "sqlite::memory:", definitions });
  const run = await engine.start(waiting);
  const result = rejection(run.result());
  await engine.close();
  expect((await result).code).toBe("ENGINE_CLOSED");
});

test("a client starts a run and reads it; an engine executes it", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  await using client = await createClient({ store, definitions });
  const run = await client.start(echo, "from the client", { id: "run-1" });
  expect((await run.info()).status).toBe("queued");
  await using _worker = await createEngine({ store, definitions });
  expect(await run.result({ timeout: "20s" })).toBe("from the client");
});
