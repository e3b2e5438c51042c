// Where a fork begins: the input, a call by its name, a node; and which recorded answer a moved call gets.

import { expect, test } from "vitest";
import { append, END, flow, graph, last, START, task, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection, until } from "./world.ts";

let calls: string[] = [];
let isChanged = false;
const visit = task("visit", (_, what: string) => (calls.push(`visit ${what}`), `saw ${what}`));
const trip = workflow("trip", async (ctx, to: string) => {
  // Another version of the code greets first and asks in another order.
  if (isChanged) await ctx.run("greet", () => "hi", { live: true });
  const order = isChanged ? ["train", "hotel"] : ["hotel", "train"];
  const found: string[] = [];
  for (const what of order) {
    found.push(await ctx.run("search", { what, to }, () => (calls.push(`search ${what}`), `${what} in ${to}`)));
    found.push(await ctx.task(visit, what));
  }
  for (let n = 0; n < 3; n += 1) found.push(await ctx.run("poll", () => (calls.push("poll"), `poll ${calls.length}`)));
  ctx.send("mail", to);
  return found.toSorted();
});

test("a fork from the input runs changed code against the answers of its origin, wherever it asks for them", async () => {
  [calls, isChanged] = [[], false];
  const sent: unknown[] = [];
  await using engine = await createTestEngine({
    definitions: [trip, visit],
    outbox: { mail: (payload) => void sent.push(payload) },
  });
  const run = await engine.start(trip, "Rome", { id: "trip-1" });
  const was = await run.result();
  await until(() => sent.length === 1);
  calls = [];
  isChanged = true;
  const fork = await run.fork({ at: "input", effects: "recorded", id: "trip-2" });
  // The first poll has moved by one call: it gets the answer with its number, then the ones that are left.
  expect((await fork.result()).toSorted()).toEqual(was.toSorted());
  await engine.drain();
  expect([calls, sent]).toEqual([[], ["Rome"]]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
  expect((await run.diff(fork)).firstDivergence).toBeDefined();
  const unshared = await Array.fromAsync(fork.journal());
  expect(unshared.filter(({ run: by }) => by === "trip-1").map(({ type }) => type)).toEqual(["RunStarted"]);
  isChanged = false;
});

test("a workflow is forked before a call by its name and number", async () => {
  [calls, isChanged] = [[], false];
  await using engine = await createTestEngine({ definitions: [trip, visit], outbox: { mail: () => {} } });
  const run = await engine.start(trip, "Rome");
  await run.result();
  calls = [];
  await (await run.fork({ call: { name: "search", nth: 2 } })).result();
  expect(calls).toEqual(["search train", "visit train", "poll", "poll", "poll"]);
  calls = [];
  await (await run.fork({ call: { name: "visit", nth: 2 }, effects: "recorded" })).result();
  expect(calls).toEqual([]);
  expect(await rejection(run.fork({ call: { name: "poll", nth: 4 } }))).toMatchObject({
    code: "CHECKPOINT_NOT_FOUND",
    message: expect.stringContaining("3 calls of poll, so there is no call 4"),
  });
  for (const call of [{ name: "poll", nth: 0 }, { name: "" }, "poll", { nth: 1 }, { name: "poll", number: 1 }])
    expect(String((await rejection(run.fork({ call: call as never }))).code)).toMatch(/^BAD_(OPTIONS|NAME)$/);
  expect(await rejection(run.fork({ at: "Task(0)", call: { name: "poll" } }))).toMatchObject({ code: "BAD_OPTIONS" });
});

const agent = graph("agent", { state: { log: append<string>(), rounds: last(0) } })
  .node("think", async (ctx, { rounds }) => ({
    rounds: rounds + 1,
    log: [await ctx.run("model", { rounds }, () => (calls.push(`model ${rounds}`), `thought ${rounds}`))],
  }))
  .node("act", async (ctx, { rounds }) => {
    calls.push(`act ${rounds}`);
    return { log: [await ctx.run("tool", { rounds }, () => `did ${rounds}`)] };
  })
  .edge(START, "think")
  .edge("think", "act")
  .edge("act", "think", ({ rounds }) => rounds < 2)
  .edge("act", END);

test("a graph is forked before a node or before a call in one", async () => {
  calls = [];
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, {}, { id: "a" });
  await run.result();
  expect(calls).toEqual(["model 0", "act 1", "model 1", "act 2"]);
  calls = [];
  const fork = await run.fork({ node: "act", id: "b" });
  await fork.result();
  expect(calls).toEqual(["act 1", "model 1", "act 2"]);
  calls = [];
  // The first call is in a step that the fork shares with its origin.
  await (await fork.fork({ call: { name: "model", nth: 2 } })).result();
  expect(calls).toEqual(["model 1", "act 2"]);
  expect(await rejection(run.fork({ node: "sleep" }))).toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
  expect(await rejection(run.fork({ node: "act", step: 1 } as never))).toMatchObject({ code: "BAD_OPTIONS" });
});

test("a flow is forked from its input with changed code", async () => {
  calls = [];
  const quote = (factor: number) =>
    flow("quote", { input: typed<number>() })
      .action("price", ["input"], (_ctx, { input }) => (calls.push("price"), input * 10))
      .inline("net", ["price"], ({ price }) => price * factor)
      .output(["net"], ({ net }) => net);
  await using engine = await createTestEngine({ definitions: [quote(1)] });
  const run = await engine.start("quote", 5, { id: "q" });
  expect(await run.result()).toBe(50);
  const fork = await run.fork({ at: "input", effects: "recorded", id: "f" });
  expect(await fork.result()).toBe(50);
  expect(calls).toEqual(["price"]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
  expect((await run.fork({ at: "input", effects: "recorded", id: "f" })).id).toBe("f");
  expect(await (await run.fork({ at: "input" })).result()).toBe(50);
  expect(calls).toEqual(["price", "price"]);
  expect(await (await run.fork({ at: "input", answers: { price: 7 }, effects: "recorded" })).result()).toBe(7);
  expect(await rejection(run.fork({ call: { name: "price" } } as never))).toMatchObject({ code: "BAD_OPTIONS" });
});
