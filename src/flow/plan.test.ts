import { expect, test } from "vitest";
import { decode } from "../base/index.ts";
import { decodeData, queue, task, typed, type Claim } from "../kernel/index.ts";
import { flow, flowBody } from "./definition.ts";
import { requireRef } from "./items.ts";
import { entriesPerPortion, planCompletion, planPortion, type NodeOutcome, type PlanHost } from "./plan.ts";

const start = () => flow("f", { input: typed<number>() });
const one = (): number => 1;
const value = (of: unknown): NodeOutcome => ({ outcome: "value", value: of, attempt: 0 });
const failure = (message: string): NodeOutcome => ({ outcome: "failure", error: new Error(message), attempt: 2 });

const HOST: PlanHost = {
  record: { id: "run-1", parent: undefined, parentCommand: undefined, priority: 4 },
  limits: undefined,
  claim: () => undefined,
};

function planOf(definition: unknown, item: string, outcome: NodeOutcome, host: Partial<PlanHost> = {}) {
  const body = flowBody(definition);
  return planCompletion(body, requireRef(body, item), outcome, { ...HOST, ...host });
}

/** As `NodeCompleted a`. */
function typesOf({ entries }: { entries: readonly { type: string; command: string }[] }): readonly string[] {
  return entries.map(({ type, command }) => `${type} ${command}`.trim());
}

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

// ── heads ──

test("a value becomes one entry, and one arrival per edge out of its region", () => {
  const made = start()
    .action("a", ["input"], one)
    .inline("b", ["a"], ({ a }) => a + 1)
    .action("c", ["a", "b"], one)
    .action("d", ["input"], one)
    .output(["c", "d"], ({ c }) => c);
  const plan = planOf(made, "a", value(5));
  expect(typesOf(plan)).toEqual(["NodeCompleted a"]);
  expect(decodeData("NodeCompleted", plan.entries[0]!.data)).toEqual({ kept: { b: 6 }, result: 5 });
  expect(plan.arrivals.map(({ target, edge, kind, required, cause }) => [target, edge, kind, required, cause])).toEqual(
    [
      ["c", "a", "value", 2, 0],
      ["c", "b", "value", 2, 0],
    ],
  );
  expect(plan).toMatchObject({ then: "continue", messages: [], advances: [] });
});

test("the input needs no entry of its own: the run's first entry holds it", () => {
  const plan = planOf(
    start()
      .action("a", ["input"], one)
      .output(["a"], ({ a }) => a),
    "input",
    value(1),
  );
  expect(plan.entries).toEqual([]);
  expect(plan.arrivals).toMatchObject([{ target: "a", edge: "input", cause: undefined }]);
});

test("the same outcome gives the same plan", () => {
  const made = start()
    .spread("s", ["input"], ({ input }) => numbers(input), one)
    .output(["s"], ({ s }) => s);
  expect(planOf(made, "s[]", value(numbers(30)))).toEqual(planOf(made, "s[]", value(numbers(30))));
});

test("a node of a named queue waits there, and only a node without a queue is leased by the commit", () => {
  const gpu = queue("gpu", { concurrency: 1 });
  const asked: string[] = [];
  const claim = (node: { readonly id: string }): Claim => (asked.push(node.id), { worker: 1, token: "t" });
  const made = start()
    .action("a", ["input"], { queue: gpu, label: "eu" }, one)
    .action("b", ["input"], one)
    .output(["a", "b"], ({ a }) => a);
  const { arrivals } = planOf(made, "input", value(1), { claim });
  expect(arrivals.map(({ node }) => node)).toEqual([
    { name: "f\n1\ngpu\neu", priority: 4, slot: { queue: "gpu" } },
    { name: "f\n1", priority: 4, claim: { worker: 1, token: "t" } },
  ]);
  expect(asked).toEqual(["b"]);
});

test("a node with a key waits outside of its queue, until a worker knows its key", () => {
  const mail = queue("mail", { perKey: { concurrency: 1 } });
  const made = start()
    .action("a", ["input"], { queue: mail, key: () => "k", label: "eu" }, one)
    .output(["a"], ({ a }) => a);
  expect(planOf(made, "input", value(1)).arrivals[0]?.node).toEqual({ name: "f\n1\n\neu", priority: 4 });
});

test("an inline function that throws fails the run with its node, and the value of the head is kept for a retry", () => {
  const made = start()
    .action("a", ["input"], one)
    .inline("b", ["a"], (): number => {
      throw new Error("broken");
    })
    .output(["b"], ({ b }) => b);
  const plan = planOf(made, "a", value(5));
  expect(typesOf(plan)).toEqual(["NodeCompleted a", "NodeFailed b", "RunFailed"]);
  expect(decodeData("RunFailed", plan.entries[2]!.data)).toMatchObject({ again: "a", at: "b", entries: 2 });
  expect(plan).toMatchObject({ then: "failed", arrivals: [] });
});

test("a value that cannot be stored fails the run with its node", () => {
  const made = start()
    .action("a", ["input"], one)
    .output(["a"], ({ a }) => a);
  const plan = planOf(
    made,
    "a",
    value(() => 1),
  );
  expect(typesOf(plan)).toEqual(["NodeFailed a", "RunFailed"]);
  expect(decodeData("NodeFailed", plan.entries[0]!.data).error).toMatchObject({
    code: "NOT_DATA",
    message: expect.stringContaining("node a") as string,
  });
});

test("the end of a child answers its parent, and the end of a run without a parent sends no answer", () => {
  const made = start()
    .inline("a", ["input"], ({ input }) => input)
    .output(["a"], ({ a }) => a);
  const record = { ...HOST.record, parent: 9, parentCommand: "outer[2]" };
  expect(planOf(made, "input", value(7), { record }).messages).toMatchObject([
    { to: 9, arrival: { type: "ChildWorkflowCompleted", target: "outer[2]" } },
  ]);
  expect(planOf(made, "input", value(7))).toMatchObject({ then: "completed", messages: [] });
});

test("a skipped spread sends one skip to its barrier", () => {
  const made = start()
    .when(
      "w",
      ["input"],
      () => false,
      (branch) => branch.spread("s", ["input"], ({ input }) => [input], one),
    )
    .output(["s"], ({ s }) => s);
  const plan = planOf(made, "s[]", { outcome: "skip" });
  expect(typesOf(plan)).toEqual(["NodeSkipped s[]"]);
  expect(plan.arrivals).toMatchObject([{ target: "s", edge: "s[]", index: -1, kind: "skip", required: 1 }]);
  expect(plan.spread).toBeUndefined();
});

// ── spreads ──

const wide = (options: object = {}) =>
  start()
    .spread("s", ["input"], options, ({ input }) => numbers(input), one)
    .output(["s"], ({ s }) => s.length);

test("every entry of a spread but the last holds the same number of items, so that an index names its entry", () => {
  for (const [count, length] of [
    [1, 10],
    [2_500, 3],
    [7, 12_000],
    [5, 40_000],
  ] as const) {
    const items = numbers(count).map((n) => "x".repeat(n === 0 ? length : 1));
    const { entries, spread } = planOf(wide(), "s[]", value(items));
    const chunks = entries.slice(1).map(({ data }) => decodeData("ItemsSpread", data));
    expect(spread).toMatchObject({ barrier: "s", required: count, cause: 1 });
    const { perEntry } = spread!;
    for (const [index, item] of items.entries()) {
      const { from, items: held } = chunks[Math.floor(index / perEntry)]!;
      expect(held[index - from]).toBe(item);
    }
    expect(entries.slice(1).every(({ data }) => data.length <= 34_000 || perEntry === 1)).toBe(true);
  }
});

test("a spread queues 1,024 items at once, or as many as its `concurrency`", () => {
  expect(planOf(wide(), "s[]", value(numbers(5_000))).spread).toMatchObject({ window: 1_024, claims: [] });
  expect(planOf(wide({ concurrency: 3 }), "s[]", value(numbers(5_000))).spread).toMatchObject({ window: 3 });
});

test("a spread leases at most as many items as its window", () => {
  let tokens = 0;
  const claim = (): Claim => ({ worker: 1, token: `t${(tokens += 1)}` });
  const { spread } = planOf(wide({ concurrency: 3 }), "s[]", value(numbers(10)), { claim });
  expect(spread?.claims).toHaveLength(3);
  expect(planOf(wide(), "s[]", value(numbers(2)), { claim }).spread?.claims).toHaveLength(2);
});

test("a spread of no items has no entry of items", () => {
  const plan = planOf(wide(), "s[]", value([]));
  expect(typesOf(plan)).toEqual(["NodeCompleted s[]"]);
  expect(plan.spread).toMatchObject({ required: 0, claims: [] });
});

const HOLE = Array<number>(3).fill(0, 0, 1);

test.each([
  ["no list", 7, "BAD_FLOW", /expected a list as the items of s, got 7/],
  ["a hole", HOLE, "NOT_DATA", /Item 1 of s is a hole/],
  ["an item that cannot be stored", [1, () => 2], "NOT_DATA", /Item 1 of s/],
] as const)("a spread over %s fails the run, and nothing of it is queued", (_what, items, code, message) => {
  const plan = planOf(wide(), "s[]", value(items));
  expect(typesOf(plan)).toEqual(["NodeFailed s[]", "RunFailed"]);
  expect(decodeData("NodeFailed", plan.entries[0]!.data).error).toMatchObject({
    code,
    message: expect.stringMatching(message) as string,
  });
  expect(plan.spread).toBeUndefined();
});

test("an item that ends arrives at the barrier under its index, and lets the next item be queued", () => {
  const plan = planOf(wide(), "s[41]", value("done"));
  expect(typesOf(plan)).toEqual(["NodeCompleted s[41]"]);
  expect(plan.arrivals).toMatchObject([{ target: "s", edge: "s[]", index: 41, kind: "value", required: undefined }]);
  expect(plan.advances).toMatchObject([{ barrier: "s" }]);
});

test("an item that fails fails the run; with `settle` its failure arrives like a value", () => {
  const failed = planOf(wide(), "s[3]", failure("broken"));
  expect(typesOf(failed)).toEqual(["NodeFailed s[3]", "RunFailed"]);
  expect(failed).toMatchObject({ then: "failed", arrivals: [] });
  const settled = planOf(wide({ settle: true }), "s[3]", failure("broken"));
  expect(typesOf(settled)).toEqual(["NodeFailed s[3]"]);
  expect(settled).toMatchObject({ then: "continue", arrivals: [{ index: 3, kind: "failure" }], advances: [{}] });
});

// ── spreads with keys (keys.K1, keys.K2) ──

const mail = queue("mail", { perKey: { concurrency: 1 } });
const keyed = (key: (n: number) => string, options: object = {}) =>
  start()
    .spread("s", ["input"], options, ({ input }) => numbers(input), task("send", { queue: mail, key }, one))
    .output(["s"], ({ s }) => s.length);
const letter = (n: number): string => "abc"[n % 3]!;

test("a spread with keys writes the keys beside the items, and queues the first thousand of them", () => {
  const plan = planOf(keyed(letter), "s[]", value(numbers(2_500)));
  const chunks = plan.entries.slice(1).map(({ data }) => decode(data) as { items: number[]; keys: string[] });
  expect(chunks.flatMap(({ keys }) => keys)).toEqual(numbers(2_500).map(letter));
  const { portion, claims } = plan.spread!;
  expect(portion?.keys).toEqual(numbers(1_000).map(letter));
  expect(portion?.node).toEqual({ name: "f\n1\nmail", priority: 4, slot: { queue: "mail" } });
  expect(portion?.next).toEqual({ item: "s[more]", node: { name: "f\n1", priority: 4 } });
  expect(claims).toEqual([]);
});

test("the text of an entry with keys is canonical", () => {
  const { entries } = planOf(
    keyed(() => '"quoted" \u2028 é'),
    "s[]",
    value([1, 2]),
  );
  expect(entries[1]?.data).toBe('{"from":0,"items":[1,2],"keys":["\\"quoted\\" \u2028 é","\\"quoted\\" \u2028 é"]}');
});

test("the items of large entries are queued a few entries at a time", () => {
  expect([1, 2, 63, 500, 501, 1_000].map(entriesPerPortion)).toEqual([16, 16, 15, 2, 1, 1]);
});

test("a portion queues its keys and nothing else", () => {
  const body = flowBody(keyed(letter));
  const plan = planPortion(body, requireRef(body, "s[more]"), ["a", null], HOST);
  expect(plan).toMatchObject({ entries: [], arrivals: [], advances: [], then: "continue" });
  expect(plan.portion).toMatchObject({ barrier: "s", keys: ["a", null] });
});

test("an item lets the next one be queued whether its spread has keys now or not: the store knows how they are queued", () => {
  expect(planOf(keyed(letter), "s[0]", value(1)).advances).toMatchObject([{ barrier: "s", node: { name: "f\n1" } }]);
  const without = flowBody(wide());
  const portion = planPortion(without, requireRef(without, "s[more]"), ["a", "b"], HOST).portion;
  expect(portion).toMatchObject({ keys: [null, null], node: { name: "f\n1", priority: 4 } });
  expect(portion?.node.slot).toBeUndefined();
});

test("a spread with keys and `concurrency` keeps its window, and its items get their keys later", () => {
  const { spread, entries } = planOf(keyed(letter, { concurrency: 5 }), "s[]", value(numbers(9)));
  expect(spread).toMatchObject({ window: 5, node: { name: "f\n1", priority: 4 } });
  expect(spread?.portion).toBeUndefined();
  expect(entries[1]?.data).not.toContain("keys");
});

test("one key that cannot be computed fails the spread, and nothing of it is queued", () => {
  const broken = (n: number): string => (n === 8 ? JSON.parse("") : "k") as string;
  const plan = planOf(keyed(broken), "s[]", value(numbers(9)));
  expect(typesOf(plan)).toEqual(["NodeFailed s[]", "RunFailed"]);
  expect(decodeData("NodeFailed", plan.entries[0]!.data).error).toMatchObject({
    code: "BAD_FLOW",
    message: expect.stringMatching(/^Flow f: item 8 of s: its `key` function threw: /) as string,
  });
  expect(plan.spread).toBeUndefined();
});
