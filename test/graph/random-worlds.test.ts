// Random graphs in a random world: goto, loops, joins in loops, spreads, retries of nodes and of runs, tasks, children,
// promises, messages and labels, killed anywhere. An undisturbed run of the same graph says what must come out.

import { expect, test } from "vitest";
import { append, END, FatalError, goto, graph, last, promise, START, task, workflow, type NodeContext } from "reprise";
import { createTestEngine } from "reprise/testing";
import { chanceOf, type Chance } from "../replay/seeded.ts";
import { openStores } from "./graph-stores.ts";

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

interface Drawn {
  readonly programs: ReadonlyMap<string, Program>;
  readonly ways: ReadonlyMap<Name, Way>;
  readonly rounds: number;
  readonly width: number;
  readonly concurrency: number;
  readonly depth: number;
  readonly fold: "written" | "order-key";
}

function some<T>(chance: Chance, from: readonly T[], most: number): readonly T[] {
  return [...new Set(Array.from({ length: 1 + chance.below(most) }, () => from[chance.below(from.length)]!))];
}

function draw(seed: number): Drawn {
  const chance = chanceOf(seed);
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

const double = task("double", async (_ctx, n: number) => n * 2);
const slow = workflow("slow", async (ctx, text: string) => {
  await ctx.sleep("1 minute");
  return `slow ${text}`;
});
const sub = graph("sub", { state: { n: last(0) }, output: ({ n }) => n })
  .node("add", async (ctx, { n }) => ({ n: n + (await ctx.run("one", n, () => 1)) }))
  .edge(START, "add")
  .edge("add", END, ({ n }) => n >= 2)
  .edge("add", "add");

/** What a test changes under its runs. */
interface World {
  broken: boolean;
  readonly chance: Chance;
}

async function aWhile({ chance }: World): Promise<void> {
  for (let turns = chance.below(4); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
}

async function perform(ctx: NodeContext, world: World, program: Program, tag: string): Promise<string> {
  const seen: string[] = [];
  const call = (name: string, request: unknown): Promise<string> =>
    ctx.run(name, request, async (_op, asked) => {
      await aWhile(world);
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
    else if (op === "child") seen.push(await ctx.child(slow, tag));
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
      // It may come when nobody hears it any more.
      void call("late", tag)
        .then(() => call("later", tag))
        .catch(() => {});
  }
  const isRetried = ctx.attempt < program.failures;
  if (world.broken && program.breaks) throw new FatalError(`${tag} is broken`);
  if (isRetried) throw new Error(`attempt ${ctx.attempt} of ${tag}`);
  if (program.swallows)
    await ctx.run("bad", () => Promise.reject(new FatalError("bad"))).catch((error: Error) => seen.push(error.message));
  return `${tag}: ${seen.join(", ")}`;
}
interface Asking {
  promise(name: string, options: { timeout: string }): Promise<unknown>;
}

function build(drawn: Drawn, world: World) {
  const { programs, ways, rounds, width } = drawn;
  const retry = { maxAttempts: 3, baseDelay: 5, maxDelay: 20 };
  const node = (name: Name) => async (ctx: NodeContext, state: { readonly log: readonly string[] }) => {
    const log = [await perform(ctx, world, programs.get(name)!, `${name}${ctx.step}`)];
    const way = ways.get(name)!;
    if (state.log.length >= rounds * 3) return goto(END, { log });
    if (way.way === "goto") return goto([...way.to], { log });
    return { log };
  };
  let g = graph("world", {
    state: { log: append<string>() },
    ports: { word: promise<string>() },
    maxConcurrentNodes: drawn.concurrency,
    queueDepth: drawn.depth,
    maxSteps: 25,
    fold: drawn.fold,
  }) as any;
  for (const name of NAMES) g = g.node(name, { retry }, node(name));
  g = g.node("each", { retry }, async (ctx: NodeContext, _state: unknown, item: number) => ({
    log: [await perform(ctx, world, programs.get("each")!, `each${item}`)],
  }));
  g = g.edge(START, ["a", "b", "c"]);
  for (const name of NAMES) {
    const way = ways.get(name)!;
    if ((way.way === "edge" || way.way === "join") && way.back !== undefined)
      g = g.edge(name, way.back, (state: { log: readonly string[] }) => state.log.length < rounds);
    if (way.way === "edge") g = g.edge(name, [...way.to]);
    if (way.way === "spread") g = g.spread(name, "each", () => Array.from({ length: width }, (_, item) => item));
  }
  const joined = NAMES.filter((name) => ways.get(name)!.way === "join");
  if (joined.length > 0) g = g.join(joined, "e");
  return g;
}

interface Outcome {
  readonly output?: unknown;
  readonly error?: string;
}

async function run(seed: number, kills: boolean) {
  const drawn = draw(seed);
  const chance = chanceOf(seed * 31 + 7);
  const world: World = { broken: kills, chance };
  const definition = build(drawn, world);
  let untilCrash = chance.below(25);
  let crashes = kills ? chance.below(4) : 0;
  let armed = false;
  let crashing = false;
  const dead: { crash?: () => Promise<void> } = {};
  using stores = openStores(async (_writes, apply) => {
    if (!armed || crashing || crashes === 0 || untilCrash-- > 0) return apply();
    crashing = true;
    crashes -= 1;
    untilCrash = chance.below(25);
    if (chance.below(2) === 0) await apply();
    await dead.crash?.();
    crashing = false;
    throw new Error("dead");
  });
  const mails = new Map<string, number>();
  await using engine = await createTestEngine({
    store: stores.source,
    definitions: [definition, double, slow, sub],
    outbox: { mail: async (payload) => void mails.set(JSON.stringify(payload), 1) },
  });
  const handle = await engine.start(definition, {}, { id: "r" });
  dead.crash = () => engine.crash();
  armed = true;
  /** No crash comes, and none is under way: a request would not be answered. */
  const calmDown = async (): Promise<void> => {
    armed = false;
    while (crashing) await new Promise((resolve) => setImmediate(resolve));
  };
  const finish = async (one: typeof handle): Promise<Outcome> => {
    let ended: Outcome | undefined;
    void one.result().then(
      (output: unknown) => (ended = { output }),
      (error: { cause?: { code?: string; message?: string }; code?: string; message?: string }) =>
        (ended = { error: `${error.cause?.code ?? error.code} ${error.cause?.message ?? error.message}` }),
    );
    for (let n = 0; ended === undefined; n += 1) {
      await engine.clock.advance(n < 100 ? 50 : 60_000);
      if (n === 20) {
        const was = armed;
        await calmDown();
        await one.resolve("word" as never, "said" as never).catch(() => {});
        armed = was;
      }
      if (n > 600) throw new Error(`stuck: ${JSON.stringify(await one.info())}`);
    }
    return ended;
  };
  let outcome = await finish(handle);
  if (world.broken && outcome.error?.includes("is broken") === true) {
    world.broken = false;
    await calmDown();
    await handle.retry();
    armed = true;
    outcome = await finish(handle);
  }
  await calmDown();
  const checkpoints: string[] = [];
  for await (const { step, state, label } of handle.checkpoints())
    checkpoints.push(JSON.stringify([step, state, label]));
  const where = `seed ${seed}`;
  if (kills) {
    expect(await stores.store.check(), where).toEqual([]);
    for (const verdict of [await handle.replay(), await handle.verify()])
      expect(verdict, `${where}: ${JSON.stringify(verdict)}`).toMatchObject({ status: "same" });
    // A fork from anywhere, and a fork of it, end as the run itself did.
    const step = chance.below(checkpoints.length);
    const fork = await handle.fork({ step, id: "f" });
    armed = true;
    crashes = chance.below(3);
    expect(await finish(fork), `${where}, fork from ${step}`).toEqual(outcome);
    await calmDown();
    const again = await fork.fork({ step: Math.min(step + 1, checkpoints.length - 1), id: "ff" });
    armed = true;
    expect(await finish(again), `${where}, fork of a fork from ${step + 1}`).toEqual(outcome);
    await calmDown();
    for (const one of [fork, again]) {
      const past: string[] = [];
      for await (const at of one.checkpoints()) past.push(JSON.stringify([at.step, at.state, at.label]));
      expect(past, where).toEqual(checkpoints);
      const verdict = await one.replay();
      expect(verdict, `${where}: ${JSON.stringify(verdict)}`).toMatchObject({ status: "same" });
      expect(await handle.diff(one), where).toMatchObject({ firstDivergence: undefined });
    }
    const from = chance.below(checkpoints.length);
    world.broken = false;
    const resumed = await again.replay({ mode: "resume", from: Math.max(from, 0) });
    expect(resumed, `${where}, resumed from ${from}: ${JSON.stringify(resumed)}`).toMatchObject({ status: "same" });
  }
  return { outcome, checkpoints, mails: [...mails.keys()].toSorted() };
}

/** `WORLDS=1-1000` for more of them, by hand. */
const asked = process.env["WORLDS"]?.split("-").map(Number) as [number, number] | undefined;
const SEEDS =
  asked === undefined ? [9, 21, 38] : Array.from({ length: asked[1] - asked[0] + 1 }, (_, n) => n + asked[0]);

test.each(SEEDS)(
  "random graph %i killed anywhere, retried and forked in the middle ends as an undisturbed one does",
  async (seed) => {
    const quiet = await run(seed, false);
    const killed = await run(seed, true);
    expect(killed.outcome).toEqual(quiet.outcome);
    expect(killed.checkpoints).toEqual(quiet.checkpoints);
    expect(killed.mails).toEqual(quiet.mails);
  },
  120_000,
);
