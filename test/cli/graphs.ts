// Graphs for the tests of the command line.

import { append, END, FatalError, goto, graph, last, promise, queue, START, workflow } from "reprise";
import { z } from "zod";

interface Draft {
  readonly words: string;
}

const isEnough = (state: { readonly found: readonly string[] }): boolean => state.found.length >= 4;

/** Every feature of a graph: conditions, a spread, a join, goto, a promise, a retry, a label. */
export const agent = graph("agent", {
  state: { questions: last<readonly string[]>([]), found: append<string>(), draft: last(""), ok: last(false) },
  ports: { approval: promise(z.object({ ok: z.boolean() })) },
})
  .node("plan", async (ctx, state) => {
    ctx.label(`plan ${state.questions.length}`);
    return { questions: [...state.questions, "who", "what"] };
  })
  .node("search", { retry: { maxAttempts: 3, baseDelay: 1 } }, async (ctx, _state, question: string) => {
    if (question === "what" && ctx.attempt === 1) throw new Error("no answer\u001b[31m\nfrom the index");
    const found = await ctx.run("look up", { question }, () => `about ${question}`);
    return { found: [found] };
  })
  .node("facts", async () => ({ found: ["a fact"] }))
  .node("read", async () => ({ found: ["a page"] }))
  .node("write", async (_ctx, state) => ({ draft: `${state.found.length} things` }))
  .node("review", async (ctx, state) => {
    const { ok } = await ctx.promise("approval", { show: { draft: state.draft } as unknown as Draft });
    return ok ? goto("publish", { ok }) : goto(END);
  })
  .node("publish", async () => {})
  .edge(START, "plan")
  .spread("plan", "search", (state) => state.questions)
  .edge("search", ["facts", "read"])
  .join(["facts", "read"], "write")
  .edge("write", "review", isEnough)
  .edge("write", "plan", (state) => state.found.length < 2)
  .edge("write", END);

/** Names that have a meaning in Mermaid, Graphviz, HTML, Markdown or a terminal. */
export const odd = graph('end "graph" <b>&amp;</b> %%{init}%% \\N', { state: { n: last(0) } })
  .node("end", async () => {})
  .node('say "hi"', async () => {})
  .node("a[b](c){d}|e|", async () => {})
  .node("subgraph", async () => {})
  .node("1. style: #35;`x`", async () => {})
  .node("__init__ *bold* ~no~ $$x$$", async () => {})
  .node("日本語 🚀 \u202etfel", async () => {})
  .node("back\\slash\\N\\l", async () => {})
  .node("- list", async () => {})
  .node("START", async () => {})
  .edge(START, ["end", 'say "hi"', "a[b](c){d}|e|", "subgraph", "1. style: #35;`x`", "START"])
  .edge("end", "__init__ *bold* ~no~ $$x$$", (state) => state.n > 1 && 'a|b"]-->' < `${state.n}`)
  .edge("end", END)
  .join(["subgraph", 'say "hi"'], "日本語 🚀 \u202etfel")
  .edge("日本語 🚀 \u202etfel", "back\\slash\\N\\l")
  .edge("back\\slash\\N\\l", "- list", (state) => {
    return state.n > 3;
  })
  .edge("START", END);

export const loop = graph("loop", { state: { n: last(0), log: append<string>() }, maxSteps: 5_000 })
  .node("count", async (_ctx, state) => ({ n: state.n + 1, log: [`at ${state.n}`] }))
  .edge(START, "count")
  .edge("count", END, (state) => state.n >= 1_000)
  .edge("count", "count");

export const failing = graph("failing", { state: { seen: append<string>() } })
  .node("first", async () => ({ seen: ["first"] }))
  .node("good", async () => ({ seen: ["good"] }))
  .node("bad", { retry: { maxAttempts: 2, baseDelay: 1 } }, async (ctx) => {
    if (ctx.attempt > 1) throw new FatalError("the index is gone\u0007");
    throw new Error("the index does not answer");
  })
  .edge(START, "first")
  .edge("first", ["good", "bad"])
  .edge("good", END)
  .edge("bad", END);

/** Waits for a child and for a promise at the same time. */
export const sub = workflow("sub", { ports: { go: promise<number>() } }, (ctx) => ctx.promise("go"));
export const waits = graph("waits", { state: { n: last(0) }, ports: { never: promise() } })
  .node("asks", async (ctx) => ({ n: await ctx.child(sub, undefined) }))
  .node("idles", async (ctx) => {
    await ctx.promise("never", { timeout: "1 day" });
  })
  .edge(START, ["asks", "idles"]);

/** Prints "step running", then waits until its process receives a signal. */
export const slow = graph("slow", { state: { n: last(0) }, queue: queue("gpu", { concurrency: 2 }) })
  .node("first", async () => ({ n: 1 }))
  .node("work", async () => {
    process.stderr.write("step running\n");
    await new Promise<void>((resolve) => {
      for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => setImmediate(resolve));
    });
    return { n: 2 };
  })
  .edge(START, "first")
  .edge("first", "work")
  .edge("work", END);
