// Workflow: durable code. Definitions, the context, command matching, replay.
//
// It owns the promise graph of a run (`execution.ts`), the identity of commands and their comparison with the journal
// (`command-matcher.ts`, `validation-matrix.ts`), the text of entries (`entry-data.ts`) and the replay flags.
// It does not own leases, commits or the execution of tasks.

export type {
  CommandRequest,
  CancelTimerRequest,
  ChildRequest,
  EmitRequest,
  LimitWaitRequest,
  OperationRequest,
  PatchRequest,
  PauseEvidence,
  PromiseRequest,
  StateRequest,
  StepRequest,
  StopNodesRequest,
  StoppedNode,
  TaskRequest,
  TimerRequest,
} from "./command-request.ts";
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
export { isViolation } from "./command-matcher.ts";
export { createContext, idempotencyKeyOf } from "./context-object.ts";
export { never, describeDefinition } from "./refusals.ts";
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
export { PARENT_DEADLINE_PASSED, stalled } from "./execution-host.ts";
export {
  violated,
  type AcceptedInput,
  type CodeOutcome,
  type ExecutionHost,
  type LogLevel,
  type RunIdentity,
  type Stop,
} from "./execution-host.ts";
export { Guard, OutsideGuard, type GuardMode } from "./guard.ts";
export { compareFields, MATRIX, type CommandName } from "./validation-matrix.ts";
export { answerQuery } from "./queries.ts";
export type { SentNodeMessage } from "./running-nodes.ts";
export { callInStep, callOutside, nodeOfCaller, nodePrefix, nodeScope, type NodeScope } from "./scope.ts";
export {
  isNotStarted,
  decodeEffectiveEntries,
  freshJournal,
  indexJournal,
  type RecordedJournal,
} from "./recorded-journal.ts";
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
  type ReplaySource,
} from "./replay.ts";
export type { Undo } from "./undo.ts";
export type { Wait } from "./waits.ts";
export { CURRENT_FLAGS, REPLAY_FLAGS, unknownFlags } from "./replay-flags.ts";
