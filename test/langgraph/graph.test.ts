// LangGraph.js on RepriseSaver.

import { Annotation, Command, END, interrupt, MemorySaver, Send, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { RepriseSaver } from "reprise/langgraph";
import { describe, expect, test } from "vitest";

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
  answer: Annotation<string>(),
});

function reviewed(checkpointer: BaseCheckpointSaver) {
  const subgraph = new StateGraph(State)
    .addNode("ask", () => {
      const first: string = interrupt("sure?");
      const second: string = interrupt("really?");
      return { answer: `${first} ${second}`, log: ["asked"] };
    })
    .addEdge(START, "ask")
    .addEdge("ask", END)
    .compile();
  return new StateGraph(State)
    .addNode("draft", () => ({ log: ["drafted"] }))
    .addNode("review", subgraph)
    .addNode("check", ({ log }) => ({ log: [`checked ${log.length}`] }))
    .addNode("publish", ({ answer }) => ({ log: [`published: ${answer}`] }))
    .addEdge(START, "draft")
    .addConditionalEdges("draft", () => [new Send("check", { log: [1] }), new Send("check", { log: [1, 2] }), "review"])
    .addEdge("check", "publish")
    .addEdge("review", "publish")
    .addEdge("publish", END)
    .compile({ checkpointer });
}

type Durability = "sync" | "async" | "exit";

/** Everything the graph gives and leaves behind, without ids and times. */
async function life(checkpointer: BaseCheckpointSaver, durability: Durability): Promise<unknown> {
  const graph = reviewed(checkpointer);
  const config = { configurable: { thread_id: "ann" }, durability };
  const first = await graph.invoke({ log: ["begun"] }, config);
  const second = await graph.invoke(new Command({ resume: "yes" }), config);
  const third = await graph.invoke(new Command({ resume: "indeed" }), config);
  await graph.updateState(config, { log: ["amended"] }, "draft");
  const history = [];
  for await (const { values, next, metadata, tasks } of graph.getStateHistory(config)) {
    const { source, step } = metadata!;
    history.push({ values, next, source, step, tasks: tasks.map(({ name, interrupts }) => [name, interrupts.length]) });
  }
  return { results: [first.log, second.log, third.log, third.answer], history };
}

describe.each<Durability>(["sync", "async", "exit"])("durability %s", (durability) => {
  test("a graph with interrupts, sends and a subgraph behaves as on LangGraph's own saver", async () => {
    await using saver = new RepriseSaver({ store: "sqlite::memory:" });
    const ours = await life(saver, durability);
    expect(ours).toEqual(await life(new MemorySaver(), durability));
    expect(ours).toMatchObject({
      results: [expect.anything(), expect.anything(), expect.arrayContaining(["published: yes indeed"]), "yes indeed"],
    });
  });
});

test("a run forked from an old checkpoint does not change existing checkpoints", async () => {
  await using saver = new RepriseSaver({ store: "sqlite::memory:" });
  let drafts = 0;
  const graph = new StateGraph(State)
    .addNode("draft", () => ({ log: [`draft ${++drafts}`] }))
    .addNode("publish", ({ log }) => ({ answer: log.at(-1)! }))
    .addEdge(START, "draft")
    .addEdge("draft", "publish")
    .addEdge("publish", END)
    .compile({ checkpointer: saver });
  const config = { configurable: { thread_id: "ann" } };
  await graph.invoke({ log: [] }, config);
  const before = await Array.fromAsync(saver.list(config));
  const start = before.find(({ metadata }) => metadata?.step === 0)!;
  const forked = await graph.invoke(null, start.config);
  expect(forked.answer).toBe("draft 2");
  const after = await Array.fromAsync(saver.list(config));
  expect(after.length).toBeGreaterThan(before.length);
  // Writes of the fork join those of the checkpoint it begins at; the checkpoints themselves stand.
  const ids = new Map(after.map((tuple) => [tuple.checkpoint.id, tuple]));
  for (const { checkpoint, metadata, parentConfig } of before)
    expect(ids.get(checkpoint.id)).toMatchObject({ checkpoint, metadata, ...(parentConfig && { parentConfig }) });
  expect((await graph.getState(before[0]!.config)).values.answer).toBe("draft 1");
});
