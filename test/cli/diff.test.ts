// reprise diff of workflows and flows.

import { expect, test } from "vitest";
import { flow, task, typed, workflow } from "reprise";
import { fileURLToPath } from "node:url";
import { double, shop, sub } from "./flows.ts";
import { jsonLines } from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const price = task("price", (_ctx, item: string) => item.length);
const order = workflow("order", async (ctx, item: string) => {
  const cents = await ctx.task(price, item);
  if (cents > 4) await ctx.run("discount", () => "10 %");
  return { cents, password: "secret" };
});
const quote = flow("quote", { input: typed<number>() })
  .action("net", ["input"], (_ctx, { input }) => input * 2)
  .output(["net"], ({ net }) => net);

test("diff compares workflows by command and flows by node, without their code", async () => {
  using store = await new StoreWithRuns([order, price, quote]).start(
    { id: "a", what: order, input: "book", until: "completed" },
    { id: "b", what: order, input: "paper", until: "completed" },
    { id: "q-1", what: quote, input: 1, until: "completed" },
    { id: "q-2", what: quote, input: 2, until: "completed" },
  );
  const same = await store.cli("diff", "a", "a");
  expect([same.code, same.stdout]).toEqual([0, "same a and a: all commands are equal\n"]);
  const differ = await store.cli("diff", "a", "b");
  expect(differ.code).toBe(1);
  expect(differ.stdout).toMatch(/^differ from input\n {2}- a\n {2}\+ b$/m);
  expect(differ.stdout).toMatch(/^Task\(0\)\n {2}- input: 'book'\n {2}\+ input: 'paper'\n {2}- completed: 4\n/m);
  expect(differ.stdout).toMatch(/^Operation\(0\) {2}only in b\n {2}\+ name: 'discount'\n {2}\+ completed: '10 %'$/m);
  const [json] = jsonLines((await store.cli("diff", "a", "b", "--limit", "2", "--json")).stdout);
  expect(json).toMatchObject({
    same: false,
    firstDivergence: "input",
    more: true,
    commands: [{ command: "input", in: "both", input: { here: "book", there: "paper" } }, { command: "Task(0)" }],
  });
  const nodes = await store.cli("diff", "q-1", "q-2");
  expect(nodes.stdout).toMatch(/^net\n {2}- completed: 2\n {2}\+ completed: 4$/m);
  expect(jsonLines((await store.cli("diff", "q-1", "q-1", "--json")).stdout)).toEqual([
    { same: true, firstDivergence: null, more: false, nodes: [] },
  ]);
  const strangers = await store.cli("diff", "a", "q-1");
  expect([strangers.code, strangers.stderr]).toMatchObject([
    2,
    expect.stringContaining("Only runs of the same definition"),
  ]);
});

test("fork of a flow needs its code, and takes a node and answers", async () => {
  using store = await new StoreWithRuns([shop, double, sub]).start({
    id: "s-1",
    what: shop,
    input: { prices: [1, 2] },
    until: "waiting",
  });
  const file = fileURLToPath(new URL("flows.ts", import.meta.url));
  const without = await store.cli("fork", "s-1", "--at", "rate");
  expect([without.code, without.stderr]).toMatchObject([2, expect.stringContaining("fork of a flow needs --file")]);
  const made = await store.cli("fork", "s-1", "--answer", "doubled=12", "--file", file, "--id", "s-2", "--json");
  expect([made.code, jsonLines(made.stdout)[0]]).toMatchObject([
    0,
    { action: "fork", id: "s-2", answers: ["doubled"] },
  ]);
  expect((await store.cli("diff", "s-1", "s-2")).code).toBe(1);
  const unknown = await store.cli("fork", "s-1", "--at", "nothing", "--file", file);
  expect([unknown.code, unknown.stderr]).toMatchObject([2, expect.stringContaining("those are: ")]);
});
