// The measured graphs. Their nodes do almost nothing, so that the engine's own work is measured.

import { append, END, graph, last, merge, promise, START } from "reprise";

async function count(_ctx: unknown, state: { readonly count: number }): Promise<{ count: number }> {
  return { count: state.count + 1 };
}

export const CHAIN_LENGTH = 10;
/** Ten sequential nodes. */
export const chain = graph("chain", { state: { count: last(0) }, output: (state) => state.count })
  .node("a", count)
  .node("b", count)
  .node("c", count)
  .node("d", count)
  .node("e", count)
  .node("f", count)
  .node("g", count)
  .node("h", count)
  .node("i", count)
  .node("j", count)
  .edge(START, "a")
  .edge("a", "b")
  .edge("b", "c")
  .edge("c", "d")
  .edge("d", "e")
  .edge("e", "f")
  .edge("f", "g")
  .edge("g", "h")
  .edge("h", "i")
  .edge("i", "j");

/** As many parallel items as the input says, then a join. */
export const spreading = graph("spreading", {
  state: { width: last(0), done: append<number>(), sum: last(0) },
  output: (state) => state.done.length,
})
  .node("square", async (_ctx, _state, item: number) => ({ done: [item * item] }))
  .node("sum", async (_ctx, state) => ({ sum: state.done.reduce((sum, value) => sum + value, 0) }))
  .spread(START, "square", (state) => Array.from({ length: state.width }, (_, index) => index))
  .join(["square"], "sum");

const TEXT = "a text of some eighty characters, as a fact an agent has found out may well have it.";

/** About 100 bytes. */
function factOf(round: number): { readonly round: number; readonly text: string } {
  return { round, text: TEXT };
}

/** About 100 KB. */
const FACTS = 820;
export const facts: Readonly<Record<string, unknown>> = Object.fromEntries(
  Array.from({ length: FACTS }, (_, index) => [`fact ${index}`, factOf(0)]),
);

/** The process's CPU time, in microseconds, at the start of these steps; the benchmark adds the steps. */
export const cpuAtStep = new Map<number, number | undefined>();

/** A state of 100 KB of which every step changes 100 bytes; then a wait. */
export const remembering = graph("remembering", {
  state: { facts: merge<Record<string, unknown>>({}), steps: last(0), length: last(0) },
  maxSteps: 1_000_000,
  ports: { go: promise() },
  output: (state) => state.steps,
})
  .node("change", async (ctx, { steps }) => {
    if (cpuAtStep.has(ctx.step)) cpuAtStep.set(ctx.step, cpuUs());
    return { steps: steps + 1, facts: { [`fact ${(steps * 7) % FACTS}`]: factOf(ctx.step) } };
  })
  .node("wait", (ctx) => ctx.promise("go"))
  .edge(START, "change")
  .edge("change", "change", (state) => state.steps < state.length)
  .edge("change", "wait")
  .edge("wait", END);

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
