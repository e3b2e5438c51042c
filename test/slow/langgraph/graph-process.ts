// A process with a LangGraph graph on a RepriseSaver: `graph-process.ts <database> <thread> <input as JSON>`.
// It tells its parent which node began, and how it ended. A node named in HANG says so and never ends.

import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { RepriseSaver } from "reprise/langgraph";

const [path, thread, input = "null"] = process.argv.slice(2);
const tell = (message: object): void => void process.send!(message);

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
});

async function begin(node: string): Promise<void> {
  tell({ began: node });
  // The channel to the parent keeps the process alive.
  if (process.env["HANG"] === node) await new Promise(() => {});
}

const graph = new StateGraph(State)
  .addNode("draft", async () => {
    await begin("draft");
    return { log: ["draft"] };
  })
  .addNode("review", async () => {
    await begin("review");
    const answer: string = interrupt("publish?");
    return { log: [`review: ${answer}`] };
  })
  .addNode("publish", async () => {
    await begin("publish");
    return { log: ["publish"] };
  })
  .addEdge(START, "draft")
  .addEdge("draft", "review")
  .addEdge("review", "publish")
  .addEdge("publish", END)
  .compile({ checkpointer: new RepriseSaver({ store: `sqlite:${path}` }) });

const { resume, ...values } = (JSON.parse(input) ?? {}) as { resume?: string; log?: string[] };
const asked = resume === undefined ? (values.log === undefined ? null : values) : new Command({ resume });
const result = await graph.invoke(asked as Parameters<typeof graph.invoke>[0], {
  configurable: { thread_id: thread },
  durability: "sync",
});
tell({ log: result.log, isInterrupted: "__interrupt__" in result });
