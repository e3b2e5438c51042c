// Definitions: the builder rejects an invalid flow, by name.

import { expect, test } from "vitest";
import { createEngine, flow, queue, typed } from "reprise";
import { flowBody } from "../../src/flow/index.ts";

const start = (): any => flow("f", { input: typed<number>() });
const perKey = queue("k", { perKey: { concurrency: 1 } });

const REFUSED: readonly (readonly [what: string, make: () => unknown, code: string, says: RegExp])[] = [
  ["no input schema", () => (flow as any)("f", {}), "BAD_OPTIONS", /typed<T>\(\)/],
  ["an unknown option", () => (flow as any)("f", { input: typed(), maxSteps: 1 }), "BAD_OPTIONS", /maxSteps/],
  ["a version of 0", () => (flow as any)("f", { input: typed(), version: 0 }), "BAD_OPTIONS", /version/],
  ["an empty name", () => (flow as any)("", { input: typed() }), "BAD_NAME", /flow name/],
  [
    "a need that is not defined before",
    () => start().action("a", ["b"], () => 1),
    "BAD_FLOW",
    /needs b, which is not defined before it. Names defined before it: input/,
  ],
  ["a need of itself", () => start().action("a", ["a"], () => 1), "BAD_FLOW", /needs a/],
  [
    "needs that are not a list",
    () => start().action("a", "input", () => 1),
    "BAD_FLOW",
    /such as \["input"\], got 'input'/,
  ],
  [
    "options without needs",
    () => start().action("a", { retry: { maxAttempts: 2 } }, () => 1),
    "BAD_FLOW",
    /list of names it needs/,
  ],
  ...(["action", "inline", "call", "spread", "parallel", "when"] as const).map(
    (method) =>
      [
        `needs among the options of ${method}`,
        () =>
          start()[method](
            "a",
            { needs: ["input"] },
            () => 1,
            () => 1,
          ),
        "BAD_FLOW",
        /needs is not an option.*second argument/,
      ] as const,
  ),
  [
    "needs in the options as well",
    () => start().action("a", ["input"], { needs: ["input"] }, () => 1),
    "BAD_OPTIONS",
    /second argument/,
  ],
  [
    "a name used twice",
    () =>
      start()
        .inline("a", ["input"], () => 1)
        .inline("a", ["input"], () => 1),
    "BAD_FLOW",
    /already exists/,
  ],
  ["the name __proto__", () => start().inline("__proto__", [], () => 1), "BAD_NAME", /__proto__/],
  [
    "a need of the other side",
    () =>
      start()
        .when(
          "w",
          ["input"],
          () => true,
          (b: any) => b.inline("x", ["input"], () => 1),
        )
        .otherwise("w", (b: any) =>
          b.when(
            "v",
            ["input"],
            () => true,
            (inner: any) => inner.inline("y", ["input", "x"], () => 1),
          ),
        ),
    "BAD_FLOW",
    /y needs x, which is on the other side of when w/,
  ],
  ["the name input", () => start().inline("input", [], () => 1), "BAD_FLOW", /already exists/],
  ["a name with brackets", () => start().inline("a[0]", ["input"], () => 1), "BAD_NAME", /brackets/],
  ["no function", () => start().action("a", ["input"], 7), "BAD_OPTIONS", /expected a function/],
  [
    "a retry of no attempts",
    () => start().action("a", ["input"], { retry: { maxAttempts: 0 } }, () => 1),
    "BAD_POLICY",
    /maxAttempts/,
  ],
  ["a timeout of 0", () => start().action("a", ["input"], { timeout: 0 }, () => 1), "BAD_POLICY", /timeout/],
  ["a misspelled option", () => start().action("a", ["input"], { retries: 3 }, () => 1), "BAD_OPTIONS", /retries/],
  [
    "options for an inline node",
    () => start().inline("a", ["input"], { retry: { maxAttempts: 2 } }, () => 1),
    "BAD_OPTIONS",
    /retry/,
  ],
  [
    "a concurrency of 0",
    () =>
      start().spread(
        "a",
        ["input"],
        { concurrency: 0 },
        () => [],
        () => 1,
      ),
    "BAD_OPTIONS",
    /concurrency/,
  ],
  [
    "a settle that is no boolean",
    () =>
      start().spread(
        "a",
        ["input"],
        { settle: "yes" },
        () => [],
        () => 1,
      ),
    "BAD_OPTIONS",
    /settle/,
  ],
  ["a spread over nothing to run", () => start().spread("a", ["input"], () => [], "x"), "BAD_OPTIONS", /per item/],
  ["a call of no definition", () => start().call("a", ["input"], {}, () => 1), "BAD_OPTIONS", /task or a definition/],
  [
    "catchTimeouts without catch",
    () => start().action("a", ["input"], { catchTimeouts: true }, () => 1),
    "BAD_OPTIONS",
    /no effect without `catch`/,
  ],
  [
    "a catchTimeouts that is no boolean",
    () => start().action("a", ["input"], { catch: () => 1, catchTimeouts: 5 }, () => 1),
    "BAD_OPTIONS",
    /catchTimeouts: expected true or false, got 5/,
  ],
  ["a key without a queue", () => start().action("a", ["input"], { key: () => "k" }, () => 1), "BAD_OPTIONS", /queue/],
  [
    "a queue with limits per key and no key",
    () =>
      start().spread(
        "a",
        ["input"],
        { queue: perKey },
        () => [1],
        (_ctx: unknown, one: number) => one,
      ),
    "BAD_OPTIONS",
    /queue k has limits per key. Add `key:/,
  ],
  [
    "a retry for a child",
    () =>
      start().call(
        "a",
        ["input"],
        { retry: { maxAttempts: 2 } },
        start().output([], () => 1),
        () => 1,
      ),
    "BAD_OPTIONS",
    /child/,
  ],
  ["an empty parallel", () => start().parallel("a", ["input"], {}), "BAD_OPTIONS", /functions by name/],
  ["an otherwise without its when", () => start().otherwise("w", (b: any) => b), "BAD_FLOW", /no when/],
  [
    "an otherwise twice",
    () =>
      start()
        .when(
          "w",
          ["input"],
          () => true,
          (b: any) => b,
        )
        .otherwise("w", (b: any) => b)
        .otherwise("w", (b: any) => b),
    "BAD_FLOW",
    /no when/,
  ],
  [
    "two whens of one name",
    () =>
      start()
        .when(
          "w",
          ["input"],
          () => true,
          (b: any) => b,
        )
        .when(
          "w",
          ["input"],
          () => true,
          (b: any) => b,
        ),
    "BAD_FLOW",
    /already exists/,
  ],
  [
    "a branch that returns nothing",
    () =>
      start().when(
        "w",
        ["input"],
        () => true,
        () => undefined,
      ),
    "BAD_FLOW",
    /return the branch/,
  ],
  [
    "an output inside a branch",
    () =>
      start().when(
        "w",
        ["input"],
        () => true,
        (b: any) => b.output([], () => 1),
      ),
    "BAD_FLOW",
    /one output/,
  ],
  [
    "the same name on both sides",
    () =>
      start()
        .when(
          "w",
          ["input"],
          () => true,
          (b: any) => b.inline("x", ["input"], () => 1),
        )
        .otherwise("w", (b: any) => b.inline("x", ["input"], () => 2)),
    "BAD_FLOW",
    /already exists/,
  ],
];

test.each(REFUSED)("%s is rejected by name", (_what, make, code, says) => {
  expect(make).toThrow(expect.objectContaining({ code, message: expect.stringMatching(says) }));
});

test("a builder without an output is not a definition, and the error says what is missing", async () => {
  const unfinished = start().inline("a", ["input"], () => 1);
  expect(() => flowBody(unfinished)).toThrow(/without an output.*\.output\(needs, derive\)/);
  await expect(createEngine({ store: "sqlite::memory:", definitions: [unfinished] })).rejects.toMatchObject({
    code: "UNKNOWN_DEFINITION",
    message: expect.stringMatching(/\.output/),
  });
});

test("regions: nodes derived from one head belong to it; a node that needs several heads is a head", () => {
  const made = start()
    .action("a", ["input"], () => 1)
    .inline("b", ["a"], () => 2)
    .inline("c", ["a", "b"], () => 3)
    .action("d", ["input"], () => 4)
    .inline("e", ["c", "d"], () => 5)
    .when(
      "w",
      ["e"],
      () => true,
      (branch: any) => branch.inline("f", ["e"], () => 6).inline("g", ["a"], () => 7),
    )
    .output(["e", "f", "g"], () => 8);
  const { regions } = flowBody(made);
  const shown = Object.fromEntries(
    [...regions].map(([id, { region, required }]) => [
      id,
      `${required}: ${region.inline.map((node) => node.id).join(" ")} > ${region.exits.map(({ source, target }) => `${source}-${target}`).join(" ")} (${region.kept.join(" ")})`,
    ]),
  );
  expect(shown).toEqual({
    input: "0:  > input-a input-d ()",
    a: "1: b c > c-e a-g (c)",
    d: "1:  > d-e ()",
    e: "2: w? f > w?-g e-[output] f-[output] (f)",
    g: "2:  > g-[output] ()",
    "[output]": "3:  >  ()",
  });
});
