// LangGraph.js: a chain of ten nodes with a checkpointer on PostgreSQL or SQLite.
//
// Durability "sync": a checkpoint is written before the next node starts, as in Reprise. The default, "async", writes it meanwhile and loses
// the last node if the process dies; LANGGRAPH_DURABILITY=async measures it.

import { randomUUID } from "node:crypto";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

async function saverOf(url, connections) {
  if (url.startsWith("postgres")) {
    const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres");
    const { default: pg } = await import("pg");
    const pool = new pg.Pool({ connectionString: url, max: connections });
    const saver = new PostgresSaver(pool);
    await saver.setup();
    return { saver, close: () => pool.end() };
  }
  const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
  const { default: Database } = await import("better-sqlite3");
  const database = new Database(url);
  database.pragma("journal_mode = WAL");
  // As in Reprise, whatever default the driver was built with.
  database.pragma("synchronous = FULL");
  return { saver: new SqliteSaver(database), close: () => database.close() };
}

export async function open({ url, connections, chainLength }) {
  const { saver, close } = await saverOf(url, connections);
  const State = Annotation.Root({ count: Annotation({ reducer: (_old, next) => next, default: () => 0 }) });
  const names = Array.from({ length: chainLength }, (_, index) => `node${index}`);
  let builder = new StateGraph(State);
  for (const name of names) builder = builder.addNode(name, async ({ count }) => ({ count: count + 1 }));
  builder = builder.addEdge(START, names[0]).addEdge(names.at(-1), END);
  for (let index = 1; index < names.length; index += 1) builder = builder.addEdge(names[index - 1], names[index]);
  const graph = builder.compile({ checkpointer: saver });
  const durability = process.env.LANGGRAPH_DURABILITY ?? "sync";
  return {
    async chain() {
      const config = { configurable: { thread_id: randomUUID() }, durability };
      const { count } = await graph.invoke({ count: 0 }, config);
      return count;
    },
    close,
  };
}
