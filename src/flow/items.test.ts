import { expect, test } from "vitest";
import { typed } from "../kernel/index.ts";
import { flow, flowBody } from "./definition.ts";
import {
  findRef,
  inputTargets,
  parseItemName,
  portionItemName,
  rederiveItemName,
  requireRef,
  spreadItemName,
} from "./items.ts";

const body = flowBody(
  flow("shop", { input: typed<readonly number[]>(), version: 3 })
    .action("rate", ["input"], () => 2)
    .spread(
      "taxed",
      ["input"],
      ({ input }) => input,
      (_ctx, price) => price,
    )
    .when(
      "large",
      ["taxed"],
      () => true,
      (branch) => branch.action("asked", ["taxed", "rate"], () => 1),
    )
    .output(["asked"], ({ asked }) => asked),
);

test.each([
  ["taxed", { node: "taxed", kind: "node" }],
  ["both.left", { node: "both.left", kind: "node" }],
  ["taxed[]", { node: "taxed", kind: "spread" }],
  [spreadItemName("taxed", 17), { node: "taxed", kind: "item", index: 17 }],
  [portionItemName("taxed"), { node: "taxed", kind: "portion" }],
  [rederiveItemName("rate"), { node: "rate", kind: "rederive" }],
  ["large?", { node: "large?", kind: "when" }],
] as const)("the name %s says which node it is and what of it", (name, parsed) => {
  expect(parseItemName(name)).toEqual({ index: undefined, ...parsed });
});

test("a name is an item's only with a whole number in brackets at its end", () => {
  for (const name of ["taxed[x]", "taxed[1", "taxed[1]x", "taxed[-1]", "taxed[1.5]"])
    expect(parseItemName(name)).toEqual({ node: name, kind: "node", index: undefined });
});

test("an item and a portion refer to their spread, a derived node to its head, and the barrier to itself", () => {
  const head = (item: string) => findRef(body, item)?.head.region.head.id;
  expect(["taxed[0]", "taxed[more]", "taxed[]", "taxed", "rate[again]", "rate"].map(head)).toEqual([
    "taxed[]",
    "taxed[]",
    "taxed[]",
    "taxed",
    "rate",
    "rate",
  ]);
  expect(findRef(body, "taxed[12]")).toMatchObject({ index: 12, rederives: false, isPortion: false });
  expect(findRef(body, "taxed[more]")).toMatchObject({ index: undefined, rederives: false, isPortion: true });
  expect(findRef(body, "rate[again]")).toMatchObject({ index: undefined, rederives: true, isPortion: false });
});

test("a name that the flow does not have is found in no region, and the error names flow, version and node", () => {
  for (const gone of ["old", "old[3]", "rate[3]", "large?", "rate[more]"]) expect(findRef(body, gone)).toBeUndefined();
  expect(() => requireRef(body, "old[3]")).toThrow(/Flow shop version 3 has no node old\[3\]/);
});

test("a node reads its own arrivals, and the lists of the spreads that it needs", () => {
  expect(inputTargets(body, requireRef(body, "asked"))).toEqual(["asked", "taxed"]);
  expect(inputTargets(body, requireRef(body, "rate"))).toEqual(["rate"]);
});
