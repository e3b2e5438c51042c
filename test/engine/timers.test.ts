// Timers with ids: recorded, compared on replay, free again when the timer has ended.

import { expect, test } from "vitest";
import { task, workflow, type RepriseError } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, rejection } from "./world.ts";

const codeOf = (call: () => unknown): string | undefined => {
  try {
    call();
    return undefined;
  } catch (error) {
    return (error as RepriseError).code;
  }
};

test("the journal records the id of a timer, and a timer without an id is recorded as before", async () => {
  const yearly = workflow("yearly", async (ctx) => {
    const renewal = ctx.sleep("365 days", { id: "renewal" });
    await ctx.sleepUntil(new Date(ctx.now().getTime() + 60_000), { id: "first mail" });
    await ctx.sleep("1 minute");
    renewal.cancel();
  });
  await using engine = await createTestEngine({ definitions: [yearly] });
  const run = await engine.start(yearly);
  await engine.clock.advance("2 minutes");
  await run.result();
  const entries = (await collect(run.journal())).filter(({ type }) => type.startsWith("Timer"));
  const start = entries[0]!.at.getTime();
  expect(entries.map(({ type, data, at }) => [type, data, at.getTime() - start])).toEqual([
    ["TimerStarted", { index: 0, ms: 365 * 24 * 3_600_000, timerId: "renewal" }, 0],
    ["TimerStarted", { index: 1, ms: start + 60_000, timerId: "first mail", until: true }, 0],
    ["TimerFired", {}, 60_000],
    ["TimerStarted", { index: 2, ms: 60_000, timerId: "sleep" }, 60_000],
    ["TimerFired", {}, 120_000],
    ["TimerCancelled", { index: 3, timerId: "renewal" }, 120_000],
  ]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("two open timers cannot have one id; a loop uses the id again", async () => {
  const loop = workflow("loop", async (ctx) => {
    const first = ctx.sleep("1 hour", { id: "tick" });
    const twice = codeOf(() => ctx.sleep("2 hours", { id: "tick" }));
    await first;
    for (let round = 0; round < 2; round += 1) await ctx.sleep("1 hour", { id: "tick" });
    const left = ctx.sleep("1 hour", { id: "tick" });
    left.cancel();
    await left.catch(() => {});
    await ctx.sleep("1 hour", { id: "tick" });
    return twice;
  });
  await using engine = await createTestEngine({ definitions: [loop] });
  const run = await engine.start(loop);
  await engine.clock.advance("1 hour");
  await engine.crash();
  await engine.clock.advance("3 hours");
  expect(await run.result()).toBe("USAGE");
  expect(await run.verify()).toMatchObject({ status: "same" });
  const { output } = await crashEverywhere(loop, undefined, { definitions: [] });
  expect(output).toBe("USAGE");
});

test("an id that is no name, the ids of timers without one, and unknown options are refused before anything is written", async () => {
  const wrong = workflow("wrong", async (ctx) => [
    codeOf(() => ctx.sleep("1 s", { id: "" })),
    codeOf(() => ctx.sleep("1 s", { id: 7 } as never)),
    codeOf(() => ctx.sleep("1 s", { id: "sleepUntil" })),
    codeOf(() => ctx.sleepUntil(ctx.now(), { id: "sleep" })),
    codeOf(() => ctx.sleep("1 s", { name: "a" } as never)),
    codeOf(() => ctx.sleep("1 s", null as never)),
  ]);
  await using engine = await createTestEngine({ definitions: [wrong] });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual(["BAD_NAME", "BAD_NAME", "BAD_NAME", "BAD_NAME", "BAD_OPTIONS", "BAD_OPTIONS"]);
  expect((await run.info()).entries).toBe(2);
});

test("per type, another id of a timer stops the run, and another duration does not", async () => {
  let [id, hours] = ["reminder", 2];
  const remind = workflow("remind", { determinism: "per-type" }, async (ctx) => ctx.sleep(`${hours} h`, { id }));
  await using engine = await createTestEngine({ definitions: [remind] });
  const run = await engine.start(remind);
  await engine.clock.advance("1 hour");
  id = "renewal";
  hours = 7;
  await engine.crash();
  await engine.clock.advance("1 hour");
  expect((await rejection(run.result())).message).toContain(
    "the journal recorded timer 'reminder'; the code now starts timer 'renewal' (at Timer(0))",
  );
  id = "reminder";
  await run.resume();
  expect(await run.result()).toBeUndefined();
});

test("a retry of the run keeps the moment at which a timer with an id fires", async () => {
  let works = false;
  const flaky = task("flaky", () => {
    if (!works) throw new Error("down");
  });
  const careful = workflow("careful", async (ctx) => {
    const until = ctx.sleepUntil(new Date(ctx.now().getTime() + 3_600_000), { id: "opening" });
    await ctx.task(flaky);
    await until;
    return ctx.now().getTime();
  });
  await using engine = await createTestEngine({ definitions: [careful, flaky] });
  const run = await engine.start(careful);
  const { createdAt } = await run.info();
  await rejection(run.result());
  works = true;
  await engine.clock.advance("30 minutes");
  await run.retry();
  await engine.clock.advance("30 minutes");
  expect(await run.result()).toBe(createdAt.getTime() + 3_600_000);
});
