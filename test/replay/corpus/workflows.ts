// The workflows of the corpus. Never change one: its journal was recorded by it, and must replay against it for ever.
// A new behaviour gets a new workflow and a new journal (`REPRISE_RECORD=1 vitest run test/replay/corpus.test.ts`).

import { FatalError } from "../../../src/base/index.ts";
import { promise, task, type Definition } from "../../../src/kernel/index.ts";
import { workflow } from "../../../src/workflow/index.ts";

/** A workflow, its input, and what recorded the journal where that was other code. */
export interface Specimen {
  readonly definition: Definition;
  readonly input?: unknown;
  /** Seed of the completions while recording. */
  readonly seed: number;
  readonly recordedBy?: Definition;
  /** Cut the journal at its middle: a run that had not ended. */
  readonly unfinished?: boolean;
  readonly cancelled?: boolean;
}

const charge = task("charge", (_ctx, order: { cents: number }) => ({ paid: order.cents }));
const ship = task("ship", (_ctx, order: { cents: number }) => `shipped ${order.cents}`);
const refund = task("refund", (_ctx, order: { cents: number }) => -order.cents);
const measure = task("measure", (_ctx, place: string) => place.length);
const broken = task("broken", (): number => {
  throw new FatalError("broken for good");
});

const single = workflow("single", async (ctx, order: { cents: number }) => ctx.task(charge, order));

const branches = workflow("branches", async (ctx) => {
  const twice = async (side: string): Promise<number[]> => [
    await ctx.task(measure, `${side} one`),
    await ctx.task(measure, `${side} two, longer`),
  ];
  return Promise.all([twice("left"), twice("right"), ctx.sleep("1 day")]);
});

const saga = workflow("saga", { ports: { approval: promise<boolean>() } }, async (ctx, order: { cents: number }) => {
  ctx.state.set("status", "charging");
  await ctx.task(charge, order);
  try {
    ctx.state.set("status", "waiting");
    const approved = await ctx.promise("approval", { timeout: "2 days" });
    if (approved !== true) throw new Error("not approved");
    return await ctx.task(ship, order);
  } catch {
    ctx.state.set("status", "refunding");
    const back = await ctx.task(refund, order);
    ctx.state.clear("status");
    return back;
  }
});

const races = workflow("races", async (ctx) => {
  const winners: unknown[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    const timer = ctx.sleep(1000 * (turn + 1));
    const branch = async (name: string): Promise<string> => `${name} ${await ctx.task(measure, name)}`;
    winners.push(await Promise.race([branch("near"), branch("far away"), timer.then(() => "none")]));
    timer.cancel();
  }
  winners.push(await Promise.any([ctx.task(broken), ctx.run("rescue", () => "rescued")]));
  return winners;
});

const operations = workflow("operations", async (ctx) => {
  const [first, second] = await Promise.all([
    ctx.run("first", { page: 1 }, (_op, request: { page: number }) => ({ items: [request.page] })),
    ctx.run("second", () => 2n ** 70n),
  ]);
  const failed = await ctx
    .run("third", () => {
      throw new TypeError("no third", { cause: "it was never there" });
    })
    .catch((error: unknown) => (error instanceof TypeError ? error.message : "another error"));
  return { first, second, failed };
});

const values = workflow("values", async (ctx, input: unknown) => {
  ctx.state.set("input", input);
  const echoed = await ctx.run("echo", input, (_op, given: unknown) => given);
  return { echoed, kept: ctx.state.get("input"), nothing: undefined };
});

const draws = workflow("draws", async (ctx) => {
  const seen: unknown[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    seen.push(ctx.now(), ctx.uuid());
    if (ctx.random() < 0.5) await ctx.sleep(1 + turn);
    else await ctx.task(measure, "coin");
  }
  return seen;
});

const child = workflow("child", async (_ctx, input: number) => input * 2);
const parent = workflow("parent", async (ctx) => {
  const children = [1, 2, 3].map((each) => ctx.child(child, each));
  const ids = children.map(({ id }) => id);
  return { ids, results: await Promise.allSettled(children) };
});

const failing = workflow("failing", async (ctx) => {
  await ctx.task(measure, "once");
  throw new FatalError("that is all");
});

const cancellable = workflow("cancellable", async (ctx) => {
  await ctx.task(measure, "before");
  await Promise.all([ctx.sleep("1 day"), ctx.task(measure, "during")]);
  return "never";
});

const early = workflow("early", { ports: { reply: promise<number>() } }, async (ctx) => {
  await ctx.task(measure, "while it comes");
  return [await ctx.promise("reply"), await ctx.promise("reply", { timeout: 5, show: { question: "really?" } })];
});

const renamedBefore = workflow("renamed", async (ctx) => {
  await ctx.task(measure, "one");
  return ctx.task(charge, { cents: 1 });
});
const renamedAfter = workflow("renamed", async (ctx) => {
  await ctx.task(measure, "one");
  return ctx.task(ship, { cents: 1 });
});

/** Canceled tasks, one of them with an undo, and timers with ids. */
const selective = workflow("selective", async (ctx) => {
  const outcomes: unknown[] = [];
  const messageOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: Error) => error.message);
  for (const place of ["near", "far away"]) {
    const limit = ctx.sleepUntil(new Date(ctx.now().getTime() + 5_000), { id: "limit" });
    const one = ctx.task(measure, place);
    const two = ctx.task(charge, { cents: place.length }, { undo: async ({ paid }) => paid });
    await Promise.race([one, ctx.sleep(1_000, { id: `tick ${place}` })]);
    one.cancel(`${place} is late`);
    two.cancel();
    limit.cancel();
    outcomes.push(await messageOf(one), await messageOf(two));
  }
  return outcomes;
});

const loop = (times: number): Definition =>
  workflow("loop", async (ctx) => {
    let sum = 0;
    for (let turn = 0; turn < times; turn += 1) sum += await ctx.task(measure, "x".repeat(turn));
    return sum;
  });

const approvals = workflow("approvals", { ports: { go: promise<number>() } }, async (ctx) => {
  const asked = ["ann", "bob"].map((key) => ctx.promise("go", { key, timeout: "1 hour", show: key }));
  const answers = await Promise.all(asked);
  const sent = await Promise.allSettled([
    ctx.resolve(early, "other-1", "reply", 7, { by: "corpus", reason: "kept" }),
    ctx.reject(early, "other-2", "reply", new RangeError("no")),
    ctx.resolve(early, "other-3", "reply", 8, { key: "ann" }),
  ]);
  return { answers, sent: sent.map(({ status }) => status) };
});

const VALUES = new Map<unknown, unknown>([
  ["date", new Date(0)],
  ["numbers", [-0, Number.NaN, Number.NEGATIVE_INFINITY, 0.1]],
  ["set", new Set([1n, undefined, null])],
  ["bytes", new Uint8Array([0, 127, 255])],
  [{ key: true }, { $: "date", "ключ": "значение \u{1F600}" }],
]);

export const SPECIMENS: Readonly<Record<string, Specimen>> = {
  single: { definition: single, input: { cents: 4200 }, seed: 1 },
  branches: { definition: branches, seed: 2 },
  "branches-unfinished": { definition: branches, seed: 3, unfinished: true },
  saga: { definition: saga, input: { cents: 100 }, seed: 4 },
  races: { definition: races, seed: 5 },
  operations: { definition: operations, seed: 6 },
  values: { definition: values, input: VALUES, seed: 7 },
  draws: { definition: draws, seed: 8 },
  parent: { definition: parent, seed: 9 },
  failing: { definition: failing, seed: 10 },
  cancelled: { definition: cancellable, seed: 11, cancelled: true },
  early: { definition: early, seed: 12 },
  renamed: { definition: renamedAfter, recordedBy: renamedBefore, seed: 13 },
  selective: { definition: selective, seed: 16 },
  shortened: { definition: loop(2), recordedBy: loop(3), seed: 14 },
  approvals: { definition: approvals, seed: 16 },
};
