// ctx.deterministic: library code gets its clock, random numbers and ids from the run.

import { randomBytes, randomFillSync, randomInt, randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { append, graph, promise, START, workflow, type GuardMode, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "./world.ts";

/** Everything that a library may ask the machine for. */
function draw(): Record<string, unknown> {
  return {
    now: Date.now(),
    date: new Date().toISOString(),
    text: Date(),
    elapsed: performance.now(),
    hrtime: process.hrtime(),
    nanoseconds: String(process.hrtime.bigint()),
    unit: Math.random(),
    uuid: crypto.randomUUID(),
    nodeUuid: randomUUID(),
    values: [...crypto.getRandomValues(new Uint16Array(20))],
    bytes: randomBytes(40).toString("hex"),
    filled: randomFillSync(Buffer.alloc(4), 2).toString("hex"),
    int: randomInt(5, 9),
    weak: new WeakRef({}) instanceof WeakRef && new FinalizationRegistry(() => {}) instanceof FinalizationRegistry,
  };
}

const MODES: readonly GuardMode[] = ["error", "warn", "off"];

describe.each(MODES)("ctx.deterministic with guard %s", (guard) => {
  test("gives library code the same clock, random numbers and ids on every replay, also after an await", async () => {
    const drawn: unknown[] = [];
    const library = async (step: () => Promise<unknown>): Promise<unknown[]> => {
      const first = draw();
      await Promise.resolve();
      const second = draw();
      await step();
      return [first, second, draw()];
    };
    const calls = workflow("calls", async (ctx) => {
      await ctx.sleep(1000);
      const values = await ctx.deterministic(() => library(() => ctx.sleep(500)));
      drawn.push(values);
      return ctx.run("keep", values, () => "kept");
    });
    await using engine = await createTestEngine({ definitions: [calls], guard });
    const run = await engine.start(calls, undefined, { id: "one" });
    await engine.clock.advance(2000);
    expect(await run.result()).toBe("kept");
    const [first, second, third] = drawn[0] as [any, any, any];
    expect([first.elapsed, second.elapsed, third.elapsed]).toEqual([1000, 1000, 1500]);
    expect(third.now - first.now).toBe(500);
    expect([first.hrtime, first.nanoseconds, third.nanoseconds]).toEqual([[1, 0], "1000000000", "1500000000"]);
    expect(first.weak && first.int >= 5 && first.int < 9).toBe(true);
    expect(first.filled.slice(0, 4)).toBe("0000");
    expect(new Set([first.uuid, first.nodeUuid, second.uuid, third.uuid]).size).toBe(4);
    expect(await run.verify()).toMatchObject({ status: "same" });
    expect(drawn).toHaveLength(2);
    expect(drawn[1]).toEqual(drawn[0]);
    const other = await engine.start(calls, undefined, { id: "two" });
    await engine.clock.advance(2000);
    await other.result();
    expect((drawn[2] as any)[0].uuid).not.toBe(first.uuid);
  });

  test("refuses network and timers with evidence, also after an await and wrapped by the library", async () => {
    const refused: readonly (readonly [string, () => unknown])[] = [
      ["fetch()", () => fetch("http://127.0.0.1:9")],
      ["setTimeout()", () => setTimeout(() => {}, 1)],
      ["AbortSignal.timeout()", () => AbortSignal.timeout(1)],
    ];
    const calls = workflow("calls", async (ctx, at: number) => {
      await ctx.deterministic(async () => {
        await ctx.run("first", () => 1);
        try {
          await refused[at]![1]();
        } catch (error) {
          throw new Error("The library failed.", { cause: error });
        }
      });
    });
    await using engine = await createTestEngine({ definitions: [calls], guard });
    for (const [at, [called]] of refused.entries()) {
      const run = await engine.start(calls, at);
      const error = (await rejection(run.result())) as RepriseError;
      expect(error.code).toBe("RUN_BLOCKED");
      expect(error.message).toContain(`\`${called}\` is refused inside \`ctx.deterministic()\``);
      expect(error.details).toMatchObject({ code: "NONDETERMINISM", actual: called });
      expect(error.details?.["where"]).toMatch(/^test\/engine\/deterministic\.test\.ts:\d+$/);
    }
  });

  test("leaves steps, other runs and other code with the clock of the machine", async () => {
    const seen: number[] = [];
    const ports = { go: promise() };
    const open = workflow("open", { ports }, (ctx) =>
      ctx.deterministic(async () => {
        const before = Date.now();
        const inside = await ctx.run("step", async () => {
          await Promise.resolve();
          return [Date.now(), setTimeout(() => {}, 0) !== undefined, crypto.randomUUID()] as const;
        });
        await ctx.promise("go");
        return [before, inside[0]];
      }),
    );
    const other = workflow("other", async () => void seen.push(Date.now()));
    await using engine = await createTestEngine({ definitions: [open, other], guard });
    // Virtual time: the clock of the run is far from that of the machine.
    await engine.clock.advance("300 days");
    const run = await engine.start(open);
    await engine.clock.advance(1);
    const real = Date.now();
    const outcome = await (await engine.start(other)).result().then(
      () => "ended",
      (error: RepriseError) => error.code,
    );
    expect(outcome).toBe(guard === "error" ? "RUN_BLOCKED" : "ended");
    for (const at of seen) expect(Math.abs(at - real)).toBeLessThan(60_000);
    await run.resolve("go");
    const [before, inside] = (await run.result()) as [number, number];
    expect(Math.abs(inside - real)).toBeLessThan(60_000);
    expect(Math.abs(before - real)).toBeGreaterThan(86_400_000);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });
});

test("concurrent and nested deterministic calls draw independently, and the same on replay", async () => {
  const drawn: string[][] = [];
  const calls = workflow("calls", async (ctx) => {
    const waits = [30, 10, 20];
    const ids = await Promise.all(
      waits.map((ms, at) =>
        ctx.deterministic(async () => {
          const before = crypto.randomUUID();
          await ctx.sleep(ms);
          const inner = await ctx.deterministic(async () => crypto.randomUUID());
          return [`${at}`, before, inner, crypto.randomUUID(), String(Math.random())];
        }),
      ),
    );
    drawn.push(ids.flat());
    return ctx.run("keep", [ids, ctx.uuid()], () => "kept");
  });
  await using engine = await createTestEngine({ definitions: [calls] });
  const run = await engine.start(calls);
  await engine.clock.advance(100);
  await run.result();
  expect(new Set(drawn[0]).size).toBe(15);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(drawn[1]).toEqual(drawn[0]);
});

test("a call of ctx.deterministic does not change what ctx.random and ctx.uuid return", async () => {
  const plain = workflow("draws", async (ctx, uses: boolean) => {
    if (uses) ctx.deterministic(() => Math.random() + Math.random());
    return [ctx.random(), ctx.uuid()];
  });
  const results: unknown[] = [];
  for (const uses of [false, true]) {
    await using engine = await createTestEngine({ definitions: [plain] });
    results.push(await (await engine.start(plain, uses, { id: "run-1" })).result());
  }
  expect(results[1]).toEqual(results[0]);
});

test("nodes of a graph call library code that is the same in a replay, and no network", async () => {
  const chat = graph("chat", { state: { ids: append<string>() } })
    .node("each", async (ctx, _state, item: number) => {
      const id = await ctx.deterministic(async () => {
        const first = `${Date.now()} ${crypto.randomUUID()}`;
        const step = await ctx.run("step", first, () => Date.now());
        return `${first} ${step > 0} ${Math.random()}`;
      });
      return { ids: [`${item} ${id}`] };
    })
    .spread(START, "each", () => [1, 2, 3]);
  const calls = graph("calls", { state: { ids: append<string>() } })
    .node("one", async (ctx) => ctx.deterministic(async () => void (await fetch("http://127.0.0.1:9"))))
    .edge(START, "one");
  await using engine = await createTestEngine({ definitions: [chat, calls] });
  const run = await engine.start(chat, {});
  const { ids } = await run.result();
  expect(new Set(ids.map((id) => id.split(" ")[2])).size).toBe(3);
  expect(await run.verify()).toMatchObject({ status: "same" });
  const error = (await rejection((await engine.start(calls, {})).result())) as RepriseError;
  expect(`${error.code} ${error.message}`).toMatch(/fetch\(\)` is refused inside `ctx\.deterministic\(\)`/);
});

test("an engine without a guard restores the functions when it closes", async () => {
  const { now, parse } = Date;
  const calls = workflow("calls", async (ctx) => [ctx.deterministic(() => Date.now()), ctx.now().getTime()]);
  {
    await using engine = await createTestEngine({ definitions: [calls], guard: "off" });
    expect(Date.now).toBe(now);
    const [inLibrary, inRun] = await (await engine.start(calls)).result();
    expect(inLibrary).toBe(inRun);
  }
  expect(Date.now).toBe(now);
  expect(Date.parse).toBe(parse);
});

test("ctx.deterministic inside a step is refused, and so is something other than a function", async () => {
  const inside = workflow("inside", (ctx) => ctx.run("step", () => ctx.deterministic(() => 1)));
  const other = workflow("other", async (ctx) => ctx.deterministic(5 as never));
  await using engine = await createTestEngine({ definitions: [inside, other] });
  expect(await rejection((await engine.start(inside)).result())).toMatchObject({
    cause: { code: "USAGE", message: expect.stringContaining("Call the library directly") as string },
  });
  expect(await rejection((await engine.start(other)).result())).toMatchObject({ cause: { code: "BAD_OPTIONS" } });
});
