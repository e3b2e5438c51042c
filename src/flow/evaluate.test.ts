import { expect, test } from "vitest";
import { encode } from "../base/index.ts";
import { typed } from "../kernel/index.ts";
import { flow, flowBody } from "./definition.ts";
import { evaluate, neededValues, SKIPPED, type Evaluation } from "./evaluate.ts";

const start = () => flow("f", { input: typed<number>() });
const keep = (_node: string, value: unknown): string => encode(value);

function evaluateFrom(definition: unknown, head: string, value: unknown): Evaluation {
  return evaluate(flowBody(definition).regions.get(head)!.region, value, keep);
}

/** The evaluation, which must not have thrown. */
function done(evaluation: Evaluation) {
  if (evaluation.status === "threw") throw evaluation.error;
  const { arrivals, kept, skipped, output } = evaluation;
  const skips = arrivals.filter(({ isSkip }) => isSkip).map(({ edge, target }) => `${edge} → ${target}`);
  const values = arrivals.filter(({ isSkip }) => !isSkip).map(({ edge, target }) => `${edge} → ${target}`);
  return { values, skips, kept: Object.fromEntries(kept), skipped, output };
}

test("the nodes of a region are derived in order, and the output ends it", () => {
  const made = start()
    .inline("a", ["input"], ({ input }) => input + 1)
    .inline("b", ["a", "input"], ({ a, input }) => a * input)
    .output(["b"], ({ b }) => b);
  expect(done(evaluateFrom(made, "input", 4))).toEqual({
    values: [],
    skips: [],
    kept: {},
    skipped: [],
    output: { value: 20 },
  });
  expect(evaluateFrom(made, "input", 4)).toEqual(evaluateFrom(made, "input", 4));
});

test("only the taken side of a branch is derived, and the other side gets skips", () => {
  const made = start()
    .when(
      "large",
      ["input"],
      ({ input }) => input > 10,
      (branch) => branch.inline("big", ["input"], () => "big").action("asked", ["input"], () => 1),
    )
    .otherwise("large", (branch) =>
      branch.inline("small", ["input"], () => "small").action("waved", ["input"], () => 2),
    )
    .output(["asked", "waved", "big", "small"], (given) => given);
  const high = done(evaluateFrom(made, "input", 11));
  expect(high.skipped).toEqual(["small"]);
  expect(high.kept).toEqual({ big: '"big"' });
  expect(high.skips).toEqual(expect.arrayContaining(["large? → waved", "small → [output]"]));
  expect(high.values).toEqual(expect.arrayContaining(["large? → asked", "input → asked", "big → [output]"]));
  expect(done(evaluateFrom(made, "input", 1)).skipped).toEqual(["big"]);
});

test("a node runs if one of its needs has a value, is skipped if none has, and the output always runs", () => {
  const nodes = flowBody(
    start()
      .action("a", ["input"], () => 1)
      .action("b", ["input"], () => 2)
      .inline("either", ["a", "b"], ({ a, b }) => [a, b])
      .output(["either"], ({ either }) => either),
  ).nodes;
  const given = (id: string, ...known: readonly [string, unknown][]) => neededValues(nodes.get(id)!, new Map(known));
  expect(given("either", ["a", SKIPPED], ["b", 2])).toEqual({ a: undefined, b: 2 });
  // undefined is a value.
  expect(given("either", ["a", undefined], ["b", SKIPPED])).toEqual({ a: undefined, b: undefined });
  expect(given("either", ["a", SKIPPED], ["b", SKIPPED])).toBe(SKIPPED);
  expect(given("[output]", ["either", SKIPPED])).toEqual({ either: undefined });
});

test("a guard on the other side skips a node whatever else it needs, and so does a skipped guard", () => {
  const nodes = flowBody(
    start()
      .when(
        "large",
        ["input"],
        () => true,
        (branch) => branch.inline("inside", ["input"], () => 1),
      )
      .output(["inside"], ({ inside }) => inside),
  ).nodes;
  const given = (side: unknown) =>
    neededValues(
      nodes.get("inside")!,
      new Map([
        ["input", 5],
        ["large?", side],
      ] as const),
    );
  expect([given(true), given(false), given(SKIPPED)]).toEqual([{ input: 5 }, SKIPPED, SKIPPED]);
});

test("a skipped head skips what is derived from it alone, and the skip travels on", () => {
  const made = start()
    .action("a", ["input"], () => 1)
    .inline("b", ["a"], ({ a }) => a)
    .action("c", ["b"], () => 2)
    .output(["c"], ({ c }) => c);
  expect(done(evaluateFrom(made, "a", SKIPPED))).toMatchObject({
    skipped: ["b"],
    skips: ["b → c"],
    values: [],
    kept: {},
  });
});

test("a function that throws ends the evaluation with its node, and later nodes do not run", () => {
  const seen: string[] = [];
  const made = start()
    .inline("a", ["input"], (): number => {
      throw new Error("broken");
    })
    .inline("b", ["input"], () => seen.push("b"))
    .output(["a", "b"], () => seen.push("output"));
  expect(evaluateFrom(made, "input", 1)).toMatchObject({ status: "threw", node: "a", error: { message: "broken" } });
  expect(seen).toEqual([]);
});

test("a function that returns a promise is refused by name", () => {
  const made = start()
    .inline("a", ["input"], () => Promise.resolve(1))
    .output(["a"], ({ a }) => a);
  expect(evaluateFrom(made, "input", 1)).toMatchObject({
    status: "threw",
    node: "a",
    error: { code: "BAD_FLOW", message: expect.stringContaining("a") as string },
  });
});

test("a function that modifies a kept value changes neither the journal nor the object of the function before it", () => {
  const shared = [7];
  const made = start()
    .inline("list", ["input"], () => shared)
    .inline("changed", ["list"], ({ list }) => list.push(99))
    .action("a", ["list", "changed"], () => 1)
    .output(["a"], ({ a }) => a);
  expect(done(evaluateFrom(made, "input", 1)).kept).toEqual({ list: "[7]", changed: "2" });
  expect(shared).toEqual([7]);
});
