// Runtimes: the processes that started and moved a run, in its row.

import { expect, test } from "vitest";
import { createClient, createEngine, flow, graph, last, promise, START, typed, workflow, type Runtime } from "reprise";
import { aroundWrites, createFolder, type AnyWrite } from "./world.ts";
import { sqlite } from "reprise/sqlite";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

const order = workflow("order", { ports: { go: promise<number>() } }, async (ctx) => {
  const first = await ctx.run("one", () => 1);
  return first + (await ctx.promise("go")) + (await ctx.run("two", () => 2));
});
const review = graph("review", { state: { sum: last(0) }, ports: { go: promise<number>() } })
  .node("ask", async (ctx) => ({ sum: await ctx.promise("go") }))
  .edge(START, "ask");
const prices = flow("prices", { input: typed<number>() })
  .call("answer", [], order, () => undefined)
  .action("more", ["answer", "input"], async (_ctx, { answer, input }) => answer + input)
  .output(["more"], ({ more }) => more);

const codesOf = (runtimes: readonly Runtime[] | undefined): unknown => runtimes?.map(({ code }) => code);

function engineOf(store: string, code: string) {
  return createEngine({ store, definitions: [order, review, prices], code, logger: SILENT });
}

test("a run records every process that moved it, in order: processor, versions, engine and code", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.path}/runs.db`;
  {
    await using client = await createClient({ store, definitions: [order], code: "starter", logger: SILENT });
    await client.start(order, undefined, { id: "o" });
  }
  {
    await using first = await engineOf(store, "first");
    await expect.poll(async () => (await first.get(order, "o").info()).status).toBe("waiting");
  }
  await using second = await engineOf(store, "second");
  await second.get(order, "o").resolve("go", 4);
  expect(await second.get(order, "o").result()).toBe(7);
  const { runtimes } = await second.get(order, "o").info();
  expect(codesOf(runtimes)).toEqual(["starter", "first", "second"]);
  const { node, v8, icu, tz } = process.versions;
  const engine = expect.stringMatching(/^reprise\/\d+\.\d+\.\d+/) as unknown;
  expect(runtimes?.[2]).toEqual({ arch: process.arch, code: "second", engine, icu, node, tz, v8 });
});

test("a graph and a flow record the processes of their nodes, and a child those that moved the child", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.path}/runs.db`;
  {
    await using first = await engineOf(store, "first");
    await first.start(review, {}, { id: "g" });
    const flowRun = await first.start(prices, 1, { id: "f" });
    await expect.poll(async () => (await first.get(review, "g").info()).status).toBe("waiting");
    await expect.poll(async () => (await flowRun.info()).children).toBe(1);
    await expect.poll(async () => (await first.get(order, "f/answer").info()).status).toBe("waiting");
  }
  await using second = await engineOf(store, "second");
  await second.get(review, "g").resolve("go", 4);
  await second.get(order, "f/answer").resolve("go", 4);
  expect(await second.get(review, "g").result()).toEqual({ sum: 4 });
  expect(await second.get(prices, "f").result()).toBe(8);
  for (const [definition, id] of [
    [review, "g"],
    [prices, "f"],
    [order, "f/answer"],
  ] as const)
    expect(codesOf((await second.get(definition, id).info()).runtimes)).toEqual(["first", "second"]);
});

test("only the first commit of a process that the row lacks names it", async () => {
  using folder = createFolder();
  const url = `${folder.path}/runs.db`;
  {
    await using client = await createClient({ store: sqlite(url), definitions: [order], logger: SILENT });
    await client.start(order, undefined, { id: "o" });
  }
  const named: (string | undefined)[] = [];
  const store = aroundWrites(sqlite(url), (writes, apply) => {
    for (const write of writes as readonly AnyWrite[]) if (write.write === "turn") named.push(write.runtime);
    return apply();
  });
  await using engine = await createEngine({ store, definitions: [order], code: "worker", logger: SILENT });
  const run = engine.get(order, "o");
  await expect.poll(async () => (await run.info()).status).toBe("waiting");
  await run.resolve("go", 1);
  await run.result();
  const own = await engine.start(order, undefined, { id: "own" });
  await own.resolve("go", 1);
  await own.result();
  expect(named.length).toBeGreaterThan(2);
  expect(named.filter((runtime) => runtime !== undefined)).toHaveLength(1);
  expect(named[0]).toContain('"code":"worker"');
});

test.each([[""], ["two words"], ["x".repeat(201)], ["zwölf"], [7]])("code %j is refused", async (code) => {
  await expect(
    createEngine({ store: "sqlite::memory:", definitions: [order], code: code as string }),
  ).rejects.toMatchObject({ code: "BAD_OPTIONS", message: expect.stringContaining("createEngine: code: expected") });
});
