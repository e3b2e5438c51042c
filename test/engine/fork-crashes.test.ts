// Forks under crashes, races, messages and generations.

import { expect, test } from "vitest";
import { promise, signal, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { openStores } from "../graph/graph-stores.ts";
import { until } from "./world.ts";

const double = task("double", async (_, n: number) => n * 2);
const child = workflow("child", async (ctx, n: number) => ctx.run("add", { n }, (_op, { n: of }) => of + 1));
const sums = workflow(
  "sums",
  { ports: { more: promise<number>(), extra: signal<number>() }, determinism: "strict" },
  async (ctx, n: number) => {
    const open = ctx.task(double, 100);
    const first = await ctx.task(double, n);
    const more = ctx.promise("more");
    const second = await ctx.run("second", { first }, (_op, { first: of }) => of + 1);
    await ctx.sleep("1 hour");
    const started = await ctx.child(child, second);
    return { first, second, started, open: await open, more: await more, id: ctx.uuid() };
  },
);

const changes = [
  { at: "Operation(0)" },
  { answers: { "Operation(0)": 50, "ChildWorkflow(0)": 7, "Promise(0)": 3 } },
  { answers: { "Timer(0)": undefined }, effects: "recorded" as const },
] as const;

/** A call of an engine that crashes does not settle; the test calls again. */
const ignore = (): undefined => undefined;

interface Killed {
  readonly output: string;
  readonly commits: number;
}

async function killedAt(at: number, options: (typeof changes)[number]): Promise<Killed> {
  let commits = 0;
  const dead: { crash?: () => Promise<void> } = {};
  using stores = openStores(async (writes, apply) => {
    const isCommit = writes.some(({ write }) => write === "turn" || write === "fork" || write === "end-item");
    if (dead.crash === undefined || !isCommit || (commits += 1) !== at) return apply();
    // Half of them after the commit, whose answer then never comes.
    if (at % 2 === 0) await apply();
    await dead.crash();
    throw new Error("dead");
  });
  await using engine = await createTestEngine({ store: stores.source, definitions: [sums, double, child] });
  const run = await engine.start(sums, 4, { id: "r" });
  await run.resolve("more", 11);
  await engine.clock.advance("2 hours");
  await run.result();
  dead.crash = () => engine.crash();
  // Whoever asked does not know whether it happened, and asks again.
  await until(async () => (await run.fork({ ...options, id: "f" }).catch(() => undefined)) !== undefined);
  await until(async () => {
    const fork = engine.get(sums, "f");
    await fork.resolve("more", 11).catch(ignore);
    await engine.clock.advance("2 hours").catch(ignore);
    return (await fork.info().catch(ignore))?.status === "completed";
  });
  const output = JSON.stringify(await engine.get(sums, "f").result());
  expect(await engine.get(sums, "f").verify()).toMatchObject({ status: "same" });
  expect(await stores.store.check()).toEqual([]);
  return { output, commits };
}

test.each(changes)(
  "a fork that is killed at every commit ends the same: %j",
  async (options) => {
    const { output, commits } = await killedAt(0, options);
    expect(commits).toBeGreaterThan(3);
    for (let at = 1; at <= commits; at += 1) expect((await killedAt(at, options)).output).toBe(output);
  },
  120_000,
);
