// Diffs: how two runs of a flow differ, node by node.

import { expect, test } from "vitest";
import { createClient, flow, typed } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder } from "../engine/world.ts";

let rate = 1;
const quote = flow("quote", { input: typed<readonly number[]>() })
  .action("rate", [], () => rate)
  .spread(
    "priced",
    ["input", "rate"],
    ({ input }) => input,
    (_ctx, cents) => cents * 2,
  )
  .inline("sum", ["priced"], ({ priced }) => priced.reduce((a, b) => a + b, 0))
  .when(
    "large",
    ["sum"],
    ({ sum }) => sum > 100,
    (then) => then.action("approve", ["sum"], () => "approved"),
  )
  .action("total", ["sum", "rate"], (_ctx, { sum, rate: by }) => sum * by)
  .output(["total", "approve"], ({ total, approve }) => ({ total, approve }));

test("nodes are compared in topological order, with items, skips and the output", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  await using engine = await createTestEngine({ definitions: [quote], store });
  const start = async (input: readonly number[], by: number, id: string) => {
    rate = by;
    const run = await engine.start(quote, input, { id });
    await run.result();
    return run;
  };
  const [a, b, c] = [await start([1, 2], 1, "a"), await start([1, 2], 1, "b"), await start([1, 60], 3, "c")];
  expect(await a.diff(b)).toEqual({ firstDivergence: undefined, nodes: [], more: false });
  const diff = await a.diff(c);
  expect(diff.nodes.map(({ node, in: where }) => `${node} ${where}`)).toEqual([
    "input both",
    "rate both",
    "priced[1] both",
    "sum both",
    "approve both",
    "total both",
    "output both",
  ]);
  expect(diff.nodes.find(({ node }) => node === "approve")?.answer).toEqual({
    here: { status: "skipped" },
    there: { status: "completed", value: "approved" },
  });
  expect(await a.diff(c, { limit: 2 })).toMatchObject({ firstDivergence: "input", nodes: [{}, {}], more: true });
  // Without the code, in the order in which they ended.
  const other = flow("quote", { input: typed<readonly number[]>(), version: 9 })
    .action("x", ["input"], () => 1)
    .output(["x"], ({ x }) => x);
  await using client = await createClient({ store, definitions: [other] });
  const without = await client.get("quote", "a").diff(client.get("quote", "c"));
  expect(without.nodes.map(({ node }) => node).toSorted()).toEqual(diff.nodes.map(({ node }) => node).toSorted());
  expect(without.nodes.at(-1)?.node).toBe("output");
});
