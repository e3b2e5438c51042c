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
  TimerOptions,
  ScheduledTask,
  ContinueOptions,
  Determinism,
  DurableContext,
  DurableState,
  OperationContext,
  InputOperationOptions,
  OperationOptions,
  PromiseOptions,
  PromiseSettleOptions,
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
export { commandsNamed } from "./find-call.ts";
export { startedData } from "./started-data.ts";
export { Execution } from "./execution.ts";
export { PARENT_DEADLINE_PASSED, stalled } from "./execution-host.ts";
export {
  violated,
  type AcceptedInput,
  type CodeOutcome,
  type ExecutionHost,
  type LogLevel,
  type PureCall,
  type RunIdentity,
  type Stop,
} from "./execution-host.ts";
export { Guard, OutsideGuard, type GuardMode } from "./guard.ts";
export { compareFields, MATRIX, type CommandName, type Differs } from "./validation-matrix.ts";
export { answerQuery } from "./queries.ts";
export type { SentNodeMessage } from "./running-nodes.ts";
export { callInStep, callOutside, nodeOfCaller, nodePrefix, nodeScope, type NodeScope } from "./scope.ts";
export {
  isNotStarted,
  decodeEffectiveEntries,
  freshJournal,
  indexJournal,
  indexJournalInTurns,
  type RecordedJournal,
} from "./recorded-journal.ts";
export { effectNotRecorded } from "./execution-host.ts";
export { ForkAnswers, overridePromise, type AnswerableCall, type GivenAnswer } from "./fork-answers.ts";
export type { OpeningEntry } from "./open-commands.ts";
export { findForkPlace, type ForkPlace } from "./fork-place.ts";
export {
  joinShared,
  originIn,
  readChainAt,
  readHistory,
  readShared,
  readSharedAsWritten,
  type HistorySource,
  type SharedEntries,
  type SharedHistory,
} from "./shared-history.ts";
export { seedAfter } from "./seeded-random.ts";
export { openWorkIn, planRetry, type PlannedRetry, type RetryPlan } from "./retry-plan.ts";
export { findStall } from "./find-stall.ts";
export { findUnawaited } from "./find-unawaited.ts";
export {
  drain,
  driveThrough,
  endDifference,
  isSameText,
  replayEndOf,
  replayJournal,
  type Replay,
  notedInputChanges,
  type NotedInputChange,
  type Delivered,
  type OnDelivery,
  type ReplayDifference,
  type ReplayEnd,
  type ReplaySource,
} from "./replay.ts";
export type { Undo } from "./undo.ts";
export type { Wait } from "./waits.ts";
export { CURRENT_FLAGS, REPLAY_FLAGS, unknownFlags } from "./replay-flags.ts";
