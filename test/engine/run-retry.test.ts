// run.retry(): a failed run continues from where it failed; committed steps stay.

import { expect, test } from "vitest";
import { promise, queue, signal, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createGate, rejection, storeAround } from "./world.ts";

/** Fails until it is fixed. */
function repairable(): { call<T>(value: T): T; calls: number; broken: boolean } {
  return {
    calls: 0,
    broken: true,
    call(value) {
      this.calls += 1;
      if (this.broken) throw new Error("broken");
      return value;
    },
  };
}

test.each(["task", "operation"] as const)(
  "a retry repeats the %s that made the run fail, and no earlier step",
  async (kind) => {
    const device = repairable();
    let before = 0;
    const work = task("work", () => device.call("done"));
    const steps = workflow("steps", async (ctx) => {
      const first = await ctx.run("before", () => ++before);
      const second = kind === "task" ? await ctx.task(work) : await ctx.run("work", () => device.call("done"));
      return { first, second };
    });
    const source = storeAround((_writes, apply) => apply());
    await using engine = await createTestEngine({ definitions: [steps, work], store: source });
    const run = await engine.start(steps);
    await rejection(run.result());
    device.broken = false;
    await run.retry();
    expect(await run.result()).toEqual({ first: 1, second: "done" });
    expect([before, device.calls]).toEqual([1, 2]);
    expect(await run.verify()).toMatchObject({ status: "same" });
    expect(await source.store.check()).toEqual([]);
    const types = (await collect(run.journal())).map(({ type }) => type);
    expect(types.slice(-4, -1)).toContain("RunRetried");
    expect((await run.info()).status).toBe("completed");
  },
);

test.each(["task", "operation"] as const)("after a retry of the run, a %s starts with attempt 1", async (kind) => {
  const attempts: number[] = [];
  const keys = new Set<string>();
  const call = (ctx: { attempt: number; idempotencyKey: string }): string => {
    attempts.push(ctx.attempt);
    keys.add(ctx.idempotencyKey);
    if (attempts.length < 4) throw new Error("broken");
    return "done";
  };
  const retry = { maxAttempts: 2, baseDelay: 1 };
  const work = task("work", { retry }, call);
  const steps = workflow("steps", async (ctx) => (kind === "task" ? ctx.task(work) : ctx.run("work", call, { retry })));
  await using engine = await createTestEngine({ definitions: [steps, work] });
  const run = await engine.start(steps);
  await engine.clock.advance("1 minute");
  await rejection(run.result());
  await run.retry();
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe("done");
  expect([attempts, keys.size]).toEqual([[1, 2, 1, 2], 1]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a run whose code threw is replayed and continues with the current code", async () => {
  let fixed = false;
  let calls = 0;
  const buggy = workflow("buggy", async (ctx) => {
    const n = await ctx.run("step", () => ++calls);
    if (!fixed) throw new Error("bug");
    return n;
  });
  await using engine = await createTestEngine({ definitions: [buggy] });
  const run = await engine.start(buggy);
  await rejection(run.result());
  await run.retry();
  expect((await rejection(run.result())).message).toContain("bug");
  fixed = true;
  await run.retry();
  expect(await run.result()).toBe(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retry voids the steps after the failure, and repeated steps get new keys", async () => {
  const device = repairable();
  const keys: string[] = [];
  const careful = workflow("careful", async (ctx) => {
    try {
      await ctx.run("work", () => device.call(1));
    } catch (error) {
      await ctx.run("tell", (op) => void keys.push(`tell ${op.idempotencyKey}`));
      throw new Error("could not", { cause: error });
    }
    return ctx.run("label", (op) => (keys.push(`label ${op.idempotencyKey}`), "label"));
  });
  await using engine = await createTestEngine({ definitions: [careful] });
  const run = await engine.start(careful);
  await rejection(run.result());
  device.broken = false;
  await run.retry();
  expect(await run.result()).toBe("label");
  expect(keys.map((key) => key.split(" ")[0])).toEqual(["tell", "label"]);
  expect(new Set(keys.map((key) => key.split(" ")[1])).size).toBe(2);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retry reopens what was open when the run failed: tasks, timers with their due time, promises", async () => {
  const device = repairable();
  const slow = createGate<string>();
  let slowCalls = 0;
  const work = task("slow", () => (++slowCalls, slow.opened));
  const wide = workflow("wide", { ports: { go: promise<string>(), note: signal<string>() } }, async (ctx) =>
    Promise.all([
      ctx.run("work", () => device.call("worked")),
      ctx.task(work),
      ctx.sleep("2 hours").then(() => ctx.now().toISOString()),
      ctx.promise("go", { timeout: "1 day" }),
      ctx.receive("note"),
    ]),
  );
  await using engine = await createTestEngine({ definitions: [wide, work], now: new Date("2026-01-01T00:00:00Z") });
  const run = await engine.start(wide);
  await rejection(run.result());
  await engine.clock.advance("1 hour");
  device.broken = false;
  await run.retry();
  await engine.clock.advance(0);
  expect(slowCalls).toBe(2);
  slow.open("slow");
  await run.resolve("go", "went");
  await run.signal("note", "noted");
  await engine.clock.advance("1 hour");
  expect(await run.result()).toEqual(["worked", "slow", "2026-01-01T02:00:00.000Z", "went", "noted"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("completions and messages that arrived between the failure and the end stay", async () => {
  const device = repairable();
  const gate = createGate();
  let other = 0;
  const both = workflow("both", { ports: { go: promise<string>() } }, async (ctx) => {
    const quick = ctx.run("other", () => ++other);
    try {
      await ctx.run("work", () => device.call("worked"));
    } catch (error) {
      await ctx.run("wait", () => gate.wait());
      throw error;
    }
    return [await quick, await ctx.promise("go")];
  });
  await using engine = await createTestEngine({ definitions: [both] });
  const run = await engine.start(both);
  await gate.reached;
  await run.resolve("go", "early");
  await engine.clock.advance(0);
  gate.open();
  await rejection(run.result());
  device.broken = false;
  await run.retry();
  expect(await run.result()).toEqual([1, "early"]);
  expect(other).toBe(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a promise that was rejected can be resolved after the retry", async () => {
  const asks = workflow("asks", { ports: { ok: promise<string>() } }, async (ctx) => ctx.promise("ok"));
  await using engine = await createTestEngine({ definitions: [asks] });
  const run = await engine.start(asks);
  await engine.clock.advance(0);
  await run.reject("ok", new Error("by mistake"));
  await rejection(run.result());
  await run.retry();
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("waiting");
  await run.resolve("ok", "after all");
  expect(await run.result()).toBe("after all");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retry of a parent retries its failed child, and the retried child replies to its parent", async () => {
  const device = repairable();
  const child = workflow("child", async (ctx) => ctx.run("work", () => device.call("child's")));
  const parent = workflow("parent", async (ctx) => ctx.child(child, undefined, { id: "child" }));
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent);
  await rejection(run.result());
  device.broken = false;
  await run.retry();
  expect(await run.result()).toBe("child's");
  for (const one of [run, engine.get(child, "child")]) expect(await one.verify()).toMatchObject({ status: "same" });
});

test("a child that ended while its parent had failed replies again; a live child replies when it ends", async () => {
  const device = repairable();
  const asks = workflow("asks", { ports: { go: promise<string>() } }, async (ctx) => ctx.promise("go"));
  const parent = workflow("parent", async (ctx) =>
    Promise.all([
      ctx.run("work", () => device.call("worked")),
      ctx.child(asks, undefined, { id: "ended" }),
      ctx.child(asks, undefined, { id: "live" }),
    ]),
  );
  await using engine = await createTestEngine({ definitions: [parent, asks] });
  const run = await engine.start(parent);
  await rejection(run.result());
  await engine.get(asks, "ended").resolve("go", "one");
  await engine.get(asks, "ended").result();
  device.broken = false;
  await run.retry();
  await engine.get(asks, "live").resolve("go", "two");
  expect(await run.result()).toEqual(["worked", "one", "two"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a child started after the failure is not mistaken for the child that the retry starts", async () => {
  const device = repairable();
  const asks = workflow("asks", { ports: { go: promise<string>() } }, async (ctx, _n: number) => ctx.promise("go"));
  const parent = workflow("parent", async (ctx) => {
    try {
      await ctx.run("work", () => device.call("worked"));
    } catch (error) {
      void ctx.child(asks, 1);
      await ctx.sleep(1);
      throw error;
    }
    return ctx.child(asks, 2);
  });
  await using engine = await createTestEngine({ definitions: [parent, asks] });
  const run = await engine.start(parent);
  await engine.clock.advance(1);
  await rejection(run.result());
  const [forgotten] = await collect(engine.list({ definition: "asks" }));
  device.broken = false;
  await run.retry();
  await engine.clock.advance(0);
  await engine.get(asks, forgotten!.id).resolve("go", "forgotten");
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("waiting");
  const [wanted] = await collect(engine.list({ definition: "asks" }));
  expect(wanted!.id).not.toBe(forgotten!.id);
  await engine.get(asks, wanted!.id).resolve("go", "wanted");
  expect(await run.result()).toBe("wanted");
});

test("a retry restarts the deadline of a run that missed it", async () => {
  const waits = workflow("waits", { ports: { go: promise<number>() } }, async (ctx) => ctx.promise("go"));
  await using engine = await createTestEngine({ definitions: [waits] });
  const run = await engine.start(waits, undefined, { deadline: "1 hour" });
  await engine.clock.advance("1 hour");
  await rejection(run.result());
  await run.retry();
  await engine.clock.advance("59 minutes");
  expect((await run.info()).status).toBe("waiting");
  await run.resolve("go", 4);
  expect(await run.result()).toBe(4);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("only a failed run whose steps were not undone can be retried", async () => {
  const quick = workflow("quick", async () => 1);
  const undone = workflow("undone", async (ctx) => {
    await ctx.run("step", () => 1, { undo: async () => {} });
    throw new Error("no");
  });
  await using engine = await createTestEngine({ definitions: [quick, undone] });
  const completed = await engine.start(quick);
  await completed.result();
  expect(await rejection(completed.retry())).toMatchObject({ code: "USAGE" });
  expect(await rejection(engine.get(quick, "missing").retry())).toMatchObject({ code: "RUN_NOT_FOUND" });
  const run = await engine.start(undone);
  await rejection(run.result());
  const before = await run.info();
  const refused = await rejection(run.retry());
  expect(refused).toMatchObject({ code: "NOT_RETRYABLE" });
  expect(refused.message).toContain("undone");
  expect(await run.info()).toEqual(before);
  expect(await engine.bulk("retry", {})).toEqual({ count: 0, skipped: 2 });
});

test("a run can fail and be retried repeatedly", async () => {
  let works = 0;
  const stages = workflow("stages", async (ctx) => {
    const all: number[] = [];
    for (let n = 0; n < 4; n += 1)
      all.push(
        await ctx.run(`stage ${n}`, () => {
          if (works < n) throw new Error(`stage ${n}`);
          return n;
        }),
      );
    return all;
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [stages], store: source });
  const run = await engine.start(stages);
  for (; works < 3; works += 1) {
    await rejection(run.result());
    expect(await run.verify()).toMatchObject({ status: "same" });
    await engine.crash();
    await run.retry();
    await rejection(run.result());
    await run.retry();
  }
  expect(await run.result().catch(() => run.retry().then(() => run.result()))).toEqual([0, 1, 2, 3]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("a retried run has the same result after a crash at every commit", async () => {
  const once = new Set<string>();
  const flaky = task("flaky", (ctx, broken: boolean) => {
    if (broken && !once.has(`${ctx.runId} repaired`)) throw new Error("broken");
    return "done";
  });
  const steps = workflow("steps", async (ctx) => {
    const first = await ctx.run("first", () => 1);
    return [first, await ctx.task(flaky, true), await ctx.run("last", () => 3)];
  });
  const { output, crashes } = await crashEverywhere(steps, undefined, {
    definitions: [flaky],
    drive: async (engine, id) => {
      once.delete(`${id} repaired`);
      await engine.clock.advance(0);
      once.add(`${id} repaired`);
      const run = engine.get(steps, id);
      if ((await run.info()).status === "failed") await run.retry();
    },
  });
  expect(output).toEqual([1, "done", 3]);
  expect(crashes).toBeGreaterThan(6);
});

test("a retried run counts against its queue's limits again", async () => {
  const device = repairable();
  const gates = { a: createGate(), b: createGate(), c: createGate() };
  const narrow = queue("narrow", { concurrency: 1 });
  const job = workflow("job", { queue: narrow }, async (ctx, name: "a" | "b" | "c") => {
    if (name === "a") await ctx.run("work", () => device.call("done"));
    return ctx.run("wait", () => gates[name].wait());
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [job], store: source });
  const a = await engine.start(job, "a");
  await rejection(a.result());
  const b = await engine.start(job, "b");
  await gates.b.reached;
  const c = await engine.start(job, "c");
  device.broken = false;
  await a.retry();
  await gates.a.reached;
  const leased = async (): Promise<number | undefined> => (await engine.findQueue("narrow"))?.leased;
  expect(await leased()).toBe(2);
  gates.b.open();
  await b.result();
  await engine.clock.advance(0);
  expect([await leased(), (await c.info()).status]).toEqual([1, "queued"]);
  gates.a.open();
  await a.result();
  await gates.c.reached;
  gates.c.open();
  await c.result();
  expect([await leased(), await source.store.check()]).toEqual([0, []]);
});

test("a retry is rejected while another live run has the run's singleton key, and succeeds afterwards", async () => {
  const device = repairable();
  const job = workflow("job", { ports: { go: promise() } }, async (ctx, name: string) => {
    if (name === "a") await ctx.run("work", () => device.call("done"));
    else await ctx.promise("go");
    return name;
  });
  await using engine = await createTestEngine({ definitions: [job] });
  const a = await engine.start(job, "a", { id: "a", singleton: "one" });
  await rejection(a.result());
  const b = await engine.start(job, "b", { id: "b", singleton: "one" });
  device.broken = false;
  const refusal = await rejection(a.retry());
  expect(refusal.code).toBe("NOT_RETRYABLE");
  expect(refusal.message).toContain("run b has its singleton key");
  expect(await a.info()).toMatchObject({ status: "failed", entries: (await collect(a.journal())).length });
  await b.resolve("go");
  await b.result();
  await a.retry();
  expect(await a.result()).toBe("a");
  expect(await a.verify()).toMatchObject({ status: "same" });
});
