// reprise/langgraph: a checkpointer for LangGraph.js on a Reprise store. The only room that knows LangGraph; no other
// room imports it. Invariants L1–L4 in saver.ts.

export { RepriseSaver, type RepriseSaverOptions } from "./saver.ts";
