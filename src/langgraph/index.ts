// reprise/langgraph: a checkpointer for LangGraph.js on a Reprise store. This is the only room that imports LangGraph, and
// no other room imports this one.

export { RepriseSaver, type RepriseSaverOptions } from "./saver.ts";
export type { PruneThreadsOptions } from "./thread-retention.ts";
