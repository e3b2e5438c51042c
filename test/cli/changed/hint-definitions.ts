// The same workflow and graph after a change of their code.

import { append, END, graph, last, promise, START, workflow } from "reprise";

export const completes = workflow("completes", async (ctx) => ctx.run("shout", () => "HELLO"));
export const asksInNode = graph("asks in a node", {
  state: { n: last(0), log: append<string>() },
  ports: { go: promise<number>() },
})
  .node("first", async () => ({ log: ["another"] }))
  .node("wait", async (ctx) => ({ n: await ctx.promise("go") }))
  .edge(START, "first")
  .edge("first", "wait")
  .edge("wait", END);
