// What graphs infer, and what must not compile. Checked by `tsc`, never run.

import {
  append,
  channel,
  createEngine,
  describeGraph,
  END,
  goto,
  graph,
  last,
  max,
  merge,
  promise,
  START,
  workflow,
} from "reprise";

const agent = graph("agent", {
  state: {
    messages: append<string>(),
    answer: last<string | null>(null),
    best: max(),
    facts: merge<{ a?: number }>({}),
  },
  ports: { approve: promise<{ ok: boolean }>() },
  output: (state) => state.answer,
})
  .node("think", async (ctx, state) => {
    const length: number = state.messages.length;
    const reply: string = await ctx.run("llm", { length }, (_op, request) => `${request.length}`);
    return { messages: [reply], facts: { a: ctx.step + ctx.attempt } };
  })
  .node("ask", async (ctx) => {
    const decision = await ctx.promise("approve", { timeout: "1 day", show: "sure?" });
    return decision?.ok === true ? goto("think", { best: 1 }) : goto(END, { answer: "refused" });
  })
  .node("each", async (_ctx, _state, item: { id: string }) => ({ messages: [item.id] }))
  .node("throws", async () => {
    throw new Error("always");
  })
  .edge(START, "think")
  .edge("think", "ask", (state) => state.answer !== null)
  .spread("think", "each", (state) => state.messages.map((id) => ({ id })))
  .join(["each", "ask"], "throws");

const described: readonly string[] = describeGraph(agent).nodes.map(({ name }) => name);
void described;
// @ts-expect-error: a workflow is no graph
describeGraph(workflow("none", async () => 1));

export async function useGraphs(): Promise<void> {
  const parent = workflow("parent", async (ctx) => {
    const answer: string | null = await ctx.child(agent, { messages: ["hi"] });
    return answer;
  });
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [agent, parent] });
  const run = await engine.start(agent, { messages: ["hi"] });
  await run.resolve("approve", { ok: true });
  const answer: string | null = await run.result();
  void answer;
  // @ts-expect-error no such channel in the input
  await engine.start(agent, { nothing: 1 });
  // @ts-expect-error the input of a channel has another type
  await engine.start(agent, { messages: [1] });
  // @ts-expect-error no such port
  await run.resolve("nothing", { ok: true });
}

const small = graph("small", { state: { n: last(0), sum: channel(0, (sum, more: number) => sum + more) } })
  .node("a", async () => ({ n: 1 }))
  .node("item", async (_ctx, _state, item: number) => ({ n: item }));

// @ts-expect-error no such node
small.edge("a", "nobody");
// @ts-expect-error no such node to come from
small.edge("nobody", "a");
// @ts-expect-error a node that takes items is reached by a spread
small.edge("a", "item");
// @ts-expect-error the items have another type
small.spread("a", "item", () => ["x"]);
// @ts-expect-error the name is taken
small.node("a", async () => {});
// @ts-expect-error no such channel
small.node("b", async () => ({ nothing: 1 }));
// @ts-expect-error the change has another type
small.node("b", async () => ({ n: "one" }));
// @ts-expect-error no such node to wait for
small.join(["nobody"], "a");
// @ts-expect-error idempotency needs a key
small.node("pay", { effects: { requiresIdempotency: true } }, async () => {});
// @ts-expect-error a condition sees the state
small.edge("a", END, (state) => state.nothing === 1);

const lost = small.node("goes", async () => goto("nowhere")).edge(START, "goes");
// @ts-expect-error goto names no node
void createEngine({ store: "sqlite::memory:", definitions: [lost] });
