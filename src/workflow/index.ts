// Workflow: durable code. Definitions, the context, command matching, replay.
//
// What it owns: the promise graph of a run (`execution.ts`), the identity of commands and their comparison with the
// journal (`matrix.ts`, `recorded.ts`), the text of entries (`entry-data.ts`), our own replay flags.
// What it does not: who holds the run, when something is durable, what executes a task. Invariants E1–E5.

export type {
  Ask,
  CancelTimerAsk,
  ChildAsk,
  EmitAsk,
  LimitWaitAsk,
  OperationAsk,
  PatchAsk,
  PauseEvidence,
  PromiseAsk,
  StateAsk,
  StepAsk,
  StopNodesAsk,
  StoppedNode,
  TaskAsk,
  TimerAsk,
} from "./ask.ts";
export type {
  Child,
  ChildOptions,
  ContinueOptions,
  Determinism,
  DurableContext,
  DurableState,
  OperationContext,
  OperationOptions,
  TaskCallOptions,
  Timer,
  WorkflowContext,
  WorkflowOptions,
} from "./context.ts";
export { isViolation } from "./commands.ts";
export { createContext, idempotencyKeyOf } from "./context-object.ts";
export { never, titleOf } from "./refusals.ts";
export { EmittedChunks, encodeChunk } from "./emit-chunk.ts";
export {
  checkPorts,
  isWorkflow,
  workflow,
  workflowBody,
  type Restored,
  type Workflow,
  type WorkflowBody,
} from "./definition.ts";
export * as entryData from "./entry-data.ts";
export { Execution } from "./execution.ts";
export { DEADLINE_PASSED, stalled } from "./execution-host.ts";
export type { Accepted, CodeOutcome, ExecutionHost, LogLevel, RunFacts, Stop } from "./execution-host.ts";
export { Guard, OutsideGuard, type GuardMode } from "./guard.ts";
export { compareFields, MATRIX, type CommandName } from "./matrix.ts";
export { answerQuery } from "./queries.ts";
export type { SentByNode } from "./nodes.ts";
export { callInStep, callOutside, nodeOfCaller, nodePrefix, nodeScope, type NodeScope } from "./scope.ts";
export {
  countedEntries,
  decodeEntry,
  freshJournal,
  indexJournal,
  type Recorded,
  type RecordedEntry,
} from "./recorded.ts";
export { planRetry, type PlannedRetry, type RetryPlan } from "./retry-plan.ts";
export { findStall } from "./find-stall.ts";
export {
  drain,
  driveThrough,
  endDifference,
  isSameText,
  replayEndOf,
  replayJournal,
  type Replay,
  type ReplayDifference,
  type ReplayEnd,
  type ReplayedPast,
} from "./replay.ts";
export type { Undo } from "./undo.ts";
export type { Wait } from "./waits.ts";
export { CURRENT_FLAGS, REPLAY_FLAGS, unknownFlags } from "./replay-flags.ts";
