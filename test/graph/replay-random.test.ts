// Random replays: random graphs, killed anywhere, replay to the same result without calls; one changed byte is found.

import { expect, test } from "vitest";
import { append, END, graph, last, START, task, type NodeContext } from "reprise";
import { createTestEngine } from "reprise/testing";
import { randomSource, type RandomSource } from "../replay/random-source.ts";
import { openStores } from "./graph-stores.ts";

type Op = "call" | "failing call" | "task" | "parallel" | "race" | "random" | "now" | "own" | "send";
const OPS: readonly Op[] = ["call", "failing call", "task", "parallel", "race", "random", "now", "own", "send"];

interface Program {
  readonly ops: readonly Op[];
  /** How many attempts fail, and after which op. */
  readonly failures: number;
  readonly failsAfter: number;
}

function drawProgram(chance: RandomSource): Program {
  const ops = Array.from({ length: 1 + chance.below(4) }, () => OPS[chance.below(OPS.length)]!);
  return { ops, failures: chance.below(3), failsAfter: chance.below(ops.length + 1) };
}

/** How often the outside was really called. */
const outside = { calls: 0 };

/** A while of the machine's own, of no set length. */
async function aWhile(chance: RandomSource): Promise<void> {
  for (let turns = chance.below(4); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
}

const priceOf = task("price", (_ctx, n: number) => {
  outside.calls += 1;
  return n * 3;
});

async function perform(ctx: NodeContext, { ops, failures, failsAfter }: Program, tag: string, chance: RandomSource) {
  const seen: string[] = [];
  const call = (name: string, request: unknown, fails = false): Promise<string> =>
    ctx.run(name, request, async (_op, asked) => {
      outside.calls += 1;
      await aWhile(chance);
      if (fails) throw new RangeError(`no ${name}`);
      return `${name} ${JSON.stringify(asked)} ${outside.calls}`;
    });
  for (const [index, op] of ops.entries()) {
    if (ctx.attempt <= failures && index === failsAfter) throw new Error(`attempt ${ctx.attempt} of ${tag}`);
    if (op === "call") seen.push(await call(`c${index}`, { tag, before: seen.length }));
    else if (op === "failing call")
      seen.push(await call(`f${index}`, tag, true).catch((error: Error) => `${error.name} ${error.message}`));
    else if (op === "task") seen.push(String(await ctx.task(priceOf, index)));
    else if (op === "parallel") seen.push(...(await Promise.all([call("p", 1), call("q", 2), call("r", 3)])));
    else if (op === "race") seen.push(await Promise.race([call("x", 1), call("y", 2)]));
    else if (op === "random") seen.push(`${ctx.random()} ${ctx.uuid()}`);
    else if (op === "now") seen.push(String(ctx.now().getTime()));
    else if (op === "send") ctx.send("mail", { tag, seen: seen.length });
    else await aWhile(chance);
  }
  if (ctx.attempt <= failures && failsAfter >= ops.length) throw new Error(`attempt ${ctx.attempt} of ${tag}`);
  return { log: [`${tag}: ${seen.join(", ")}`] };
}

/** Two nodes side by side, a spread, a join, and all of it twice. */
function drawGraph(seed: number) {
  const chance = randomSource(seed);
  const programs = Array.from({ length: 5 }, () => drawProgram(chance));
  const items = Array.from({ length: chance.below(7) }, (_, index) => index);
  const retry = { maxAttempts: 3, baseDelay: 5, maxDelay: 20 };
  return graph(`random-${seed}`, {
    state: { log: append<string>(), round: last(0) },
    maxConcurrentNodes: 1 + chance.below(4),
    fold: chance.below(2) === 0 ? "written" : "order-key",
  })
    .node("begin", { retry }, (ctx) => perform(ctx, programs[0]!, "begin", chance))
    .node("left", { retry }, (ctx) => perform(ctx, programs[1]!, "left", chance))
    .node("right", { retry }, (ctx) => perform(ctx, programs[2]!, "right", chance))
    .node("each", { retry }, (ctx, _state, item: number) => perform(ctx, programs[3]!, `each ${item}`, chance))
    .node("end", { retry }, async (ctx, { round }) => ({
      ...(await perform(ctx, programs[4]!, `end ${round}`, chance)),
      round: round + 1,
    }))
    .edge(START, "begin")
    .edge("begin", ["left", "right"])
    .spread("left", "each", () => items)
    .join(["each", "right"], "end")
    .edge("end", END, ({ round }) => round >= 2)
    .edge("end", "begin");
}

test("random graphs with calls, failures, retries and spreads replay to the same result after crashes anywhere; a changed byte is found", async () => {
  for (let seed = 1; seed <= 24; seed += 1) {
    const where = `seed ${seed}`;
    const chance = randomSource(seed * 7_919);
    const definition = drawGraph(seed);
    let untilCrash = chance.below(30);
    let crashes = chance.below(3);
    let armed = false;
    let crashing = false;
    const dead: { crash?: () => Promise<void> } = {};
    using stores = openStores(async (_writes, apply) => {
      // The next life begins before this one is over: it is not killed on its way.
      if (!armed || crashing || crashes === 0 || untilCrash-- > 0) return apply();
      crashing = true;
      crashes -= 1;
      untilCrash = chance.below(30);
      if (chance.below(2) === 0) await apply();
      await dead.crash?.();
      crashing = false;
      throw new Error("dead");
    });
    await using engine = await createTestEngine({
      store: stores.source,
      definitions: [definition, priceOf],
      outbox: { mail: async () => {} },
    });
    const run = await engine.start(definition, {});
    dead.crash = () => engine.crash();
    armed = true;
    let ended = false;
    const result = run.result().finally(() => (ended = true));
    while (!ended) await engine.clock.advance(50);
    const output = await result;
    armed = false;
    const { calls } = outside;
    for (const verdict of [await run.replay(), await run.verify()])
      expect(verdict, where).toMatchObject({
        status: "same",
        calls: { live: 0 },
        end: { status: "completed", output },
      });
    expect(outside.calls, where).toBe(calls);

    const rows = stores.sql<{ seq: number; data: string }>(
      "select seq, cast(data as text) as data from journal where run = (select min(run) from runs) order by seq",
    );
    const { seq, data } = rows[chance.below(rows.length)]!;
    const places = [...data.matchAll(/[a-z0-9]/gi)].map(({ index }) => index);
    const at = places[chance.below(places.length)]!;
    const other = data[at] === "7" ? "8" : "7";
    const write = (text: string): void =>
      void stores.sql(
        `update journal set data = cast('${text.replaceAll("'", "''")}' as blob) where run = (select min(run) from runs) and seq = ${seq} returning seq`,
      );
    write(data.slice(0, at) + other + data.slice(at + 1));
    for (const verdict of [await run.replay(), await run.verify()])
      expect(verdict, `${where}, entry ${seq}, character ${at}`).toMatchObject({ status: "mismatch" });
    write(data);
    expect(await run.verify(), where).toMatchObject({ status: "same" });
  }
}, 120_000);
