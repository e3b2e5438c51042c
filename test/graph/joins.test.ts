// Joins: a node that waits for others runs once they have arrived or can no longer arrive.

import { expect, test } from "vitest";
import { append, END, graph, last, START } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";
import { randomSource, type RandomSource } from "../replay/random-source.ts";

test("skipped branch and unequal branches: the join fires exactly once in both", async () => {
  const build = (name: string, skip: boolean) =>
    graph(name, { state: { log: append<string>() } })
      .node("short", async () => ({ log: ["short"] }))
      .node("long", async () => ({ log: ["long"] }))
      .node("longer", async () => ({ log: ["longer"] }))
      .node("longest", async () => ({ log: ["longest"] }))
      .node("join", async (_ctx, state) => ({ log: [`join after ${state.log.join("+")}`] }))
      .edge(START, ["short", "long"])
      .edge("long", END, () => skip)
      .edge("long", "longer")
      .edge("longer", "longest")
      .join(["short", "longest"], "join")
      .edge("join", END);
  const skipped = build("skipped", true);
  const unequal = build("unequal", false);
  await using engine = await createTestEngine({ definitions: [skipped, unequal] });
  expect((await (await engine.start(skipped, {})).result()).log).toEqual(["short", "long", "join after short+long"]);
  expect((await (await engine.start(unequal, {})).result()).log).toEqual([
    "short",
    "long",
    "longer",
    "longest",
    "join after short+long+longer+longest",
  ]);
});

test("a join adds its own edges, and an explicit edge takes precedence", async () => {
  const g = graph("ways", { state: { log: append<string>() } })
    .node("a", async () => ({ log: ["a"] }))
    .node("b", async () => ({ log: ["b"] }))
    .node("x", async () => ({ log: ["x"] }))
    .node("c", async () => ({ log: ["c"] }))
    .edge(START, ["a", "b"])
    // Goes to both: the join adds no way of its own.
    .edge("a", ["c", "x"])
    .join(["a", "b"], "c");
  await using engine = await createTestEngine({ definitions: [g] });
  expect((await (await engine.start(g, {})).result()).log.toSorted()).toEqual(["a", "b", "c", "x"]);
});

test("all items of a spread count as one arrival, and an empty spread does not block the join", async () => {
  const g = graph("spreads", { state: { items: last<number>(0), seen: append<number>(), joined: last(0) } })
    .node("each", async (_ctx, _state, item: number) => ({ seen: [item] }))
    .node("other", async () => {})
    .node("sum", async (_ctx, state) => ({ joined: state.joined + 1 }))
    .node("fan", async () => {})
    .edge(START, ["fan", "other"])
    .spread("fan", "each", (state) => Array.from({ length: state.items }, (_, index) => index))
    .join(["each", "other"], "sum");
  await using engine = await createTestEngine({ definitions: [g] });
  expect(await (await engine.start(g, { items: 12 })).result()).toMatchObject({
    joined: 1,
    seen: Array.from({ length: 12 }, (_, index) => index),
  });
  expect(await (await engine.start(g, { items: 0 })).result()).toMatchObject({ joined: 1, seen: [] });
});

test("the r-th activation of a join in a loop takes the r-th arrival of each", async () => {
  const g = graph("loops", { state: { round: last(0), log: append<string>() } })
    .node("split", async (_ctx, state) => ({ round: state.round + 1 }))
    .node("fast", async (_ctx, state) => ({ log: [`fast ${state.round}`] }))
    .node("slow", async () => {})
    .node("slower", async (_ctx, state) => ({ log: [`slow ${state.round}`] }))
    .node("meet", async (ctx, state) => ({ log: [`meet ${state.round} ${ctx.random()}`] }))
    .edge(START, "split")
    .edge("split", ["fast", "slow"])
    .edge("slow", "slower")
    .join(["fast", "slower"], "meet")
    .edge("meet", END, (state) => state.round === 3)
    .edge("meet", "split");
  await using engine = await createTestEngine({ definitions: [g] });
  const { log } = await (await engine.start(g, {})).result();
  expect(log.map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual(
    [1, 2, 3].flatMap((round) => [`fast ${round}`, `slow ${round}`, `meet ${round}`]),
  );
  const draws = log.filter((line) => line.startsWith("meet")).map((line) => line.split(" ")[2]);
  expect(new Set(draws).size).toBe(3);
});

test("the second arrival of a node waits for the next round of the join", async () => {
  const g = graph("rounds", { state: { n: last(0), log: append<string>() } })
    .node("ping", async (_ctx, state) => ({ n: state.n + 1, log: ["ping"] }))
    .node("slow1", async () => {})
    .node("slow2", async () => {})
    .node("pong", async () => ({ log: ["pong"] }))
    .node("meet", async () => ({ log: ["meet"] }))
    .edge(START, ["ping", "slow1"])
    .edge("ping", ["ping", "meet"], (state) => state.n < 2)
    .edge("ping", "meet")
    .edge("slow1", "slow2")
    .edge("slow2", "pong")
    .join(["ping", "pong"], "meet")
    .edge("meet", END);
  await using engine = await createTestEngine({ definitions: [g] });
  const { log } = await (await engine.start(g, {})).result();
  expect(log).toEqual(["ping", "ping", "pong", "meet", "meet"]);
});

test("a join waits for an earlier join before it fires", async () => {
  const g = graph("chained", { state: { log: append<string>() } })
    .node("a", async () => ({ log: ["a"] }))
    .node("b", async () => ({ log: ["b"] }))
    .node("c", async () => ({ log: ["c"] }))
    .node("up", async () => ({ log: ["up"] }))
    .node("down", async () => ({ log: ["down"] }))
    .edge(START, ["a", "b"])
    .edge("b", END)
    // `c` never comes: `up` is let go first, then `down` has both.
    .edge("a", ["up", "down"])
    .edge("c", ["up"])
    .join(["a", "c"], "up")
    .join(["a", "up"], "down");
  await using engine = await createTestEngine({ definitions: [g] });
  expect((await (await engine.start(g, {})).result()).log).toEqual(["a", "b", "up", "down"]);
});

test.each<[string, (g: any) => unknown, RegExp]>([
  [
    "two edges without a condition",
    (g) => g.edge(START, "a").edge("a", "b").edge("a", END),
    /edges of a after its first/,
  ],
  [
    "a join next to an edge without a condition",
    (g) => g.edge(START, "a").edge("a", "b").join(["a"], "c"),
    /edges of a after its/,
  ],
  ["nothing from START", (g) => g, /no edge leaves START/],
  ["an edge to no node", (g) => g.edge("a", "missing"), /no node has this name/],
  ["an edge from no node", (g) => g.edge("missing", "a"), /no node has this name/],
  ["an empty list of targets", (g) => g.edge("a", []), /an empty list/],
  ["a node of a taken name", (g) => g.node("a", async () => {}), /already exists/],
  ["a join that waits for itself", (g) => g.join(["a", "b"], "a"), /cannot wait for itself/],
  ["a join without nodes", (g) => g.join([], "a"), /expected a list of the nodes it waits for/],
  ["two joins of one node", (g) => g.join(["a"], "c").join(["b"], "c"), /already has a join/],
  [
    "an edge to a node that takes items",
    (g) =>
      g
        .edge(START, "a")
        .spread("a", "b", () => [])
        .edge("c", "b"),
    /runs once per item of a spread/,
  ],
  [
    "idempotency without a key",
    (g) => g.node("pay", { effects: { requiresIdempotency: true } }, async () => {}),
    /expected a function `idempotencyKey`/,
  ],
  ["a timeout of nothing", (g) => g.node("t", { timeout: 0 }, async () => {}), /timeout/],
  ["a step limit of nothing", () => graph("g", { state: {}, maxSteps: 0 }), /maxSteps/],
])("rejected before a run starts: %s", async (_what, build, message) => {
  const start = graph("g", { state: {} })
    .node("a", async () => {})
    .node("b", async () => {})
    .node("c", async () => {});
  const refused = await rejection(
    (async () => {
      const made = build(start) as typeof start;
      await using engine = await createTestEngine({ definitions: [made] });
      void engine;
    })(),
  );
  expect(refused.message).toMatch(message);
  expect(refused.code).toMatch(/^BAD_/);
});

interface Plan {
  readonly edges: readonly { from: number; to: readonly number[]; taken: boolean }[][];
  readonly joins: ReadonlyMap<number, readonly number[]>;
}

/** A graph without loops in which every node with several ways in is a join. */
function drawPlan(seeded: RandomSource, size: number): Plan {
  const edges: { from: number; to: readonly number[]; taken: boolean }[][] = [];
  for (let from = 0; from < size; from += 1) {
    const mine: { from: number; to: readonly number[]; taken: boolean }[] = [];
    const ahead = Array.from({ length: size - from - 1 }, (_, index) => from + 1 + index);
    const count = from === 0 ? 1 : seeded.below(3);
    for (let n = 0; n < count && ahead.length > 0; n += 1) {
      const to = [...new Set(Array.from({ length: 1 + seeded.below(3) }, () => ahead[seeded.below(ahead.length)]!))];
      // The last one is always taken; those before it have a condition.
      mine.push({ from, to: to.toSorted((a, b) => a - b), taken: n === count - 1 || seeded.below(2) === 0 });
    }
    edges.push(mine);
  }
  const waysIn = new Map<number, Set<number>>();
  for (const { from, to } of edges.flat())
    for (const target of to) waysIn.set(target, (waysIn.get(target) ?? new Set()).add(from));
  const joins = new Map([...waysIn].filter(([, from]) => from.size > 1).map(([to, from]) => [to, [...from]]));
  return { edges, joins };
}

/** Node 0 first; each node after those that lead to it and were reached. */
function oracle({ edges }: Plan): Map<number, ReadonlySet<number>> {
  const reached = new Map<number, Set<number>>([[0, new Set()]]);
  for (const [from, mine] of edges.entries()) {
    if (!reached.has(from)) continue;
    const taken = mine.find((edge) => edge.taken);
    for (const target of taken?.to ?? []) reached.set(target, (reached.get(target) ?? new Set()).add(from));
  }
  return reached;
}

test("random graphs: every node that is reached runs exactly once, after all that lead to it", async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const plan = drawPlan(randomSource(seed), 4 + (seed % 9));
    let g: any = graph(`random-${seed}`, { state: { ran: append<number>() } });
    for (const [node] of plan.edges.entries()) g = g.node(`n${node}`, async () => ({ ran: [node] }));
    g = g.edge(START, "n0");
    for (const [from, mine] of plan.edges.entries())
      for (const [n, { to, taken }] of mine.entries()) {
        const targets = to.map((target) => `n${target}`);
        g = n === mine.length - 1 ? g.edge(`n${from}`, targets) : g.edge(`n${from}`, targets, () => taken);
      }
    for (const [to, from] of plan.joins)
      g = g.join(
        from.map((node) => `n${node}`),
        `n${to}`,
      );
    // A node without edges could go anywhere: here it says that it goes nowhere.
    for (const [node, mine] of plan.edges.entries()) if (mine.length === 0) g = g.edge(`n${node}`, END);
    await using engine = await createTestEngine({ definitions: [g as ReturnType<typeof asGraph>] });
    const { ran } = (await (await engine.start(g as ReturnType<typeof asGraph>, {})).result()) as { ran: number[] };
    const expected = oracle(plan);
    expect([seed, ran.toSorted((a, b) => a - b)]).toEqual([seed, [...expected.keys()].toSorted((a, b) => a - b)]);
    for (const [node, before] of expected)
      for (const one of before) expect([seed, node, ran.indexOf(one) < ran.indexOf(node)]).toEqual([seed, node, true]);
  }
});

function asGraph() {
  return graph("any", { state: { ran: append<number>() } })
    .node("n0", async () => {})
    .edge(START, "n0");
}
