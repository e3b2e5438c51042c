// Random graphs: goto, loops, joins in loops, spreads, retries, tasks, children, promises, messages and labels. What comes of
// them does not depend on who is first.

import { append, END, FatalError, goto, graph, last, promise, START, task, workflow, type NodeContext } from "reprise";
import type { RandomSource } from "../replay/random-source.ts";
import { randomSource } from "../replay/random-source.ts";

const OPS = ["call", "pipes", "task", "child", "sub", "promise", "race", "random", "send", "label", "late"] as const;
type Op = (typeof OPS)[number];
const NAMES = ["a", "b", "c", "d", "e"] as const;
type Name = (typeof NAMES)[number];

interface Program {
  readonly ops: readonly Op[];
  /** How many of its attempts fail, and whether it first fails the whole run. */
  readonly failures: number;
  readonly breaks: boolean;
  /** How it swallows what goes wrong. */
  readonly swallows: boolean;
}
type Way =
  | { readonly way: "edge"; readonly to: readonly Name[]; readonly back: Name | undefined }
  | { readonly way: "goto"; readonly to: readonly Name[] }
  | { readonly way: "spread" }
  | { readonly way: "join"; readonly back: Name | undefined }
  | { readonly way: "end" };

export interface DrawnGraph {
  readonly programs: ReadonlyMap<string, Program>;
  readonly ways: ReadonlyMap<Name, Way>;
  readonly rounds: number;
  readonly width: number;
  readonly concurrency: number;
  readonly depth: number;
  readonly fold: "written" | "order-key";
}

function some<T>(chance: RandomSource, from: readonly T[], most: number): readonly T[] {
  return [...new Set(Array.from({ length: 1 + chance.below(most) }, () => from[chance.below(from.length)]!))];
}

export function drawGraph(seed: number): DrawnGraph {
  const chance = randomSource(seed);
  const program = (): Program => ({
    ops: Array.from({ length: chance.below(4) }, () => OPS[chance.below(OPS.length)]!),
    failures: Math.max(0, chance.below(5) - 2),
    breaks: chance.below(8) === 0,
    swallows: chance.below(3) === 0,
  });
  const joined = chance.below(2) === 0 ? some<Name>(chance, ["b", "c", "d"], 3) : [];
  const way = (name: Name): Way => {
    const kind = chance.below(6);
    const back = chance.below(2) === 0 ? "a" : undefined;
    if (joined.includes(name)) return { way: "join", back };
    if (kind === 0) return { way: "spread" };
    if (kind === 1) return { way: "goto", to: some(chance, NAMES, 2) };
    if (kind === 2) return { way: "end" };
    return { way: "edge", to: some(chance, NAMES, 3), back };
  };
  return {
    programs: new Map([...NAMES, "each"].map((name) => [name, program()])),
    ways: new Map(NAMES.map((name) => [name, way(name)])),
    rounds: 3 + chance.below(6),
    width: chance.below(5),
    concurrency: 1 + chance.below(4),
    depth: 1 + chance.below(4),
    fold: chance.below(2) === 0 ? "written" : "order-key",
  };
}

export const double = task("double", async (_ctx, n: number) => n * 2);
export const slow = workflow("slow", async (ctx, { text, ms }: { text: string; ms: number }) => {
  await ctx.sleep(ms);
  return `slow ${text}`;
});
export const sub = graph("sub", { state: { n: last(0) }, output: ({ n }) => n })
  .node("add", async (ctx, { n }) => ({ n: n + (await ctx.run("one", n, () => 1)) }))
  .edge(START, "add")
  .edge("add", END, ({ n }) => n >= 2)
  .edge("add", "add");

/** What a test changes under its runs. */
export interface GraphWorld {
  broken: boolean;
  /** How long a call takes. */
  aWhile(): Promise<void>;
  /** How long a child sleeps. */
  readonly slowMs: number;
}

async function perform(ctx: NodeContext, world: GraphWorld, program: Program, tag: string): Promise<string> {
  const seen: string[] = [];
  const call = (name: string, request: unknown): Promise<string> =>
    ctx.run(name, request, async (_op, asked) => {
      await world.aWhile();
      return `${name}(${JSON.stringify(asked)})`;
    });
  for (const [index, op] of program.ops.entries()) {
    if (op === "call") seen.push(await call("call", { tag, index, seen: seen.length }));
    else if (op === "pipes")
      seen.push(
        ...(await Promise.all(
          [0, 1, 2].map(async (n) => {
            const first = await call("first", { n, seen });
            const [next, twice] = await Promise.all([call("next", first), ctx.task(double, n)]);
            return `${next} ${twice}`;
          }),
        )),
      );
    else if (op === "task") seen.push(String(await ctx.task(double, index)));
    else if (op === "child") seen.push(await ctx.child(slow, { text: tag, ms: world.slowMs }));
    else if (op === "sub") seen.push(String(await ctx.child(sub, {})));
    else if (op === "promise")
      seen.push(String(await (ctx as unknown as Asking).promise("word", { timeout: "1 day" })));
    else if (op === "race") {
      const [x, y] = [call("x", tag), call("y", tag)];
      const winner = await Promise.race([x, y]);
      await call("after", winner);
      await Promise.all([x, y]);
    } else if (op === "random") seen.push(`${ctx.random()}`);
    else if (op === "send") ctx.send("mail", { tag, index });
    else if (op === "label") ctx.label(`at ${tag}`);
    else
      // It may arrive after the run has ended.
      void call("late", tag)
        .then(() => call("later", tag))
        .catch(() => {});
  }
  const isRetried = ctx.attempt <= program.failures;
  if (world.broken && program.breaks) throw new FatalError(`${tag} is broken`);
  if (isRetried) throw new Error(`attempt ${ctx.attempt} of ${tag}`);
  if (program.swallows)
    await ctx.run("bad", () => Promise.reject(new FatalError("bad"))).catch((error: Error) => seen.push(error.message));
  return `${tag}: ${seen.join(", ")}`;
}
interface Asking {
  promise(name: string, options: { timeout: string }): Promise<unknown>;
}

export function buildGraph(drawn: DrawnGraph, world: GraphWorld, name = "world") {
  const { programs, ways, rounds, width } = drawn;
  const retry = { maxAttempts: 3, baseDelay: 5, maxDelay: 20 };
  const node = (own: Name) => async (ctx: NodeContext, state: { readonly log: readonly string[] }) => {
    const log = [await perform(ctx, world, programs.get(own)!, `${own}${ctx.step}`)];
    const way = ways.get(own)!;
    if (state.log.length >= rounds * 3) return goto(END, { log });
    if (way.way === "goto") return goto([...way.to], { log });
    return { log };
  };
  let g = graph(name, {
    state: { log: append<string>() },
    ports: { word: promise<string>() },
    maxConcurrentNodes: drawn.concurrency,
    queueDepth: drawn.depth,
    maxSteps: 25,
    fold: drawn.fold,
  }) as any;
  for (const each of NAMES) g = g.node(each, { retry }, node(each));
  g = g.node("each", { retry }, async (ctx: NodeContext, _state: unknown, item: number) => ({
    log: [await perform(ctx, world, programs.get("each")!, `each${item}`)],
  }));
  g = g.edge(START, ["a", "b", "c"]);
  for (const each of NAMES) {
    const way = ways.get(each)!;
    if ((way.way === "edge" || way.way === "join") && way.back !== undefined)
      g = g.edge(each, way.back, (state: { log: readonly string[] }) => state.log.length < rounds);
    if (way.way === "edge") g = g.edge(each, [...way.to]);
    if (way.way === "spread") g = g.spread(each, "each", () => Array.from({ length: width }, (_, item) => item));
  }
  const joined = NAMES.filter((each) => ways.get(each)!.way === "join");
  if (joined.length > 0) g = g.join(joined, "e");
  return g;
}
