// Messages from a parent to its children: with the parent's commit, once each.

import { signal, workflow, type Run } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createGate, rejection } from "./world.ts";

const sum = workflow("sum", { ports: { add: signal<number>(), done: signal() } }, async (ctx) => {
  let total = 0;
  for (;;) {
    const message = await ctx.receive(["add", "done"]);
    if (message.name === "done") return total;
    total += message.value;
  }
});

const parent = workflow("parent", { ports: { go: signal<number>() } }, async (ctx) => {
  const one = ctx.child(sum);
  const two = ctx.child(sum, undefined, { id: "two" });
  await one.signal("add", 1);
  const n = await ctx.receive("go");
  await Promise.all([one.signal("add", n), two.signal("add", n)]);
  await ctx.run("between", () => 1);
  await one.signal("add", await ctx.run("draw", () => 100));
  await one.signal("done");
  await two.signal("done");
  return [await one, await two];
});

test("a parent's signals reach its children once, wherever it is killed", async () => {
  const { output, crashes } = await crashEverywhere(parent, undefined, {
    definitions: [sum],
    drive: async (engine, id) => (engine.get(parent, id) as Run<typeof parent>).signal("go", 10, { dedupId: "1" }),
  });
  expect(output).toEqual([111, 10]);
  expect(crashes).toBeGreaterThan(15);
});

test("a replay of the parent sends nothing again, and verifies", async () => {
  await using engine = await createTestEngine({ definitions: [parent, sum] });
  const run = await engine.start(parent);
  await engine.clock.advance(0);
  await engine.crash();
  await run.signal("go", 5);
  expect(await run.result()).toEqual([106, 5]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types.filter((type) => type === "ChildSignalled")).toHaveLength(6);
});

test("a child that is busy here hears its parent's signal and its cancel at once", async () => {
  const gate = createGate<number>();
  const busy = workflow("busy", { ports: { word: signal<string>() } }, async (ctx) => {
    const held = ctx.run("hold", () => gate.wait());
    const word = await ctx.receive("word");
    gate.open(1);
    await held;
    await ctx.receive("word");
    return word;
  });
  const boss = workflow("boss", { ports: { say: signal<string>() } }, async (ctx) => {
    const child = ctx.child(busy);
    await child.signal("word", await ctx.receive("say"));
    await ctx.sleep("1 minute");
    await child.cancel();
    return child.then(
      () => "ended",
      (error: Error) => error.message,
    );
  });
  await using engine = await createTestEngine({ definitions: [boss, busy] });
  const run = await engine.start(boss);
  await gate.reached;
  await run.signal("say", "hi");
  await engine.clock.advance("1 minute");
  expect(await run.result()).toMatch(/cancelled/);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a signal the child does not take, a detached child, a call inside a step: refused", async () => {
  const wrong = workflow("wrong", async (ctx) => {
    const child = ctx.child(sum);
    const signalChild = child.signal as (name: string, value?: unknown) => Promise<void>;
    const lost = ctx.child(sum, undefined, { detached: true, id: "lost" });
    const codes: unknown[] = [];
    for (const call of [
      () => signalChild("subtract", 1),
      () => signalChild("add", () => 1),
      () => lost.signal("done"),
      () => lost.cancel(),
      () => ctx.run("step", () => child.signal("done")),
    ])
      codes.push((await rejection(call())).code);
    await child.signal("done");
    return { codes, total: await child };
  });
  await using engine = await createTestEngine({ definitions: [wrong, sum] });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual({
    codes: ["UNKNOWN_PORT", "NOT_DATA", "USAGE", "USAGE", "USAGE"],
    total: 0,
  });
  await engine.get(sum, "lost").cancel();
});

test("code that speaks otherwise to its child is found by verify", async () => {
  const make = (value: number) =>
    workflow("teller", async (ctx) => {
      const child = ctx.child(sum);
      await child.signal("add", value);
      await child.signal("done");
      return child;
    });
  const [one, two] = [make(1), make(2)];
  let definition = one;
  const teller = workflow("teller", (ctx) => bodyOf(definition)(ctx));
  await using engine = await createTestEngine({ definitions: [teller, sum] });
  const run = await engine.start(teller);
  expect(await run.result()).toBe(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
  definition = two;
  expect(await run.verify()).toMatchObject({ status: "mismatch", where: "ChildWorkflow(0)" });
});

/** The function of a workflow, to be called by another one: code that changes under a run. */
function bodyOf(definition: object): (ctx: unknown) => Promise<number> {
  const [body] = Object.getOwnPropertySymbols(definition).map((key) => (definition as Record<symbol, unknown>)[key]);
  return (body as { run: (ctx: unknown) => Promise<number> }).run;
}
