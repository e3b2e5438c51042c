// Forks: a run of a flow that derives one node, and what follows from it, again.

import { expect, test } from "vitest";
import { createClient, flow, task, typed, workflow, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection } from "../engine/world.ts";

let ran: string[] = [];
let rate = 1;
const child = workflow("child", async (ctx, n: number) => ctx.run("call", () => (ran.push("call"), n + 100)));
const note = task("note", (_ctx, text: string) => (ran.push(`note ${text}`), `noted ${text}`));

/** `price` → `net` → parts[…] → sum → output; `other` and `asked` do not follow from `price`. */
const quote = flow("quote", { input: typed<number>() })
  .action("price", ["input"], (_ctx, { input }) => (ran.push("price"), input * rate))
  .inline("net", ["price"], ({ price }) => price + 1)
  .action("other", ["input"], (_ctx, { input }) => (ran.push("other"), input))
  .call("asked", ["other"], child, ({ other }) => other)
  .spread(
    "parts",
    ["net"],
    ({ net }) => [net, net + 1, net + 2],
    (_ctx, part) => (ran.push(`part ${part}`), part * 10),
  )
  .inline("sum", ["parts", "other"], ({ parts, other }) => parts.reduce((a, b) => a + b, other))
  .call("noted", ["sum"], note, ({ sum }) => String(sum))
  .output(["sum", "asked", "noted"], ({ sum, asked, noted }) => ({ sum, asked, noted }));

const definitions = [quote, child, note];

async function startQuote(engine: Awaited<ReturnType<typeof createTestEngine>>, id = "q") {
  [ran, rate] = [[], 1];
  const run = (await engine.start(quote as never, 5 as never, { id })) as unknown as Awaited<
    ReturnType<typeof asQuote>
  >;
  expect(await run.result()).toEqual({ sum: 215, asked: 105, noted: "noted 215" });
  ran = [];
  return run;
}
const asQuote = async () => {
  const engine = await createTestEngine({ definitions });
  return engine.get(quote, "q");
};

test("the node and everything that follows from it are derived again; all else is kept", async () => {
  await using engine = await createTestEngine({ definitions });
  const run = await startQuote(engine as never);
  rate = 2;
  const fork = await run.fork({ at: "price", id: "f", tags: ["what-if"] });
  expect(await fork.result()).toEqual({ sum: 365, asked: 105, noted: "noted 365" });
  expect(ran.toSorted()).toEqual(["note 365", "part 11", "part 12", "part 13", "price"]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
  expect(await fork.info()).toMatchObject({ tags: ["what-if"], input: 5, definition: "quote" });
  expect((await run.diff(fork)).firstDivergence).toBe("price");
  // The same id with the same options is the same fork; with others it is refused.
  expect((await run.fork({ at: "price", id: "f" })).id).toBe("f");
  expect(await rejection(run.fork({ at: "other", id: "f" }))).toMatchObject({ code: "START_CONFLICT" });
  expect(await run.result()).toMatchObject({ sum: 215 });
});

test("a spread spreads its items again, or one of its items is executed again", async () => {
  await using engine = await createTestEngine({ definitions });
  const run = await startQuote(engine as never);
  const spread = await run.fork({ at: "parts" });
  expect(await spread.result()).toMatchObject({ sum: 215 });
  expect(ran.toSorted()).toEqual(["note 215", "part 6", "part 7", "part 8"]);
  ran = [];
  const item = await run.fork({ at: "parts[1]" });
  expect(await item.result()).toMatchObject({ sum: 215 });
  expect(ran.toSorted()).toEqual(["note 215", "part 7"]);
  const answered = await run.fork({ answers: { "parts[1]": 0, "parts[2]": 1 } });
  expect(await answered.result()).toMatchObject({ sum: 66 });
  for (const one of [spread, item, answered]) expect(await one.verify()).toMatchObject({ status: "same" });
});

test("answers replace recorded values; the fork begins at the first of them", async () => {
  await using engine = await createTestEngine({ definitions });
  const run = await startQuote(engine as never);
  const fork = await run.fork({ answers: { noted: "told", price: 9 } });
  expect(await fork.result()).toEqual({ sum: 335, asked: 105, noted: "told" });
  expect(ran.toSorted()).toEqual(["part 10", "part 11", "part 12"]);
  const [first] = await collect(fork.journal());
  expect(first?.data).toMatchObject({ forked: { run: "q", at: "price", answers: { noted: "told", price: 9 } } });
  ran = [];
  const both = await run.fork({ at: "other", answers: { asked: 1 } });
  expect(await both.result()).toEqual({ sum: 215, asked: 1, noted: "noted 215" });
  expect(ran).toEqual(["other", "note 215"]);
});

test("recorded effects execute nothing: nodes with the same values end as in the origin, others stop the fork", async () => {
  await using engine = await createTestEngine({ definitions });
  const run = await startQuote(engine as never);
  const same = await run.fork({ at: "price", effects: "recorded" });
  expect(await same.result()).toEqual({ sum: 215, asked: 105, noted: "noted 215" });
  const changed = await run.fork({ answers: { "parts[0]": 61 }, effects: "recorded", id: "c" });
  const error = (await rejection(changed.result())) as RepriseError;
  expect(error).toMatchObject({ code: "RUN_BLOCKED", details: { code: "EFFECT_NOT_RECORDED", status: "blocked" } });
  expect(error.message).toContain("noted");
  expect(await changed.info()).toMatchObject({ status: "blocked" });
  const answered = await run.fork({ answers: { "parts[0]": 61, noted: "told" }, effects: "recorded" });
  expect(await answered.result()).toEqual({ sum: 216, asked: 105, noted: "told" });
  expect(ran).toEqual([]);
});

test("a live run, a failed run and a fork can be forked; nodes that have not ended run in the fork", async () => {
  let isDown = true;
  const steps = flow("steps", { input: typed<number>() })
    .action("a", ["input"], (_ctx, { input }) => (ran.push("a"), input))
    .action("b", ["a"], (_ctx, { a }) => {
      ran.push("b");
      if (isDown) throw new Error("down");
      return a + 1;
    })
    .action("c", ["b"], (_ctx, { b }) => b + 1)
    .output(["c"], ({ c }) => c);
  await using engine = await createTestEngine({ definitions: [steps] });
  ran = [];
  const failed = await engine.start(steps, 1, { id: "s" });
  await rejection(failed.result());
  expect(await rejection(failed.fork({ at: "c" }))).toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
  isDown = false;
  const fork = await failed.fork({ at: "b" });
  expect(await fork.result()).toBe(3);
  expect(ran).toEqual(["a", "b", "b"]);
  const again = await fork.fork({ answers: { b: 10 } });
  expect(await again.result()).toBe(11);
  expect(ran).toEqual(["a", "b", "b"]);
});

test("what cannot be forked is refused, and nothing is written", async () => {
  await using engine = await createTestEngine({
    definitions: [
      ...definitions,
      flow("side", { input: typed<number>() })
        .action("mail", ["input"], () => 1)
        .action("b", ["input"], () => 2)
        .output(["b"], ({ b }) => b),
    ],
  });
  const run = await startQuote(engine as never);
  for (const [options, code] of [
    [{}, "BAD_OPTIONS"],
    [{ at: "net" }, "BAD_OPTIONS"],
    [{ at: "nothing" }, "BAD_OPTIONS"],
    [{ answers: { parts: [1] } }, "BAD_OPTIONS"],
    [{ at: "price", effects: "none" }, "BAD_OPTIONS"],
    [{ at: "price", version: 2 }, "BAD_OPTIONS"],
    [{ at: "price", step: 1 }, "BAD_OPTIONS"],
    [{ answers: { price: () => 1 } }, "NOT_DATA"],
    [{ at: "parts[9]" }, "CHECKPOINT_NOT_FOUND"],
  ] as const)
    expect(await rejection(run.fork(options as never)), JSON.stringify(options)).toMatchObject({ code });
  const side = await engine.start("side" as never, 1 as never);
  await side.result();
  expect(await rejection((side as never as typeof run).fork({ at: "mail" }))).toMatchObject({ code: "BAD_OPTIONS" });
  expect((await collect(engine.list())).filter(({ definition }) => definition !== "child")).toHaveLength(2);
});

test("a client forks a run, and a worker that has never seen it gives the answers", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  {
    await using engine = await createTestEngine({ definitions, store });
    await startQuote(engine as never);
    await using client = await createClient({ store, definitions });
    await client.get(quote, "q").fork({ answers: { price: 9 }, effects: "live", id: "f" });
  }
  await using engine = await createTestEngine({ definitions, store });
  expect(await engine.get(quote, "f").result()).toMatchObject({ sum: 335 });
  // The origin is kept as long as the fork exists.
  expect(await rejection(engine.get(quote, "q").delete())).toMatchObject({ code: "RUN_IN_USE" });
});
