// RunInfo: what run.info() says about a run, and why it does not move.

import { expect, test } from "vitest";
import {
  createClient,
  createEngine,
  FatalError,
  flow,
  promise,
  queue,
  task,
  typed,
  update,
  workflow,
  type StoreSource,
} from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate } from "./world.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

const child = workflow("child", { ports: { go: promise<number>() } }, async (ctx) =>
  ctx.promise("go", { show: "ready?" }),
);
const parent = workflow(
  "parent",
  async (ctx, name: string) => `${name}: ${await ctx.child(child, undefined, { id: "c" })}`,
);

test("info() has the input, the output, the parent and the number of children; list() has only rows", async () => {
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, "ann", { id: "p", tags: ["eu"] });
  await engine.clock.advance(0);
  expect(await run.info()).toMatchObject({ status: "waiting", input: "ann", children: 1, tags: ["eu"] });
  expect(await engine.get(child, "c").info()).toMatchObject({ parent: "p", children: 0 });
  await engine.get(child, "c").resolve("go", 5);
  await run.result();
  const info = await run.info();
  expect(info).toMatchObject({ status: "completed", input: "ann", output: "ann: 5", children: 1, waitsFor: [] });
  expect(info).not.toHaveProperty("parent");
  const [listed] = await collect(engine.list({ definition: "parent" }));
  expect(listed).toMatchObject({ id: "p", status: "completed" });
  expect(Object.keys(listed ?? {})).not.toContain("input");
});

test("waitsFor follows a child to the promise that stops both, with the command that resolves it", async () => {
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, "ann", { id: "p" });
  await engine.clock.advance("3 minutes");
  const [reason, ...others] = (await run.info()).waitsFor ?? [];
  expect(others).toEqual([]);
  expect(reason).toMatchObject({
    reason: "child",
    child: "c",
    status: "waiting",
    waitsFor: [{ reason: "promise", name: "go", show: "ready?" }],
    next: ["reprise resolve c go '<value as JSON>'"],
  });
  expect(reason?.text).toBe(
    "It has waited 3 m for child child, run c, waiting: it has waited 3 m for promise go, showing 'ready?'.",
  );
});

test("attempts counts what failed and was retried, and has the last error", async () => {
  let failures = 0;
  const flaky = task("flaky", { retry: { maxAttempts: 3, baseDelay: "1 minute" } }, async () => {
    if (failures < 2) throw new Error(`failure ${++failures}`);
    return 1;
  });
  const calls = workflow("calls", async (ctx) => ctx.task(flaky, undefined));
  await using engine = await createTestEngine({ definitions: [calls, flaky] });
  const run = await engine.start(calls);
  await engine.clock.advance(0);
  const info = await run.info();
  expect(info.attempts).toMatchObject({
    failed: 1,
    lost: 0,
    lastFailure: { step: "Task(0)", attempt: 1, error: new Error("failure 1") },
  });
  expect(info.waitsFor).toMatchObject([
    { reason: "retry", kind: "task", name: "flaky", attempt: 2, error: new Error("failure 1") },
  ]);
  await engine.clock.advance("10 minutes");
  expect((await run.info()).attempts).toMatchObject({ failed: 2, lastFailure: { attempt: 2 } });
});

test("a retried operation says when its next attempt starts", async () => {
  const pays = workflow("pays", async (ctx) =>
    ctx.run(
      "pay",
      (): never => {
        throw new Error("declined");
      },
      { retry: { maxAttempts: 2, baseDelay: "1 hour" } },
    ),
  );
  await using engine = await createTestEngine({ definitions: [pays] });
  const run = await engine.start(pays);
  await engine.clock.advance(0);
  const reasons = (await run.info()).waitsFor ?? [];
  expect(reasons.map(({ reason }) => reason)).toEqual(["running", "retry"]);
  expect(reasons[1]).toMatchObject({ kind: "operation", name: "pay", attempt: 2, error: new Error("declined") });
});

test("worker names the holder of the run, and the step that it runs", async () => {
  const gate = createGate();
  const slow = workflow("slow", async (ctx) => ctx.run("wait", () => gate.wait()));
  using folder = createFolder();
  await using engine = await createEngine({
    store: `sqlite:${folder.file("a.db")}`,
    definitions: [slow],
    logger: SILENT,
  });
  const run = await engine.start(slow);
  await gate.reached;
  expect(await run.info()).toMatchObject({ worker: { alive: true }, waitsFor: [{ reason: "running" }] });
  gate.open();
  await run.result();
  expect(await run.info()).not.toHaveProperty("worker");
});

const mail = queue("mail", { concurrency: 1 });
const gates = new Map<string, ReturnType<typeof createGate>>();
const send = task("send", { queue: mail }, async (_ctx, to: string) => gates.get(to)?.wait());
const letter = workflow("letter", async (ctx, to: string) => ctx.task(send, to));
const queued = workflow("queued", { queue: mail }, async (ctx) => ctx.sleep("1 day"));

test("a task in a full queue names the run that holds the slot; after a pause the queue is the reason too", async () => {
  gates.set("ann", createGate());
  using folder = createFolder();
  await using engine = await createEngine({
    store: `sqlite:${folder.file("a.db")}`,
    definitions: [letter, send],
    logger: SILENT,
  });
  await engine.start(letter, "ann", { id: "letter-1" });
  await gates.get("ann")?.reached;
  const second = await engine.start(letter, "bob", { id: "letter-2" });
  await expect.poll(async () => (await second.info()).status).toBe("waiting");
  expect((await second.info()).waitsFor).toMatchObject([
    { reason: "concurrency_limit", queue: "mail", limit: 1, holders: [{ run: "letter-1", command: "Task(0)" }] },
  ]);
  await engine.getQueue("mail").pause();
  expect((await second.info()).waitsFor).toMatchObject([
    { reason: "queue_paused", next: ["reprise queue resume mail"] },
    { reason: "concurrency_limit" },
  ]);
  await engine.getQueue("mail").resume();
  gates.get("ann")?.open(undefined);
  await second.result();
});

test("a run that waits for its queue or its delay says so, and not that it waits for a worker", async () => {
  await using engine = await createTestEngine({ definitions: [queued] });
  await engine.start(queued, undefined, { id: "first" });
  await engine.clock.advance(0);
  const second = await engine.start(queued, undefined, { id: "second" });
  await engine.clock.advance(0);
  expect((await second.info()).waitsFor).toMatchObject([
    { reason: "concurrency_limit", queue: "mail", holders: [{ run: "first" }], work: { kind: "start" } },
  ]);
  const later = await engine.start(queued, undefined, { delay: "1 hour" });
  expect((await later.info()).waitsFor).toMatchObject([
    { reason: "delay", text: expect.stringMatching(/^The run starts in 1 h, at /) },
  ]);
});

test("a run without a worker says which workers live and what they have", async () => {
  using folder = createFolder();
  const v1 = workflow("order", async () => 1);
  const v2 = workflow("order", { version: 2 }, async () => 2);
  await using client = await createClient({
    store: `sqlite:${folder.file("a.db")}`,
    definitions: [v2],
    logger: SILENT,
  });
  const run = await client.start(v2, undefined, { id: "order-7" });
  expect((await run.info()).waitsFor).toMatchObject([{ reason: "no_worker", workers: [] }]);
  await using _old = await createEngine({ store: `sqlite:${folder.file("a.db")}`, definitions: [v1], logger: SILENT });
  expect((await run.info()).waitsFor).toMatchObject([
    { reason: "no_worker", work: { name: "order", version: 2 }, workers: [{ lacks: "has order version 1" }] },
  ]);
});

test("a flow says which nodes run later and which inputs are missing", async () => {
  const sums = flow("sums", { input: typed<number>() })
    .action("tries", ["input"], { retry: { maxAttempts: 2, baseDelay: "1 hour" } }, () => {
      throw new Error("not now");
    })
    .action("tax", ["input"], (_ctx, { input }) => input)
    .action("total", ["tries", "tax"], (_ctx, { tax }) => tax)
    .output(["total"], ({ total }) => total);
  await using engine = await createTestEngine({ definitions: [sums] });
  const run = await engine.start(sums, 1);
  await engine.clock.advance(0);
  expect((await run.info()).waitsFor).toMatchObject([
    { reason: "retry", kind: "node", name: "tries", attempt: 2 },
    { reason: "inputs", node: "total", completed: 1, required: 2, arrived: ["tax"] },
  ]);
});

test("an error and a stop are in error; a stopped run has the evidence as its reason", async () => {
  const fails = workflow("fails", async (ctx) => ctx.run("no", () => Promise.reject(new FatalError("no"))));
  const endless = workflow("endless", async () => new Promise(() => {}));
  await using engine = await createTestEngine({ definitions: [fails, endless] });
  const failed = await engine.start(fails);
  await failed.result().catch(() => {});
  expect(await failed.info()).toMatchObject({ status: "failed", error: { message: "no" }, waitsFor: [] });
  const blocked = await engine.start(endless, undefined, { id: "e" });
  await blocked.result().catch(() => {});
  expect(await blocked.info()).toMatchObject({
    status: "blocked",
    error: { code: "RUN_BLOCKED" },
    waitsFor: [{ reason: "stopped", code: "STALLED", next: ["reprise resume e"] }],
  });
});

test("a run that only waits for updates says so", async () => {
  const counter = workflow("counter", { ports: { add: update<number, number>() } }, async (ctx) => {
    await new Promise<void>((resolve) =>
      ctx.onUpdate("add", (n) => {
        resolve();
        return n;
      }),
    );
  });
  await using engine = await createTestEngine({ definitions: [counter] });
  const run = await engine.start(counter);
  await engine.clock.advance(0);
  expect((await run.info()).waitsFor).toMatchObject([{ reason: "update" }]);
});

test("info() of a long run reads the ends of its journal, and not all of it", async () => {
  const long = workflow("long", { ports: { go: promise<number>() } }, async (ctx) => {
    for (let n = 0; n < 500; n += 1) await ctx.run("step", () => n);
    return ctx.promise("go");
  });
  let entries = 0;
  let reads = 0;
  const source: StoreSource = {
    async "~open"(options) {
      return new Proxy(await sqlite(":memory:")["~open"](options), {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          const call = value.bind(target) as (...args: unknown[]) => unknown;
          if (!/^(?:read|list|find|count)/.test(String(key))) return call;
          return async (...args: unknown[]) => {
            reads += 1;
            const answer = await call(...args);
            if (key === "readJournal") entries += (answer as readonly unknown[]).length;
            return answer;
          };
        },
      });
    },
  };
  await using engine = await createTestEngine({ store: source, definitions: [long] });
  const run = await engine.start(long);
  await engine.clock.advance(0);
  await expect.poll(async () => (await run.info()).status).toBe("waiting");
  reads = entries = 0;
  expect((await run.info()).waitsFor).toMatchObject([{ reason: "promise", name: "go" }]);
  expect(entries).toBeLessThanOrEqual(201);
  expect(reads).toBeLessThanOrEqual(12);
});

test("a promise that was settled before the code waited for it is not a reason to wait", async () => {
  const order = workflow(
    "order",
    { ports: { first: promise(), approve: promise(), other: promise() } },
    async (ctx) => {
      await ctx.promise("first");
      await ctx.promise("approve", { key: "a" });
      await ctx.promise("other");
    },
  );
  await using engine = await createTestEngine({ definitions: [order] });
  const run = await engine.start(order);
  await run.resolve("approve", undefined, { key: "a" });
  await run.resolve("first");
  await expect.poll(async () => (await run.info()).entries).toBe(6);
  expect((await run.info()).waitsFor).toMatchObject([{ reason: "promise", name: "other" }]);
});
