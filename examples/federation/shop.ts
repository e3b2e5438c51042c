// What the edge runs. The labels of tasks say where they are executed.

import { task, workflow } from "reprise";

/** Only the hub has the hardware for it. */
export const render = task("render", { label: "gpu" }, async (_ctx, product: string) => `a picture of ${product}`);

export const charge = task("charge", async (ctx, cents: number) => ({
  payment: ctx.idempotencyKey.slice(0, 8),
  cents,
}));

export const order = workflow("order", async (ctx, { product, cents }: { product: string; cents: number }) => {
  const { cents: paid } = await ctx.task(charge, cents);
  return { paid, picture: await ctx.task(render, product) };
});

export const definitions = [order, charge, render] as const;

/** What the sites must know of each other before they start: vkeys, addresses and secrets. */
export interface Plan {
  readonly folder: string;
  readonly vkeys: { readonly edge: string; readonly hub: string; readonly auditor: string };
  readonly ports: { readonly edge: number; readonly hub: number };
  readonly tokens: { readonly edge: string; readonly auditor: string };
}

export function readPlan(): Plan {
  return JSON.parse(process.argv[2] ?? "{}") as Plan;
}
