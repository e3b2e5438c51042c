// Definitions for the tests of verify.

import { flow, task, typed, workflow } from "reprise";

export const double = task("double", (_ctx, n: number) => n * 2);

export const part = workflow("part", async (ctx, n: number) => ctx.task(double, n));

/** What a change of the code can change: the name of a step, its input, or the output. */
interface Parts {
  readonly step: string;
  readonly added: number;
  readonly factor: number;
}

export const buildWhole = ({ step, added, factor }: Parts) =>
  workflow("whole", async (ctx, n: number): Promise<number> => {
    const first = await ctx.child(part, n);
    await ctx.run(step, { first: first + added }, () => "noted");
    return n > 1 ? ctx.continueAsNew(n - 1) : first * factor;
  });

export const whole = buildWhole({ step: "note", added: 0, factor: 1 });

export const buildSquare = (square: (n: number) => number) => {
  const squared = task("squared", { pure: "1" }, (_ctx, n: number) => square(n));
  const pure = workflow("pure", async (ctx, n: number) => ctx.task(squared, n));
  return { squared, pure };
};

export const { squared, pure } = buildSquare((n) => n * n);

/** Its output depends on the runtime, and nothing else does. */
export const runtime = workflow("runtime", async (ctx) => {
  await ctx.run("note", () => "noted");
  return process.versions.v8;
});

export const derived = flow("derived", { input: typed<number>() })
  .action("doubled", ["input"], (_ctx, { input }) => input * 2)
  .inline("engine", ["doubled"], () => process.versions.v8)
  .output(["engine"], ({ engine }) => engine);
