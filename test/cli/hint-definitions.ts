// Definitions whose runs end, wait and stop in every way for which the command line suggests a command.

import {
  append,
  END,
  FatalError,
  flow,
  graph,
  last,
  promise,
  queue,
  signal,
  START,
  task,
  typed,
  update,
  workflow,
} from "reprise";

export const mail = queue("mail", { concurrency: 1 });
export const send = task("send", { queue: mail }, () => "sent");
export const render = task("render", { label: "gpu" }, () => "rendered");

const fails = (): never => {
  throw new FatalError("not today");
};

export const completes = workflow("completes", async (ctx) => ctx.run("say", () => "hello"));
export const refuses = workflow("refuses", async (ctx) => ctx.run("ask", fails));
export const undoes = workflow("undoes", async (ctx) => {
  await ctx.run("reserve", () => "seat 7", { undo: async () => {} });
  await ctx.run("pay", fails);
});
export const asks = workflow("asks", { ports: { "it's ok": promise(), approval: promise() } }, async (ctx) => [
  await ctx.promise("it's ok"),
  await ctx.promise("approval"),
]);
export const listens = workflow(
  "listens",
  { ports: { add: signal(), "check out": signal(), drop: update<string, number>() } },
  async (ctx) => {
    ctx.onUpdate("drop", () => 1);
    return ctx.receive(["add", "check out"]);
  },
);
export const sleeps = workflow("sleeps", async (ctx) => ctx.sleep("1 day"));
export const sends = workflow("sends", async (ctx) => ctx.task(send));
export const renders = workflow("renders", async (ctx) => ctx.task(render));
export const parent = workflow("parent", async (ctx) => ctx.child(asks, undefined, { id: "asks of parent" }));
export const guesses = workflow("guesses", async () => Date.now());
export const continues = workflow("continues", async (ctx, left: number): Promise<string> => {
  if (left > 0) return ctx.continueAsNew(left - 1);
  await ctx.sleep("1 day");
  return "done";
});
const unexported = task("unexported", () => 1);
export const incomplete = workflow("incomplete", async (ctx) => ctx.task(unexported));

export const asksInNode = graph("asks in a node", {
  state: { n: last(0), log: append<string>() },
  ports: { go: promise<number>() },
})
  .node("first", async (ctx) => {
    ctx.label("asked");
    return { log: ["first"] };
  })
  .node("wait", async (ctx) => ({ n: await ctx.promise("go") }))
  .edge(START, "first")
  .edge("first", "wait")
  .edge("wait", END);
export const failsInNode = graph("fails in a node", { state: { n: last(0) } })
  .node("bad", async () => fails())
  .edge(START, "bad")
  .edge("bad", END);
export const failsInItem = flow("fails in an item", { input: typed<number>() })
  .spread(
    "each",
    ["input"],
    ({ input }) => Array.from({ length: input }, (_, n) => n),
    (_ctx, n) => (n === 1 ? fails() : n),
  )
  .output(["each"], ({ each }) => each.length);
export const breaks = flow("breaks", { input: typed<number>() })
  .action("a", ["input"], (_ctx, { input }) => input)
  .inline("b", ["a"], () => fails())
  .output(["b"], ({ b }) => b);
