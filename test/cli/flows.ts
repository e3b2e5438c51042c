// Flows for the tests of the command line.

import { FatalError, flow, promise, queue, task, typed, workflow } from "reprise";

const isLarge = ({ total }: { readonly total: number }): boolean => total > 100;

export const double = task("double", { retry: { maxAttempts: 2 } }, (_ctx, n: number) => n * 2);

/** Waits for a person. */
export const sub = workflow("sub", { ports: { go: promise<number>() } }, async (ctx, _n: number) => ctx.promise("go"));

/** Every feature of a flow; its spread has failures, and it waits for a child. */
export const shop = flow("shop", {
  input: typed<{ prices: readonly number[]; password?: string }>(),
  deadline: "1 day",
})
  .action("rate", ["input"], { retry: { maxAttempts: 3, baseDelay: 1 }, timeout: "5 s" }, (ctx) => {
    if (ctx.attempt === 1) throw new Error("no rate\u001b[31m yet");
    return { percent: 19, password: "hunter2" };
  })
  .inline("prices", ["input"], ({ input }) => input.prices)
  .spread(
    "taxed",
    ["prices", "rate"],
    { concurrency: 5, settle: true, queue: queue("tax", { concurrency: 5 }) },
    ({ prices }) => prices,
    (_ctx, price, index) => {
      if (price < 0) throw new FatalError(`price ${index} is negative\u0007`);
      return price * 1.19;
    },
  )
  .inline("total", ["taxed"], ({ taxed }) =>
    taxed.reduce((sum, one) => sum + (one.status === "fulfilled" ? one.value : 0), 0),
  )
  .when("large", ["total"], isLarge, (branch) =>
    branch
      .action("approved", ["total"], { catch: () => "default approval" }, (): string => {
        throw new FatalError("no approver");
      })
      .inline("loud", ["approved"], ({ approved }) => approved.toUpperCase()),
  )
  .otherwise("large", (branch) =>
    branch.action("waved", ["total"], () => "through").inline("calm", ["waved"], ({ waved }) => waved),
  )
  .parallel("both", ["loud", "calm"], { mail: () => "sent", log: () => "written" })
  .call("doubled", ["total"], double, ({ total }) => total)
  .call("asked", ["both", "doubled"], sub, ({ doubled }) => doubled ?? 0)
  .action("late", ["asked", "both"], (_ctx, { asked }) => asked)
  .output(["late", "taxed"], ({ late }) => late);

/** Names that have a meaning in Mermaid, Graphviz, HTML, Markdown or a terminal. */
export const odd = flow('end "flow" <b>&amp;</b> %%{init}%% \\N', { input: typed<number>() })
  .inline("end", ["input"], ({ input }) => input)
  .inline('say "hi"', ["end"], ({ end }) => end)
  .action("{d}|e|", ["end"], (_ctx, { end }) => end)
  .action("subgraph", ["input"], () => 1)
  .inline("__init__ *bold* ~no~ $$x$$", ["subgraph"], () => 1)
  .inline("日本語 🚀 \u202etfel", ["input"], () => 1)
  .inline("back\\slash\\N\\l", ["input"], () => 1)
  .inline("- list", ["input"], () => 1)
  .when(
    "Node(1)#0/a",
    ["end"],
    ({ end }) => end > 1 && 'a|b"]-->' < `${end}`,
    (branch) => branch.inline("INPUT", ["end"], () => 2),
  )
  .output(["{d}|e|", 'say "hi"'], () => 1);

/** Fails at an item of a spread until `isRepaired` returns true. */
export function failingUntil(isRepaired: () => boolean) {
  return flow("failing", { input: typed<number>() })
    .action("first", ["input"], (_ctx, { input }) => input)
    .spread(
      "each",
      ["first"],
      { retry: { maxAttempts: 2, baseDelay: 1 }, concurrency: 1 },
      ({ first }) => Array.from({ length: first }, (_, index) => index),
      (_ctx, item) => {
        if (item === 2 && !isRepaired()) throw new Error("the index\u0007 does not answer");
        return item * 10;
      },
    )
    .output(["each"], ({ each }) => each.length);
}
export const failing = failingUntil(() => false);

/** A function in memory that throws. */
export const broken = flow("broken", { input: typed<number>() })
  .action("a", ["input"], (_ctx, { input }) => input)
  .inline("b", ["a"], ({ a }) => a)
  .inline("c", ["b"], ({ b }): number => {
    throw new Error(`c cannot take ${b}`);
  })
  .inline("d", ["c"], ({ c }) => c)
  .output(["d"], ({ d }) => d);

export const wide = flow("wide", { input: typed<number>() })
  .spread(
    "items",
    ["input"],
    { settle: true },
    ({ input }) => Array.from({ length: input }, (_, index) => index),
    (_ctx, item) => {
      if (item % 100 === 7) throw new FatalError(`item ${item}`);
      return item;
    },
  )
  .output(["items"], ({ items }) => items.length);

/** Prints "step running", then waits until its process receives a signal. */
export const slow = flow("slow", { input: typed<void>() })
  .action("first", ["input"], () => 1)
  .action("work", ["first"], { queue: queue("gpu", { concurrency: 2 }) }, async () => {
    process.stderr.write("step running\n");
    await new Promise<void>((resolve) => {
      for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => setImmediate(resolve));
    });
    return 2;
  })
  .action("other", ["first"], () => 3)
  .output(["work", "other"], ({ work, other }) => work + other);
