// Random graphs in a random world: goto, loops, joins in loops, spreads, retries of nodes and of runs, tasks, children,
// promises, messages and labels, killed anywhere. An undisturbed run of the same graph says what must come out.

import { expect, test } from "vitest";
import { createTestEngine } from "reprise/testing";
import { randomSource } from "../replay/random-source.ts";
import { openStores } from "./graph-stores.ts";
import { buildGraph, double, drawGraph, slow, sub, type GraphWorld } from "./random-graph.ts";

interface Outcome {
  readonly output?: unknown;
  readonly error?: string;
}

async function run(seed: number, kills: boolean) {
  const drawn = drawGraph(seed);
  const chance = randomSource(seed * 31 + 7);
  const world: GraphWorld = {
    broken: kills,
    slowMs: 60_000,
    aWhile: async () => {
      for (let turns = chance.below(4); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
    },
  };
  const definition = buildGraph(drawn, world);
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
