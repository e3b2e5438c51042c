// Definitions for tests of `reprise eval`. EDIT changes the code between two starts of a process.

import { appendFileSync, readFileSync } from "node:fs";
import { append, END, evaluation, flow, graph, START, task, typed, workflow } from "reprise";

const { EDIT, LEDGER, KILL_AT } = process.env;

/** Calls a model that exists outside of the process: a line in a file per call. */
function callModel(model: string, prompt: string): string {
  if (LEDGER !== undefined) {
    appendFileSync(LEDGER, `${model} ${prompt}\n`);
    if (readFileSync(LEDGER, "utf8").split("\n").length - 1 === Number(KILL_AT)) process.kill(process.pid, "SIGKILL");
  }
  return `${model}: ${prompt}`;
}

export const search = task("search", (_, what: string) => `found ${what}`);

export const support = workflow("support", async (ctx, question: string) => {
  const model = ctx.models["fast"] ?? "fast";
  const live = model !== "fast";
  const thought = await ctx.run("think", { model, question }, () => callModel(model, question), { live });
  const found = await ctx.task(search, EDIT === "tool" && question.endsWith("7") ? "everything" : question);
  ctx.send("mail", question);
  return { thought, text: EDIT === "output" ? found.toUpperCase() : found };
});

export const agent = graph("agent", { state: { log: append<string>() }, output: ({ log }) => log.join() })
  .node("plan", async (ctx) => ({ log: [await ctx.run("plan", () => "planned")] }))
  .node("write", async () => ({ log: [EDIT === "output" ? "short" : "a long text"] }))
  .edge(START, "plan")
  .edge("plan", "write")
  .edge("write", END);

export const quote = flow("quote", { input: typed<number>() })
  .action("price", ["input"], (_ctx, { input }) => input * 10)
  .inline("net", ["price"], ({ price }) => price + (EDIT === "output" ? 2 : 1))
  .output(["net"], ({ net }) => net);

/** Typed by the definition: `output` has a text. */
export const texts = evaluation(support, {
  runs: { tag: "prod", limit: 5 },
  score: {
    text: (was, is) => Number(was.output?.text === is.output?.text),
    broken: (_, is) => {
      if (EDIT === "scorer") throw new Error(`no judge for ${is.id}`);
      return 1;
    },
  },
});
export const outputs = evaluation(agent);
export const prices = evaluation(quote);
