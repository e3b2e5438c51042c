// The test kit itself: virtual time, stubs, crashes, golden journals.

import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { promise, task, workflow } from "reprise";
import { createTestEngine, exportJournal, expectReplay, saveJournal, stub } from "reprise/testing";
import { createFolder, createGate, macrotask, rejection } from "./world.ts";

const remind = task("remind", { retry: { maxAttempts: 3, baseDelay: "1 minute" } }, async (_ctx, to: string) => ({
  sent: to,
}));
const trial = workflow("trial", async (ctx, user: string) => {
  await ctx.sleep("30 days");
  return ctx.task(remind, user);
});

test("time stands still until it is advanced, and thirty days pass in no time", async () => {
  const now = new Date("2031-05-06T07:08:09.000Z");
  await using engine = await createTestEngine({ definitions: [trial, remind], now });
  expect(engine.clock.now()).toEqual(now);
  const run = await engine.start(trial, "ann");
  await engine.clock.advance("29 days");
  expect((await run.info()).status).toBe("waiting");
  await engine.clock.advance("1 day");
  expect(await run.result()).toEqual({ sent: "ann" });
  expect(engine.clock.now()).toEqual(new Date(now.getTime() + 30 * 86_400_000));
  expect((await run.info()).endedAt).toEqual(engine.clock.now());
});

test("timers that follow each other fire one after the other within one advance", async () => {
  const hops = workflow("hops", async (ctx) => {
    const at: number[] = [];
    for (let hop = 0; hop < 50; hop += 1) {
      await ctx.sleep("1 hour");
      at.push(ctx.now().getTime());
    }
    return at.map((time, index) => time - (at[index - 1] ?? time));
  });
  await using engine = await createTestEngine({ definitions: [hops] });
  const run = await engine.start(hops);
  await engine.clock.advance("3 days");
  expect(await run.result()).toEqual([0, ...Array.from({ length: 49 }, () => 3_600_000)]);
});

test("a stub stands in for a task, with the task's own policy, and for operations of a name", async () => {
  let calls = 0;
  const both = workflow("both", async (ctx) => [
    await ctx.task(remind, "bob"),
    await ctx.run("send", { to: "bob" }, () => "the real thing"),
  ]);
  const stubs = [
    stub(remind, (to) => {
      if (++calls < 3) throw new Error("not yet");
      return { sent: to.toUpperCase() };
    }),
    stub("send", (input) => `stub for ${JSON.stringify(input)}`),
  ];
  await using engine = await createTestEngine({ definitions: [both], stubs });
  const run = await engine.start(both);
  await engine.clock.advance("1 hour");
  expect(await run.result()).toEqual([{ sent: "BOB" }, 'stub for {"to":"bob"}']);
  expect(calls).toBe(3);
  expect(() => stub(undefined as never, () => 1)).toThrow(/expected a task/);
  expect(() => stub("send", 7 as never)).toThrow(/expected a function/);
});

test("handles and awaited results outlive a crash; what was asked of the dead process is refused", async () => {
  const waiting = workflow("waiting", { ports: { go: promise<number>() } }, async (ctx) => ctx.promise("go"));
  await using engine = await createTestEngine({ definitions: [waiting] });
  const run = await engine.start(waiting);
  const result = run.result();
  const limited = rejection(run.result({ timeout: "1 minute" }));
  const crashing = engine.crash();
  expect((await rejection(run.resolve("go", 1))).code).toBe("ENGINE_CLOSED");
  await crashing;
  await engine.crash();
  await engine.clock.advance("1 minute");
  expect((await limited).code).toBe("RESULT_TIMEOUT");
  await run.resolve("go", 2);
  expect(await result).toBe(2);
});

test("a function that waits for the test does not stop time", async () => {
  const gate = createGate();
  const slow = workflow("slow", async (ctx) => {
    const held = ctx.run("held", () => gate.wait());
    await ctx.sleep("1 hour");
    gate.open();
    await held;
    return "done";
  });
  await using engine = await createTestEngine({ definitions: [slow] });
  const run = await engine.start(slow);
  await engine.clock.advance("1 hour");
  expect(await run.result()).toBe("done");
});

test("a function that is at work is waited for, however long the machine takes for it", async () => {
  const work = async (): Promise<string> => {
    for (let turn = 0; turn < 40; turn += 1) {
      for (const until = performance.now() + 10; performance.now() < until;);
      await macrotask();
    }
    return "worked";
  };
  const busy = workflow("busy", async (ctx) => {
    const tooLate = ctx.sleep("1 second").then(() => "too late");
    return Promise.race([ctx.run("work", work), tooLate]);
  });
  await using engine = await createTestEngine({ definitions: [busy] });
  const run = await engine.start(busy);
  await engine.clock.advance("1 hour");
  expect(await run.result()).toBe("worked");
});

test("a saved journal replays with the code that wrote it, and not with other code or after damage", async () => {
  using folder = createFolder();
  const file = folder.file("trial-1.json");
  {
    await using engine = await createTestEngine({ definitions: [trial, remind] });
    const run = await engine.start(trial, "ann", { id: "trial-1" });
    await engine.clock.advance("30 days");
    await run.result();
    await saveJournal(run, file);
    const saved = await exportJournal(run);
    expect(`sha256:${saved.chain}`).toBe((await run.info()).digest);
    expect(saved.entries.map(({ type }) => type)).toEqual([
      "RunStarted",
      "TimerStarted",
      "TimerFired",
      "TaskScheduled",
      "TaskCompleted",
      "RunCompleted",
    ]);
  }
  await expectReplay(file, { definitions: [trial, remind] });
  const changed = workflow("trial", async (ctx, user: string) => {
    await ctx.sleep("31 days");
    return ctx.task(remind, user);
  });
  const violation = await rejection(expectReplay(file, { definitions: [changed, remind] }));
  expect(violation.code).toBe("DETERMINISM_VIOLATION");
  expect(violation.message).toContain("Timer(0)");
  expect((await rejection(expectReplay(file, { definitions: [remind] }))).code).toBe("UNKNOWN_DEFINITION");
  const text = readFileSync(file, "utf8");
  for (const [damage, said] of [
    [text.replace("ann", "bob"), "chain"],
    [text.slice(0, 200), "JSON"],
    ["{}", "format"],
    [JSON.stringify({ format: "reprise/journal/v1" }), "missing"],
  ] as const) {
    writeFileSync(file, damage);
    const error = await rejection(expectReplay(file, { definitions: [trial, remind] }));
    expect(error.code).toBe("BAD_PAYLOAD");
    expect(error.message).toContain(said);
  }
});

test("a journal with every kind of value is saved byte for byte", async () => {
  const values = {
    at: new Date(0),
    big: 2n ** 70n,
    map: new Map([[1, undefined]]),
    bytes: new Uint8Array([1, 2]),
    zero: -0,
  };
  const keeper = workflow("keeper", async (ctx, input: typeof values) => {
    const failed = await ctx
      .run("fail", () => Promise.reject(new TypeError("no", { cause: input })))
      .catch((error: unknown) => error);
    return ctx.run("keep", input, () => ({ input, failed }));
  });
  using folder = createFolder();
  await using engine = await createTestEngine({ definitions: [keeper] });
  const run = await engine.start(keeper, values);
  await run.result();
  expect(`sha256:${(await exportJournal(run)).chain}`).toBe((await run.info()).digest);
  await saveJournal(run, folder.file("values.json"));
  await expectReplay(folder.file("values.json"), { definitions: [keeper] });
});
