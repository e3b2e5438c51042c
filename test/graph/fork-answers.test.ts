// Forks of graphs with other answers: what a node returned, and what its code got; recorded effects.

import { expect, test } from "vitest";
import { append, END, graph, last, START } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";

const calls: string[] = [];
const agent = graph("agent", { state: { draft: last(""), log: append<string>(), rounds: last(0) } })
  .node("ask", async (ctx, { rounds }) => {
    const draft = await ctx.run("model", { rounds }, () => {
      calls.push(`model ${rounds}`);
      return `draft ${rounds}`;
    });
    return { draft, rounds: rounds + 1, log: [draft] };
  })
  .node("send", { effects: { recordable: false } }, async (_, { draft }) => {
    calls.push(`send ${draft}`);
    return { log: [`sent ${draft}`] };
  })
  .edge(START, "ask")
  .edge("ask", "send", ({ rounds }) => rounds >= 2)
  .edge("ask", "ask", ({ rounds }) => rounds < 2)
  .edge("send", END);

test("a fork of a graph changes what a call inside a node got", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, {}, { id: "a" });
  await run.result();
  expect(calls).toEqual(["model 0", "model 1", "send draft 1"]);
  calls.length = 0;
  const fork = await run.fork({ answers: { "Node(2.0)/Operation(0)": "shorter" }, id: "b" });
  expect(await fork.result()).toMatchObject({ draft: "shorter", log: ["draft 0", "shorter", "sent shorter"] });
  expect(calls).toEqual(["send shorter"]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
});

test("a fork of a graph changes what a node returned, and its code does not run", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, {}, { id: "a" });
  await run.result();
  calls.length = 0;
  const fork = await run.fork({ step: 0, answers: { "Node(1.0)": { draft: "other", rounds: 2 } }, id: "b" });
  expect(await fork.result()).toMatchObject({ draft: "other", log: ["sent other"] });
  expect(calls).toEqual(["send other"]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
});

test("a fork of a graph with recorded effects calls nothing and sends nothing", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, {}, { id: "a" });
  const was = await run.result();
  calls.length = 0;
  const same = await run.fork({ step: 0, effects: "recorded" });
  expect(await same.result()).toEqual(was);
  const other = await run.fork({ step: 0, patch: { rounds: 7 }, effects: "recorded" });
  expect(await rejection(other.result())).toMatchObject({
    code: "RUN_BLOCKED",
    message: expect.stringContaining("requests Node(1.0)#0/Operation(0) (model), but the origin"),
  });
  expect(calls).toEqual([]);
  expect(await same.verify()).toMatchObject({ status: "same" });
});

test.each<[string, object, string, RegExp]>([
  ["a command outside of nodes", { answers: { "Task(0)": 1 } }, "BAD_OPTIONS", /expected commands of nodes/],
  ["a node that has not run", { answers: { "Node(9.0)": {} } }, "CHECKPOINT_NOT_FOUND", /step 8/],
  [
    "a call that was not made",
    { answers: { "Node(1.0)/Operation(4)": 1 } },
    "CHECKPOINT_NOT_FOUND",
    /has not requested/,
  ],
  ["an answer before the step", { step: 2, answers: { "Node(1.0)": {} } }, "BAD_OPTIONS", /answered before step 2/],
  ["an unknown channel", { answers: { "Node(1.0)": { nothing: 1 } } }, "BAD_INPUT", /cannot change nothing/],
  ["a channel of another shape", { answers: { "Node(1.0)": { log: "x" } } }, "BAD_INPUT", /channel log/],
  ["no changes", { answers: { "Node(1.0)": 7 } }, "BAD_INPUT", /changes of channels/],
  ["other effects", { step: 1, effects: "none" }, "BAD_OPTIONS", /"live" or "recorded"/],
  ["answers as a list", { step: 1, answers: [1] }, "BAD_OPTIONS", /values by command/],
])("%s is refused", async (_, options, code, message) => {
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, {}, { id: "a" });
  await run.result();
  const refused = await rejection(run.fork(options as { step: number }));
  expect(refused).toMatchObject({ code, message: expect.stringMatching(message) });
});
