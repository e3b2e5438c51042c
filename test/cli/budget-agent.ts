// An agent whose second call does not fit into its budget.

import { workflow } from "reprise";

export const agent = workflow("agent", { budget: { usd: 2 } }, async (ctx) => {
  const cost = { reserve: { usd: 0.5 }, actual: () => ({ usd: 0.25 }) };
  await ctx.run("plan", () => "a plan", { cost });
  return ctx.run("answer", () => "an answer", { cost: { ...cost, reserve: { usd: 5 } } });
});

/** Its budget caps calls, and no dollars. */
export const crawl = workflow("crawl", { budget: { calls: 0 } }, async (ctx) =>
  ctx.run("fetch", () => "a page", { cost: { reserve: { calls: 1 }, actual: () => ({ calls: 1 }) } }),
);
