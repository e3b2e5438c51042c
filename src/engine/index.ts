// Engine: createEngine, createClient and the handles of runs, schedules and queues. The only room that wires the others.

export type {
  BulkAction,
  BulkOptions,
  BulkReport,
  Client,
  ClientOptions,
  DefinitionsIn,
  DeleteReport,
  Engine,
  EngineOptions,
  OpenPromiseFilter,
  OpenPromiseInfo,
  RunFilter,
  GenerationOptions,
  JournalOptions,
  Picked,
  PruneOptions,
  QueueHandle,
  QueryOptions,
  QueueInfo,
  ForkOptionsOf,
  ReplayOptions,
  ResultOptions,
  Run,
  AttemptCounts,
  RunInfo,
  ScheduleHandle,
  ScheduleInfo,
  ScheduleOptions,
  SettleOptions,
  SignalOptions,
  StartOptions,
  CloseOptions,
  StreamChunk,
  StreamReset,
  StreamValue,
  StreamOptions,
  TimeOrAge,
  UpdateOptions,
  WorkerSettings,
} from "./api.ts";
export type { HoldingWorker, LiveWorker, PendingItems, SlotHolding, WaitReason } from "../explain/index.ts";
export { createClient } from "./create-client.ts";
export { createEngine, loadEngineCore } from "./create-engine.ts";
export {
  checkDurability,
  checkMemory,
  checkOutbox,
  checkTelemetry,
  DEFAULT_CONCURRENCY,
  DEFAULT_LEASE_MS,
  guardMode,
  queueNames,
  registryOf,
  checkCode,
  runtimeText,
} from "./engine-options.ts";
export type { ChannelDiff, DiffOptions, RunDiff, RunDiffOf, StepDiff } from "./diff-runs.ts";
export type { CommandDiff, WorkflowDiff } from "./diff-commands.ts";
export type { FlowDiff, NodeDiff } from "./diff-nodes.ts";
export type { StepAnswer, ValueDiff } from "./diff-items.ts";
export type { ForkAtOptions } from "./fork-at.ts";
export type {
  EvaluatedRun,
  EvaluateOptions,
  EvaluationCounts,
  EvaluationPlace,
  EvaluationReport,
  OutcomeError,
  RunOutcome,
  Scorer,
  ScoreSummary,
} from "./evaluation.ts";
export { evaluation, isEvaluation, type Evaluation, type EvaluationOptions } from "./define-evaluation.ts";
export { openEvaluationEngine } from "./evaluation-engine.ts";
export { EVALUATION, evaluationTag, keepReport, readReport } from "./evaluation-report.ts";
export type { ForkCall } from "./fork-call.ts";
export type { ForkOptions, ForkSettings } from "./fork-run.ts";
export type { MigrateOptions } from "./migrate-run.ts";
export type { CheckpointAt } from "../explain/index.ts";
export { budgetOf, type Budget, type BudgetAnswerOptions, type BudgetRequestInfo } from "./run-budget.ts";
export type { CheckpointsOptions } from "./run-checkpoints.ts";
export { checkWebhooks, type Webhook } from "./webhook-options.ts";
export type { OpenedPromise, WebhookBody } from "../worker/index.ts";
export type { ForeignAnswer, ForeignMemos, MemoQuestion, OutboxHandler, SampledMemo } from "../worker/index.ts";
export {
  abortable,
  AbortableGenerator,
  checkSignal,
  onAbort,
  openUnlessAborted,
  unlessAborted,
  waitFor,
  type WaitOptions,
} from "./abort.ts";
export type { EngineCore, EngineParts } from "./engine.ts";
export { checkLimits, type Limits } from "./limits.ts";
export { JournalReplayer, type RecordedRun } from "./replay-recorded.ts";
export { planLiveCopy, runLiveCopy, type LiveCopy, type LiveOptions, type LiveSource } from "./live-copy.ts";
export type { Resumed } from "./resume-replay.ts";
export { checkRunFilter, timeOf } from "./run-filter.ts";
export { listedInfoOf } from "./run-info.ts";
export { listPromises } from "./list-promises.ts";
export { liveReadsOf, type ChangeListener, type LiveReads } from "./live-reads.ts";
export { rekey, type RekeyOptions } from "./rekey.ts";
export { queueInfoOf } from "./queue-handle.ts";
export { verifyPure, type PureStepVerdict, type PureVerification } from "./verify-pure.ts";
export { checkLogger } from "./logger.ts";
export { isClosing, openStoreOf } from "./open-store-of.ts";
export { runAccessOf, type RunAccess } from "./run-access.ts";
