// Process: what every process on a store has, whether it executes runs or only starts them: the registry of definitions,
// new runs and planned times, polling for changes, the log.

export { executionHostOf, type ExecutionHostParts } from "./execution-host.ts";
export { childRun, firstEntryOf, newRun, nextRun, startSpan, type NewRunHost, type NewRunOptions } from "./new-run.ts";
export { endSpans } from "./end-spans.ts";
export { LineLimiter } from "./line-limiter.ts";
export { Poller } from "./poller.ts";
export { ProcessLog, type LogLine } from "./process-log.ts";
export { Registry, versionOf } from "./registry.ts";
export { parseCron, timesOf } from "./schedule-times.ts";
export { plannedRun, scheduledRun } from "./scheduled-run.ts";
