// A graph whose every step can be told by its number.

import { append, END, graph, last, START } from "reprise";

export const STEPS = 6;

export const steps = graph("steps", { state: { n: last(0), seen: append<string>() } })
  .node("add", async (ctx, state) => {
    process.send?.(`ran ${ctx.step}`);
    const n = await ctx.run("add", { n: state.n }, (_op, request) => request.n + 1);
    return { n, seen: [`${ctx.step}`] };
  })
  .node("beside", async (ctx) => ({ seen: [`beside ${ctx.step}`] }))
  .edge(START, ["add", "beside"])
  .edge("beside", END)
  .edge("add", END, (state) => state.n === STEPS)
  .edge("add", ["add", "beside"]);
