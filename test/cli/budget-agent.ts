// An agent whose second call does not fit into its budget.

import { workflow } from "reprise";

export const agent = workflow("agent", { budget: { usd: 2 } }, async (ctx) => {
  const cost = { reserve: { usd: 0.5 }, actual: () => ({ usd: 0.25 }) };
  await ctx.run("plan", () => "a plan", { cost });
  return ctx.run("answer", () => "an answer", { cost: { ...cost, reserve: { usd: 5 } } });
});
