// Engine: createEngine, createClient and the handles of runs, schedules and queues. The only room that wires the others.

export type {
  BulkAction,
  BulkOptions,
  BulkReport,
  Client,
  ClientOptions,
  DefinitionsIn,
  Engine,
  EngineOptions,
  RunFilter,
  GenerationOptions,
  JournalOptions,
  Picked,
  QueueHandle,
  QueryOptions,
  QueueInfo,
  ReplayOptions,
  ResultOptions,
  Run,
  RunInfo,
  ScheduleHandle,
  ScheduleInfo,
  ScheduleOptions,
  SettleOptions,
  SignalOptions,
  StartOptions,
  StreamChunk,
  StreamOptions,
  UpdateOptions,
  WorkerSettings,
} from "./api.ts";
export { createClient } from "./create-client.ts";
export { createEngine, loadEngineCore } from "./create-engine.ts";
export {
  checkDurability,
  checkOutbox,
  DEFAULT_CONCURRENCY,
  DEFAULT_LEASE_MS,
  guardMode,
  queueNames,
  registryOf,
  runtimeText,
} from "./engine-options.ts";
export type { ChannelDiff, DiffOptions, RunDiff, StepDiff } from "./diff-runs.ts";
export type { ForkOptions, ForkSettings } from "./fork-run.ts";
export type { CheckpointAt } from "./lineage.ts";
export type { CheckpointsOptions } from "./run-checkpoints.ts";
export type { OutboxHandler } from "../worker/index.ts";
export { AbortableGenerator, onAbort, unlessAborted } from "./abort.ts";
export type { EngineCore, EngineParts } from "./engine.ts";
export { checkLimits, type Limits } from "./limits.ts";
export { listedInfoOf } from "./run-info.ts";
export { rekey, type RekeyOptions } from "./rekey.ts";
export { queueInfoOf } from "./queue-handle.ts";
export { stderrLogger } from "./logger.ts";
export { openStoreOf } from "./open-store-of.ts";
