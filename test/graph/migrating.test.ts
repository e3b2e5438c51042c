// Migrating: a live run of a graph continues with another version of the graph.

import { expect, test } from "vitest";
import { append, END, graph, promise, START, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, rejection } from "../engine/world.ts";

const ports = { go: promise() };

const define = (version: number, change: { draft?: string; wait?: string } = {}) =>
  graph("agent", { state: { seen: append<string>() }, ports, version })
    .node("draft", async (ctx) => ({ seen: [await ctx.run("write", () => change.draft ?? "draft")] }))
    .node((change.wait ?? "wait") as "wait", async (ctx) => {
      await ctx.promise("go");
      return { seen: [`waited in version ${version}`] };
    })
    .node("end", async () => ({ seen: [`ended in version ${version}`] }))
    .edge(START, "draft")
    .edge("draft", (change.wait ?? "wait") as "wait")
    .edge((change.wait ?? "wait") as "wait", "end")
    .edge("end", END);

test("a graph continues with the nodes of the other version from its last step", async () => {
  const [one, two] = [define(1), define(2)];
  await using engine = await createTestEngine({ definitions: [one, two] });
  const run = await engine.start(one, {}, { id: "a" });
  await engine.clock.advance(0);
  await run.migrate({ version: 2 });
  await run.resolve("go");
  expect(await run.result()).toEqual({ seen: ["draft", "waited in version 2", "ended in version 2"] });
  expect(await run.info()).toMatchObject({ version: 2 });
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect((await collect(run.journal())).map(({ type }) => type)).toContain("RunMigrated");
  expect((await collect(run.checkpoints())).map(({ step }) => step)).toEqual([0, 1, 2, 3]);
  // A fork continues with the version of the run.
  const fork = await run.fork({ step: 2 });
  expect(await fork.result()).toEqual({ seen: ["draft", "waited in version 2", "ended in version 2"] });
});

test("a graph whose steps do not fit, or that lacks the node the run continues with, is refused", async () => {
  const [one, two, three] = [define(1), define(2, { wait: "renamed" }), define(3)];
  const four = graph("agent", { state: { seen: append<string>() }, ports, version: 4 })
    .node("draft", async (ctx) => ({ seen: [await ctx.run("compose", () => "draft")] }))
    .node("wait", async (ctx) => ctx.promise("go"))
    .edge(START, "draft")
    .edge("draft", "wait")
    .edge("wait", END);
  await using engine = await createTestEngine({ definitions: [one, two, three, four] });
  const run = await engine.start(one, {}, { id: "a" });
  await engine.clock.advance(0);
  const { digest } = await run.info();
  const missing = (await rejection(run.migrate({ version: 2 }))) as RepriseError;
  expect([missing.code, missing.details]).toMatchObject(["MIGRATION_REFUSED", { run: "a", from: 1, to: 2 }]);
  expect(missing.details).toMatchObject({ where: "step 1" });
  expect(await rejection(run.migrate({ version: 4 }))).toMatchObject({
    code: "MIGRATION_REFUSED",
    details: { where: expect.stringContaining("Node(1.0)") as string },
  });
  expect(await run.info()).toMatchObject({ version: 1, digest });
  await run.migrate({ version: 3 });
  await run.resolve("go");
  expect(await run.result()).toMatchObject({ seen: ["draft", "waited in version 3", "ended in version 3"] });
});
