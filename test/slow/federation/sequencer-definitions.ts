// The runs of sequencer-postgres.test.ts.

import { workflow } from "reprise";

export const step = workflow("step", async (ctx, n: number) => ctx.run("double", () => n * 2));

/** Ends as its number says: completed, failed, continued as new, with a child. */
export const order = workflow("order", async (ctx, n: number): Promise<number> => {
  if (n % 7 === 3) throw new Error(`order ${n}`);
  if (n % 7 === 5) return ctx.continueAsNew(n + 1);
  return n % 7 === 1 ? ctx.child(step, n) : ctx.run("double", () => n * 2);
});

export const DEFINITIONS = [step, order];
