// Forks of workflows: what is inferred, and what must not compile. Checked by `tsc`, never run.

import { graph, last, START, workflow, type ForkAtOptions, type ForkOptionsOf, type Run } from "reprise";

const order = workflow("order", async (ctx, cents: number) => ctx.run("charge", () => cents));
const agent = graph("agent", { state: { n: last(0) } })
  .node("go", async () => ({ n: 1 }))
  .edge(START, "go");

/** Compiles when the two types are the same. */
declare function same<A, B extends A>(...different: [A] extends [B] ? [] : [never]): void;

export async function forks(run: Run<typeof order>, any: Run<unknown>): Promise<void> {
  const fork = await run.fork({ at: "Task(3)", id: "b", tags: ["x"], priority: 1, deadline: "1 hour", generation: 0 });
  same<typeof fork, Run<typeof order>>();
  await run.fork({ answers: { "Task(3)": { paid: false }, "Promise(0)": 1 }, effects: "recorded" });
  await any.fork({ at: "Task(0)" });
  same<ForkOptionsOf<typeof order>, ForkAtOptions>();
  // @ts-expect-error a workflow has no steps
  await run.fork({ step: 1 });
  // @ts-expect-error a workflow has no state
  await run.fork({ at: "Task(0)", patch: {} });
  // @ts-expect-error effects are live or recorded
  await run.fork({ at: "Task(0)", effects: "none" });
  // @ts-expect-error a graph is forked by its steps
  const wrong: ForkOptionsOf<typeof agent> = { at: "Node(1.0)" };
  void wrong;
}
