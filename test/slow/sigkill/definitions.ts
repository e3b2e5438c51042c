// A load whose every result can be computed on paper, so that a lost, doubled or swapped step shows in the output.

import { promise, task, workflow } from "reprise";

export const double = task("double", (_ctx, n: number) => n * 2);
export const shaky = task("shaky", { retry: { maxAttempts: 5, baseDelay: 1, maxDelay: 5 } }, (ctx, n: number) => {
  if (ctx.attempt === 1 && n % 3 === 0) throw new Error("first attempts fail for multiples of three");
  return n + 100;
});

export const leaf = workflow("leaf", async (ctx, n: number) => ctx.run("square", () => n * n));

export const load = workflow("load", { ports: { go: promise<number>() } }, async (ctx, n: number) => {
  const trail: number[] = [];
  for (let i = 0; i < 5; i += 1) trail.push(await ctx.run("step", () => n + i));
  const [doubled, shaken, squared] = await Promise.all([ctx.task(double, n), ctx.task(shaky, n), ctx.child(leaf, n)]);
  await ctx.sleep(n % 20);
  const branches = await Promise.all(
    [1, 2].map(async (branch) => {
      const first = await ctx.run("first", () => branch * 10);
      return first + (await ctx.run("second", () => branch));
    }),
  );
  const go = await ctx.promise("go");
  ctx.state.set("done", true);
  return { trail, doubled, shaken, squared, branches, go };
});

/** What `load` gives for `n` when it was told `go`. */
export function expectedOf(n: number, go: number): unknown {
  return {
    trail: [0, 1, 2, 3, 4].map((i) => n + i),
    doubled: n * 2,
    shaken: n + 100,
    squared: n * n,
    branches: [11, 22],
    go,
  };
}
