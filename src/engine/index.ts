// Engine: the only room that wires the others. createEngine, the client, run handles. Invariants N1–N3 in engine.ts.

export type {
  BulkAction,
  BulkOptions,
  BulkReport,
  Client,
  DefinitionsIn,
  Engine,
  EngineOptions,
  Filter,
  GenerationOptions,
  JournalOptions,
  Picked,
  QueueHandle,
  QueueInfo,
  ReplayOptions,
  Run,
  RunInfo,
  Schedule,
  ScheduleInfo,
  ScheduleOptions,
  SettleOptions,
  SignalOptions,
  StartOptions,
  UpdateOptions,
  WorkerSettings,
} from "./api.ts";
export {
  checkOutbox,
  checkDurability,
  createEngine,
  DEFAULT_CONCURRENCY,
  DEFAULT_LEASE_MS,
  guardMode,
  queueNames,
  registryOf,
  runtimeText,
} from "./create-engine.ts";
export type { ChannelDiff, DiffOptions, RunDiff, StepDiff } from "./diff-runs.ts";
export type { ForkOptions, ForkSettings } from "./fork-run.ts";
export type { CheckpointAt } from "./lineage.ts";
export type { CheckpointsOptions } from "./run-checkpoints.ts";
export type { OutboxHandler } from "../worker/index.ts";
export { EngineCore, type EngineParts } from "./engine.ts";
export { checkLimits, type Limits } from "./limits.ts";
export { listedInfoOf } from "./run-info.ts";
export { rekey, type RekeyOptions } from "./rekey.ts";
export { queueInfoOf } from "./queue-handle.ts";
export { stderrLogger } from "./logger.ts";
export { openStoreOf } from "./open-store-of.ts";
