// Kernel: the rules every kind of run keeps. Pure: no I/O, no clock, no SQL.
//
// What it owns: runs and their statuses, the journal and its hash chain, the writes and their outcomes, the Store port,
// and what workflows, graphs and flows share (definitions, tasks, ports, schemas).
// What it does not: how a database keeps a promise (stores), how code is replayed (workflow), who executes (worker).

export * from "./commit.ts";
export * from "./definition.ts";
export * from "./journal.ts";
export * from "./ports.ts";
export * from "./run.ts";
export * from "./schema.ts";
export * from "./store.ts";
export * from "./task.ts";
export * from "./events.ts";
export * from "./retry.ts";
