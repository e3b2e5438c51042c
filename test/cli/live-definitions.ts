// Definitions whose calls answer where they were made: in production, or at the desk of who debugs.

import { END, FatalError, graph, last, promise, START, task, workflow } from "reprise";

const place = (): string => process.env["CALLED_AT"] ?? "production";

export const price = task("price", (ctx, item: string) => `${item} at ${place()} with ${ctx.idempotencyKey}`);

export const sale = workflow("sale", { ports: { approval: promise<string>() } }, async (ctx, item: string) => {
  const reserved = await ctx.run("reserve", place);
  const [first, second] = await Promise.all([ctx.task(price, item), ctx.task(price, `second ${item}`)]);
  const approval = await ctx.promise("approval");
  const shipped = await ctx.run("ship", place);
  return { reserved, first, second, approval, shipped };
});

export const fragile = workflow("fragile", async (ctx) => {
  const packed = await ctx.run("pack", place);
  const shipped = await ctx.run("ship", () => {
    if (place() === "production") throw new FatalError("no truck");
    return place();
  });
  await ctx.sleep(10);
  return { packed, shipped };
});

export const tour = graph("tour", { state: { north: last(""), south: last("") } })
  .node("north", async (ctx) => ({ north: await ctx.run("north", place) }))
  .node("south", async (ctx) => ({ south: await ctx.run("south", place) }))
  .edge(START, "north")
  .edge("north", "south")
  .edge("south", END);
