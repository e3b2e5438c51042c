import { expect, test } from "vitest";
import { typed } from "../kernel/index.ts";
import { flow, flowBody, OUTPUT } from "./definition.ts";

const start = () => flow("f", { input: typed<number>() });
const one = (): number => 1;

/** The regions of a flow, by head. */
function regionsOf(definition: unknown) {
  const { regions } = flowBody(definition);
  return (head: string) => {
    const { region, required } = regions.get(head)!;
    return {
      required,
      inline: region.inline.map(({ id }) => id),
      exits: region.exits.map(({ source, target }) => `${source} → ${target}`),
      kept: region.kept,
    };
  };
}

test("every node is in exactly one region, and only heads are counted", () => {
  const body = flowBody(
    start()
      .action("a", ["input"], one)
      .inline("b", ["a"], ({ a }) => a)
      .spread("s", ["b"], ({ b }) => [b], one)
      .when(
        "large",
        ["s"],
        () => true,
        (branch) => branch.inline("c", ["b"], one),
      )
      .output(["c"], ({ c }) => c),
  );
  const inside = [...body.regions.values()].flatMap(({ region }) => [region.head, ...region.inline]);
  expect(inside.map(({ id }) => id).toSorted()).toEqual([...body.nodes.keys()].toSorted());
  // `c` needs two regions, and the output is derived from it.
  expect([...body.regions.keys()].toSorted()).toEqual(["a", "c", "input", "s", "s[]"]);
});

test("a node that needs values of one region is derived in it; one that needs several regions waits for each", () => {
  const region = regionsOf(
    start()
      .action("a", ["input"], one)
      .inline("b", ["a"], ({ a }) => a)
      .inline("c", ["a", "b"], ({ b }) => b)
      .inline("d", ["a", "input"], ({ a }) => a)
      .output(["d"], ({ d }) => d),
  );
  expect(region("a")).toMatchObject({ inline: ["b", "c"], exits: ["a → d"], required: 1 });
  expect(region("d")).toMatchObject({ inline: [OUTPUT], required: 2 });
});

test("a value is kept only if another region needs it, and a test never is", () => {
  const region = regionsOf(
    start()
      .action("a", ["input"], one)
      .inline("used", ["a"], ({ a }) => a)
      .inline("unused", ["a"], ({ a }) => a)
      .when(
        "large",
        ["a"],
        () => true,
        (branch) => branch.action("b", ["used"], one),
      )
      .output(["b"], ({ b }) => b),
  );
  expect(region("a")).toMatchObject({ inline: ["used", "unused", "large?"], kept: ["used"] });
  expect(region("a").exits).toEqual(["used → b", "large? → b"]);
});

test("the guard of a branch is one more arrival, and a node without needs waits for the input", () => {
  const region = regionsOf(
    start()
      .action("alone", [], one)
      .when(
        "large",
        ["input"],
        () => true,
        (branch) => branch.action("b", ["input", "alone"], one),
      )
      .output(["b"], ({ b }) => b),
  );
  expect([region("alone").required, region("b").required]).toEqual([1, 3]);
  expect(region("input").exits).toContain("input → alone");
});

test("a spread is two regions: no edge leads into its barrier, which counts items", () => {
  const region = regionsOf(
    start()
      .spread("s", ["input"], ({ input }) => [input], one)
      .inline("sum", ["s"], ({ s }) => s.length)
      .output(["sum"], ({ sum }) => sum),
  );
  expect(region("s[]")).toEqual({ required: 1, inline: [], exits: [], kept: [] });
  expect(region("s")).toEqual({ required: 0, inline: ["sum", OUTPUT], exits: [], kept: [] });
});

test("the parts of a parallel are heads, and its value waits for all of them", () => {
  const region = regionsOf(
    start()
      .parallel("both", ["input"], { left: one, right: one })
      .output(["both"], ({ both }) => both.left),
  );
  expect(region("both")).toMatchObject({ required: 2, inline: [OUTPUT] });
  expect(region("both.left").exits).toEqual(["both.left → both"]);
});
