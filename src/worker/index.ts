// Worker: who executes. Claim loop, leases, hot runs, operations and tasks, group commit. Invariants R1–R5 in worker.ts.

export type { OutboxHandler } from "./deliveries.ts";
export { newRun } from "./new-run.ts";
export { Registry, versionOf } from "./registry.ts";
export { plannedRun, scheduledRun, type ScheduledRunHost } from "./scheduled-run.ts";
export { parseCron, timesOf } from "./schedule-times.ts";
export { Worker, type WorkerOptions } from "./worker.ts";
