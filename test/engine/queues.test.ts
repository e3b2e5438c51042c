// Queues: how much work runs at once, and in which order.

import { expect, test } from "vitest";
import { createEngine, queue, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate, macrotask, rejection, type Gate } from "./world.ts";

/** Tasks that wait at a gate each, and which of them are running. */
function createJobs() {
  const gates = new Map<string, Gate>();
  const started: string[] = [];
  const running = new Set<string>();
  const gate = (name: string): Gate => {
    let found = gates.get(name);
    if (found === undefined) gates.set(name, (found = createGate()));
    return found;
  };
  return {
    started,
    running,
    gate,
    async work(name: string): Promise<string> {
      started.push(name);
      running.add(name);
      await gate(name).wait();
      running.delete(name);
      return name;
    },
  };
}

test.each([
  ["one worker", 1],
  ["two workers", 2],
])("a queue with concurrency 2 never runs three of its tasks at once, with %s", async (_, workers) => {
  using folder = createFolder();
  let running = 0;
  let most = 0;
  const narrow = queue("narrow", { concurrency: 2 });
  const job = task("job", { queue: narrow }, async (_ctx, n: number) => {
    most = Math.max(most, ++running);
    for (let turn = 0; turn < 5; turn += 1) await macrotask();
    running -= 1;
    return n;
  });
  const wide = workflow("wide", async (ctx) => Promise.all(Array.from({ length: 10 }, (_each, n) => ctx.task(job, n))));
  const options = { definitions: [wide, job], store: `sqlite:${folder.file("shared.db")}` } as const;
  const engines = await Promise.all(Array.from({ length: workers }, () => createEngine(options)));
  try {
    const runs = await Promise.all(engines.map((engine) => engine.start(wide)));
    for (const run of runs) expect(await run.result()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(most).toBe(2);
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
});

test("per-key limits do not block other keys", async () => {
  const jobs = createJobs();
  const perUser = queue("per-user", { perKey: { concurrency: 1 } });
  const job = task("job", { queue: perUser, key: (name: string) => name[0] ?? "" }, (_ctx, name: string) =>
    jobs.work(name),
  );
  const all = workflow("all", async (ctx) =>
    Promise.all(["a1", "a2", "a3", "b1", "b2", "c1"].map((name) => ctx.task(job, name))),
  );
  await using engine = await createTestEngine({ definitions: [all, job] });
  const run = await engine.start(all);
  await engine.clock.advance(0);
  expect([...jobs.running]).toEqual(["a1", "b1", "c1"]);
  jobs.gate("a1").open();
  await engine.clock.advance(0);
  expect([...jobs.running]).toEqual(["b1", "c1", "a2"]);
  for (const name of ["a2", "a3", "b1", "b2", "c1"]) jobs.gate(name).open();
  expect(await run.result()).toEqual(["a1", "a2", "a3", "b1", "b2", "c1"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a rate limit of 5 per minute starts the sixth after the minute", async () => {
  const times: number[] = [];
  const slow = queue("slow", { rate: { limit: 5, per: "1 minute" } });
  const job = task("job", { queue: slow }, (_ctx, now: number) => void times.push(now));
  await using engine = await createTestEngine({
    definitions: [workflow("all", async (ctx) => Promise.all(Array.from({ length: 12 }, () => ctx.task(job, 0)))), job],
  });
  const run = await engine.start("all");
  await engine.clock.advance(0);
  expect(times).toHaveLength(5);
  await engine.clock.advance(59_999);
  expect(times).toHaveLength(5);
  await engine.clock.advance(1);
  expect(times).toHaveLength(10);
  await engine.clock.advance("1 minute");
  expect(times).toHaveLength(12);
  await run.result();
});

test("no window of a minute starts more than the rate allows", async () => {
  const started: number[] = [];
  const slow = queue("slow", { rate: { limit: 3, per: "1 minute" } });
  const job = task("job", { queue: slow }, () => void started.push(engine.clock.now().getTime()));
  const one = workflow("one", async (ctx) => ctx.task(job));
  await using engine = await createTestEngine({ definitions: [one, job] });
  for (let n = 0; n < 12; n += 1) {
    await engine.start(one);
    await engine.clock.advance("11 s");
  }
  await engine.clock.advance("5 minutes");
  expect(started).toHaveLength(12);
  for (const from of started)
    expect(started.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(3);
});

test("a per-key rate throttles its key only", async () => {
  const started: string[] = [];
  const mail = queue("mail", { perKey: { rate: { limit: 1, per: "1 minute" } } });
  const send = task("send", { queue: mail, key: (to: string) => to }, (_ctx, to: string) => void started.push(to));
  const all = workflow("all", async (ctx) => Promise.all(["a", "a", "a", "b"].map((to) => ctx.task(send, to))));
  await using engine = await createTestEngine({ definitions: [all, send] });
  const run = await engine.start(all);
  await engine.clock.advance(0);
  expect(started).toEqual(["a", "b"]);
  await engine.crash();
  await engine.clock.advance("1 minute");
  expect(started).toEqual(["a", "b", "a"]);
  await engine.clock.advance("1 minute");
  await run.result();
  expect(started).toEqual(["a", "b", "a", "a"]);
});

test("a paused queue dequeues nothing, and continues when it is resumed", async () => {
  const jobs = createJobs();
  const mail = queue("mail", { concurrency: 1 });
  const job = task("job", { queue: mail }, (_ctx, name: string) => jobs.work(name));
  const all = workflow("all", async (ctx) => Promise.all(["a", "b"].map((name) => ctx.task(job, name))));
  await using engine = await createTestEngine({ definitions: [all, job] });
  const run = await engine.start(all);
  await engine.clock.advance(0);
  await engine.getQueue(mail).pause();
  const pausedAt = new Date(engine.clock.now());
  jobs.gate("a").open();
  await engine.clock.advance("1 hour");
  expect(jobs.started).toEqual(["a"]);
  expect(await collect(engine.listQueues())).toMatchObject([
    { name: "default", ready: 0 },
    { name: "mail", paused: true, pausedAt, ready: 1, leased: 0, limits: { concurrency: 1 } },
  ]);
  await engine.crash();
  await engine.getQueue("mail").resume();
  expect(await engine.findQueue("mail")).not.toHaveProperty("pausedAt");
  await engine.clock.advance(0);
  expect(jobs.started).toEqual(["a", "b"]);
  jobs.gate("b").open();
  expect(await run.result()).toEqual(["a", "b"]);
});

test("higher priority goes first", async () => {
  const jobs = createJobs();
  const one = queue("one", { concurrency: 1 });
  const job = task("job", { queue: one }, (_ctx, name: string) => jobs.work(name));
  const all = workflow("all", async (ctx) =>
    Promise.all(
      (["low", "high", "low too", "highest"] as const).map((name, n) =>
        ctx.task(job, name, { priority: [0, 5, 0, 9][n] ?? 0 }),
      ),
    ),
  );
  await using engine = await createTestEngine({ definitions: [all, job] });
  const run = await engine.start(all);
  for (const name of ["low", "high", "low too", "highest"]) jobs.gate(name).open();
  await run.result();
  expect(jobs.started).toEqual(["highest", "high", "low", "low too"]);
});

test("new limits apply at once, and a restart with the old declaration keeps them", async () => {
  const jobs = createJobs();
  const narrow = queue("narrow", { concurrency: 1 });
  const job = task("job", { queue: narrow }, (_ctx, name: string) => jobs.work(name));
  const all = workflow("all", async (ctx) => Promise.all(["a", "b", "c", "d"].map((name) => ctx.task(job, name))));
  await using engine = await createTestEngine({ definitions: [all, job] });
  const run = await engine.start(all);
  await engine.clock.advance(0);
  expect(jobs.running.size).toBe(1);
  await engine.getQueue(narrow).limit({ concurrency: 3 });
  await engine.clock.advance(0);
  expect(jobs.running.size).toBe(3);
  await engine.crash();
  expect(await engine.findQueue(narrow)).toMatchObject({ limits: { concurrency: 3 }, leased: 3, ready: 1 });
  for (const name of ["a", "b", "c", "d"]) jobs.gate(name).open();
  await run.result();
});

test("a takeover frees the queue slot of the dead worker's task", async () => {
  const jobs = createJobs();
  const narrow = queue("narrow", { concurrency: 1, perKey: { concurrency: 1 } });
  const job = task("job", { queue: narrow, key: () => "k" }, (_ctx, name: string) => jobs.work(name));
  const all = workflow("all", async (ctx) => Promise.all(["a", "b"].map((name) => ctx.task(job, name))));
  await using engine = await createTestEngine({ definitions: [all, job] });
  const run = await engine.start(all);
  await engine.clock.advance(0);
  await engine.crash();
  expect(jobs.started).toEqual(["a", "a"]);
  jobs.gate("a").open();
  jobs.gate("b").open();
  expect(await run.result()).toEqual(["a", "b"]);
});

test("a task that waits for its retry holds no queue slot", async () => {
  const started: string[] = [];
  const narrow = queue("narrow", { perKey: { concurrency: 1 } });
  const job = task(
    "job",
    { queue: narrow, key: () => "k", retry: { maxAttempts: 2, baseDelay: "1 minute" } },
    (ctx, name: string) => {
      started.push(name);
      if (name === "a" && ctx.attempt === 1) throw new Error("once");
      return name;
    },
  );
  const all = workflow("all", async (ctx) => Promise.all(["a", "b"].map((name) => ctx.task(job, name))));
  await using engine = await createTestEngine({ definitions: [all, job] });
  const run = await engine.start(all);
  await engine.clock.advance(0);
  expect(started).toEqual(["a", "b"]);
  await engine.clock.advance("3 minutes");
  expect(await run.result()).toEqual(["a", "b"]);
  expect(started).toEqual(["a", "b", "a"]);
});

test("a cancelled run frees the queue slots of its tasks", async () => {
  const jobs = createJobs();
  const narrow = queue("narrow", { perKey: { concurrency: 1 } });
  const job = task("job", { queue: narrow, key: () => "k" }, (_ctx, name: string) => jobs.work(name));
  const one = workflow("one", async (ctx, name: string) => ctx.task(job, name));
  await using engine = await createTestEngine({ definitions: [one, job] });
  const first = await engine.start(one, "a");
  await engine.clock.advance(0);
  const second = await engine.start(one, "b");
  await engine.clock.advance(0);
  expect(jobs.started).toEqual(["a"]);
  await first.cancel();
  await engine.clock.advance(0);
  expect(jobs.started).toEqual(["a", "b"]);
  jobs.gate("b").open();
  expect(await second.result()).toBe("b");
});

test("a worker that names queues claims only from them", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const heavy = queue("heavy");
  const light = task("light", () => process.pid);
  const render = task("render", { queue: heavy }, () => "rendered");
  const both = workflow("both", async (ctx) => [await ctx.task(render), (await ctx.task(light)) > 0] as const);
  const definitions = [both, light, render] as const;
  await using web = await createEngine({ store, definitions, worker: { queues: [queue("default")] } });
  const run = await web.start(both);
  expect((await rejection(run.result({ timeout: 200 }))).code).toBe("RESULT_TIMEOUT");
  expect(await collect(web.listQueues())).toMatchObject([{ name: "default" }, { name: "heavy", ready: 1 }]);
  await using gpu = await createEngine({ store, definitions, worker: { queues: [heavy] } });
  expect(await run.result()).toEqual(["rendered", true]);
  const idle = await gpu.start(both);
  expect((await idle.result())[0]).toBe("rendered");
});

test("invalid queue options are refused before anything is written", async () => {
  const run = async (): Promise<void> => {};
  const narrow = queue("narrow", { perKey: { concurrency: 1 } });
  expect(() => queue("q", { concurrency: 0 })).toThrow("concurrency: expected a whole number of 1 or more, got 0");
  expect(() => queue("q", { rate: { limit: 1, per: 0 } })).toThrow("rate.per above 0");
  expect(() => queue("default", { concurrency: 1 })).toThrow("and has no limits");
  expect(() => queue("")).toThrow("queue name");
  expect(() => task("t", { queue: narrow }, run)).toThrow("has limits per key");
  expect(() => task("t", { key: () => "k" }, run)).toThrow("has no effect without `queue`");
  expect(() => task("t", { queue: { kind: "queue", name: "x" } }, run)).toThrow("expected a queue from queue()");
  const one = workflow("one", { queue: queue("a", { concurrency: 1 }) }, run);
  const two = workflow("two", { queue: queue("a", { concurrency: 2 }) }, run);
  const same = workflow("same", { queue: queue("a", { concurrency: 1 }) }, run);
  const twice = await rejection(createTestEngine({ definitions: [one, two] }));
  expect(twice).toMatchObject({ code: "DUPLICATE_DEFINITION" });
  expect(twice.message).toContain("Two queues are named a");
  await using engine = await createTestEngine({ definitions: [one, same] });
  expect(await rejection(engine.getQueue("missing").pause())).toMatchObject({ code: "QUEUE_NOT_FOUND" });
  expect(await rejection(engine.getQueue("default").pause())).toMatchObject({ code: "USAGE" });
});

test("an invalid key fails the call, not the worker", async () => {
  const narrow = queue("narrow", { perKey: { concurrency: 1 } });
  const job = task("job", { queue: narrow, key: (key: string) => key }, (_ctx, key: string) => key);
  const one = workflow("one", { queue: narrow, key: (key: string) => key }, async (ctx, key: string) => {
    const failed = await ctx.task(job, "").catch((error: Error) => error.message);
    return [failed, await ctx.task(job, key)] as const;
  });
  await using engine = await createTestEngine({ definitions: [one, job] });
  expect(await rejection(engine.start(one, ""))).toMatchObject({ code: "BAD_NAME" });
  const run = await engine.start(one, "k");
  expect(await run.result()).toEqual([expect.stringContaining("task job: key"), "k"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});
