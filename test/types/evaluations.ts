// Evaluations: what is inferred, and what must not compile. Checked by `tsc`, never run.

import { evaluation, flow, graph, last, START, typed, workflow, type Engine, type EvaluationReport } from "reprise";

const support = workflow("support", async (ctx, question: string) => ctx.run("think", () => ({ text: question })));
const agent = graph("agent", { state: { tone: last("kind") }, output: ({ tone }) => tone.length })
  .node("go", async () => ({ tone: "short" }))
  .edge(START, "go");
const quote = flow("quote", { input: typed<number>() })
  .action("price", ["input"], (_ctx, { input }) => input * 10)
  .output(["price"], ({ price }) => price);

/** Compiles when the two types are the same. */
declare function same<A, B extends A>(...different: [A] extends [B] ? [] : [never]): void;

export async function evaluations(engine: Engine<typeof support | typeof agent | typeof quote>): Promise<void> {
  const report = await engine.evaluate(support, {
    runs: { tag: "prod" },
    at: { call: { name: "think", nth: 2 } },
    score: {
      text: (was, is) => {
        same<typeof was.input, string>();
        if (was.status !== "completed" || is.status !== "completed") return 0;
        same<typeof is.output, { text: string }>();
        return Number(was.output.text === is.output.text);
      },
      later: async (_, is) => is.error?.message.length ?? 1,
    },
  });
  same<typeof report, EvaluationReport<typeof support>>();
  const [first] = report.runs;
  const text: string | undefined = first?.is?.output?.text;
  void text;
  const byName = await engine.evaluate("quote", { runs: ["q"], at: { node: "price" }, answers: { price: 7 } });
  const net: number | undefined = byName.runs[0]?.is?.output;
  void net;
  await engine.evaluate(agent, { runs: [], patch: { tone: "short" }, budget: { usd: 5 } });
  evaluation(agent, { score: { length: (was, is) => (is.output ?? 0) - (was.output ?? 0) } });
  // @ts-expect-error the output has no such member
  evaluation(support, { score: { other: (was) => was.output?.other } });
  // @ts-expect-error a score is a number
  evaluation(support, { score: { other: (was) => was.id } });
  // @ts-expect-error the state has no such channel
  await engine.evaluate(agent, { runs: [], patch: { other: 1 } });
  // @ts-expect-error the engine does not know the definition
  await engine.evaluate("nothing", { runs: [] });
  // @ts-expect-error runs are needed
  await engine.evaluate(support, {});
}
