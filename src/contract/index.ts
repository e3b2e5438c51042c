// Contract: the HTTP API as data: schemas of resources, the operations, the problem document. It runs nothing and knows no server: the
// server, the client over HTTP and the dashboard agree on it.

export * from "./approval-answer.ts";
export { checkJson, checkQuery, type JsonIssue } from "./check-json.ts";
export * from "./change.ts";
export * from "./definition.ts";
export * from "./evaluation.ts";
export * from "./history.ts";
export * from "./json-schema.ts";
export * from "./operation.ts";
export * from "./operations/index.ts";
export * from "./picture.ts";
export * from "./queue.ts";
export * from "./run.ts";
export * from "./shown-text.ts";
export * from "./site.ts";
export * from "./timeline.ts";
