// Programs with `reprise/langgraph` that must compile, and some that must not. Checked by `tsc`, never run.

import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { createEngine, promise, signal, task, workflow } from "reprise";
import { RepriseSaver, type RepriseSaverOptions } from "reprise/langgraph";
import { sqlite } from "reprise/sqlite";

const ping = task("ping", () => "pong");
const hello = workflow(
  "hello",
  { ports: { go: promise<{ ok: boolean }>(), more: signal<number>() } },
  async (ctx, name: string) => `${await ctx.task(ping)} ${name}`,
);

export async function savers(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello, ping] });
  const options: RepriseSaverOptions = { store: sqlite("shop.db"), durability: "relaxed" };
  await using checkpointer = new RepriseSaver(options);
  const shared = new RepriseSaver({ store: engine, serde: checkpointer.serde });
  const graph = new StateGraph(Annotation.Root({ n: Annotation<number>() }))
    .addNode("one", () => ({ n: 1 }))
    .addEdge(START, "one")
    .addEdge("one", END)
    .compile({ checkpointer });
  const { n } = await graph.invoke({}, { configurable: { thread_id: "ann" } });
  console.log(n, await shared.getTuple({ configurable: { thread_id: "ann" } }));
  await shared.close();
}

// @ts-expect-error a store is needed
void new RepriseSaver({});
// @ts-expect-error there is no such option
void new RepriseSaver({ store: "sqlite::memory:", path: "x" });
// @ts-expect-error there is no such durability
void new RepriseSaver({ store: "sqlite::memory:", durability: "exit" });
// @ts-expect-error a codec has a name
void new RepriseSaver({ store: "sqlite::memory:", codec: { encode: () => new Uint8Array(), decode: () => "" } });
