// Definitions for the tests of mirrors.

import { append, END, graph, promise, START, stream, task, workflow } from "reprise";

export const charge = task("charge", { retry: { maxAttempts: 3, baseDelay: 1 } }, (ctx, n: number) => {
  if (ctx.attempt === 1) throw new Error("not yet");
  return n;
});

/** Retries a task, emits chunks; waits for a person if the count is negative. */
export const order = workflow(
  "order",
  { ports: { go: promise<number>(), log: stream<string>() } },
  async (ctx, count: number) => {
    for (let index = 0; index < count; index += 1) await ctx.run(`step ${index}`, { index }, () => index);
    ctx.emit("log", `${count} steps`);
    if (count < 0) return ctx.promise("go");
    return ctx.run("last", () => count);
  },
);

export const pages = workflow("pages", async (ctx, left: number): Promise<string> => {
  await ctx.run(`page ${left}`, () => left);
  if (left > 0) return ctx.continueAsNew(left - 1);
  return "read";
});

export const child = workflow("child", async (ctx, n: number) => ctx.run("double", () => n * 2));

export const family = workflow("family", async (ctx, count: number) => {
  let sum = 0;
  for (let index = 0; index < count; index += 1) sum += (await ctx.child(child, index)) as number;
  return sum;
});

export const fork = graph("fork", { state: { log: append<string>() } })
  .node("first", async (ctx) => ({ log: [await ctx.run("call", () => "first")] }))
  .node("second", async () => ({ log: ["second"] }))
  .edge(START, "first")
  .edge("first", "second")
  .edge("second", END);
