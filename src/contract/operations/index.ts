// Operations: the lines of the HTTP API, by noun.

export * from "./access.ts";
export * from "./approval-links.ts";
export * from "./control.ts";
export * from "./definitions.ts";
export * from "./evals.ts";
export * from "./events.ts";
export * from "./hooks.ts";
export * from "./exact.ts";
export * from "./mcp.ts";
export * from "./messages.ts";
export * from "./monitor.ts";
export * from "./promises.ts";
export * from "./queues.ts";
export * from "./run-reads.ts";
export * from "./runs.ts";
export * from "./schedules.ts";
export * from "./site.ts";
export * from "./streams.ts";
