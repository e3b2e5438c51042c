// Pause: no code of the run continues until it is resumed; nothing that arrives meanwhile is lost.

import { expect, test } from "vitest";
import { createClient, createEngine, promise, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { createFolder, createGate, rejection, storeAround, until, watchEvents, within } from "./world.ts";

test("a paused run accepts messages, and its code receives them when it is resumed", async () => {
  const received: string[] = [];
  const asks = workflow("asks", { ports: { name: promise<string>() } }, async (ctx) => {
    const name = await ctx.promise("name");
    received.push(name);
    return name;
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [asks], store: source });
  const run = await engine.start(asks);
  await engine.clock.advance(0);
  await run.pause();
  await run.pause();
  expect((await run.info()).status).toBe("paused");
  await run.resolve("name", "Ada");
  await engine.clock.advance("1 day");
  expect(received).toEqual([]);
  expect((await run.info()).status).toBe("paused");
  expect(await source.store.check()).toEqual([]);
  await run.resume();
  expect(await run.result()).toBe("Ada");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a timer that comes due while the run is paused fires when it is resumed", async () => {
  const sleeper = workflow("sleeper", async (ctx) => {
    await ctx.sleep("1 hour");
    return ctx.now().toISOString();
  });
  await using engine = await createTestEngine({ definitions: [sleeper], now: new Date("2026-01-01T00:00:00Z") });
  const run = await engine.start(sleeper);
  await engine.clock.advance("1 minute");
  await run.pause();
  await engine.clock.advance("1 day");
  await run.resume();
  expect(await run.result()).toBe("2026-01-02T00:01:00.000Z");
});

test.each(["task", "operation"] as const)(
  "a %s that runs when the run is paused may finish, and its result is kept",
  async (kind) => {
    const gate = createGate<number>();
    let calls = 0;
    const after: string[] = [];
    const seen: number[] = [];
    const call = (): Promise<number> => {
      calls += 1;
      return gate.wait();
    };
    const work = task("work", call);
    const busy = workflow("busy", async (ctx) => {
      const got = kind === "task" ? await ctx.task(work) : await ctx.run("work", call);
      seen.push(got);
      await ctx.run("after", () => void after.push("after"));
      return got;
    });
    await using engine = await createTestEngine({ definitions: [busy, work] });
    const run = await engine.start(busy);
    await gate.reached;
    await run.pause();
    await engine.clock.advance(0);
    gate.open(7);
    await engine.clock.advance("1 hour");
    expect([after, seen]).toEqual([[], []]);
    expect((await run.info()).status).toBe("paused");
    await engine.crash();
    expect((await run.info()).status).toBe("paused");
    await run.resume();
    expect(await run.result()).toBe(7);
    expect([calls, after]).toEqual([1, ["after"]]);
    expect(await run.verify()).toMatchObject({ status: "same" });
  },
);

test("a run that is resumed while its operation still runs continues its other branches at once", async () => {
  const slow = createGate<number>();
  const seen: string[] = [];
  const both = workflow("both", { ports: { go: promise() } }, async (ctx) => {
    const first = ctx.run("slow", () => slow.wait());
    await ctx.promise("go");
    seen.push("went on");
    const second = await ctx.run("quick", () => 2);
    ctx.state.set("second", second);
    return [await first, second];
  });
  await using engine = await createTestEngine({ definitions: [both] });
  const run = await engine.start(both);
  await slow.reached;
  await run.pause();
  await run.resolve("go");
  await engine.clock.advance(0);
  expect([(await run.info()).entries, seen]).toEqual([3, []]);
  await run.resume();
  await engine.clock.advance(0);
  expect((await run.info()).entries).toBe(5);
  slow.open(1);
  expect(await run.result()).toEqual([1, 2]);
});

test("an operation is not retried while its run is paused", async () => {
  let attempts = 0;
  const flaky = workflow("flaky", async (ctx) =>
    ctx.run(
      "flaky",
      () => {
        attempts += 1;
        if (attempts < 3) throw new Error("not yet");
        return attempts;
      },
      { retry: { maxAttempts: 5, baseDelay: "1 minute", maxDelay: "1 minute" } },
    ),
  );
  await using engine = await createTestEngine({ definitions: [flaky] });
  const run = await engine.start(flaky);
  await engine.clock.advance(0);
  await run.pause();
  await engine.clock.advance("1 day");
  expect(attempts).toBe(1);
  await run.resume();
  await engine.clock.advance("2 minutes");
  expect(await run.result()).toBe(3);
});

test("a run can be paused before its code starts", async () => {
  using folder = createFolder();
  const started: string[] = [];
  const slow = workflow("slow", async () => void started.push("started"));
  const store = `sqlite:${folder.file("paused.db")}`;
  await using client = await createClient({ store, definitions: [slow] });
  const run = await client.start(slow);
  await run.pause();
  await using _worker = await createTestEngine({ store, definitions: [slow] });
  await _worker.clock.advance("1 hour");
  expect(started).toEqual([]);
  expect((await run.info()).status).toBe("paused");
});

test("a run held by another process pauses there soon, and continues there when it is resumed", async () => {
  using folder = createFolder();
  using watched = watchEvents();
  const store = `sqlite:${folder.file("shared.db")}`;
  const gate = createGate();
  let calls = 0;
  const busy = workflow("busy", async (ctx) => {
    await ctx.run("hold", () => gate.wait());
    return ctx.run("next", () => ++calls);
  });
  await using worker = await createEngine({ store, definitions: [busy] });
  await using client = await createClient({ store, definitions: [busy] });
  const run = await worker.start(busy);
  await gate.reached;
  const theirs = client.get(busy, run.id);
  await theirs.pause();
  await within(
    5_000,
    until(() => watched.events.some(({ event }) => event === "run.paused")),
  );
  gate.open();
  await within(
    5_000,
    until(async () => (await run.info()).entries === 2),
  );
  expect([(await run.info()).status, calls]).toEqual(["paused", 0]);
  await theirs.resume();
  expect(await within(5_000, theirs.result())).toBe(1);
});

test("pausing an ended, a stopped or an unknown run is refused with the reason", async () => {
  const quick = workflow("quick", async () => 1);
  const broken = workflow("broken", async () => new Promise<void>(() => {}));
  await using engine = await createTestEngine({ definitions: [quick, broken] });
  const run = await engine.start(quick);
  await run.result();
  expect(await rejection(run.pause())).toMatchObject({ code: "RUN_ENDED" });
  const stopped = await engine.start(broken);
  await rejection(stopped.result());
  const refused = await rejection(stopped.pause());
  expect(refused).toMatchObject({ code: "USAGE" });
  expect(refused.message).toContain("blocked");
  expect(await rejection(engine.get(quick, "missing").pause())).toMatchObject({ code: "RUN_NOT_FOUND" });
});

test("a paused run whose worker dies stays paused", async () => {
  const gate = createGate<number>();
  const busy = workflow("busy", async (ctx) => ctx.run("work", () => gate.wait()));
  await using engine = await createTestEngine({ definitions: [busy] });
  const run = await engine.start(busy);
  await gate.reached;
  await run.pause();
  await engine.crash();
  await engine.clock.advance("1 day");
  expect((await run.info()).status).toBe("paused");
  await run.resume();
  await engine.clock.advance(0);
  gate.open(3);
  expect(await run.result()).toBe(3);
});

test("a paused and resumed run has the same result after a crash at every commit", async () => {
  const steps = workflow("steps", { ports: { go: promise<number>() } }, async (ctx) => {
    const first = await ctx.run("first", () => 1);
    const second = await ctx.promise("go");
    return [first, second, await ctx.run("third", () => 3)];
  });
  const { output, crashes } = await crashEverywhere(steps, undefined, {
    drive: async (engine, id) => {
      const run = engine.get(steps, id);
      if ((await run.info()).endedAt !== undefined) return;
      await run.pause();
      await run.resolve("go", 2);
      await engine.clock.advance(0);
      await run.resume();
    },
  });
  expect(output).toEqual([1, 2, 3]);
  expect(crashes).toBeGreaterThan(8);
});
