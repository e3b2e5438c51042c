// Explain: why a run does not move: what its rows and its journal say about open work, and one decision over those facts.

export { explain, explainRun, type ExplainedRun } from "./explain.ts";
export { explainBacklog, type ExplainedBacklog } from "./explain-backlog.ts";
export { explainSchedule, scheduleFacts } from "./explain-schedule.ts";
export { withPayloads, workerText } from "./sentences.ts";
export type { HoldingWorker, LiveWorker, PendingItems, SlotHolding, WaitFacts, WaitReason } from "./reasons.ts";
export {
  errorIn,
  executionTimes,
  newStep,
  StepFold,
  stepsOf,
  type CurrentStep,
  type EndedExecution,
  type HolderSign,
  type SpreadTimes,
  type Step,
  type StepKind,
  type StepState,
} from "./step-fold.ts";
export {
  getCheckpoint,
  readLineage,
  type CheckpointAt,
  type FoundCheckpoint,
  type Lineage,
  type LineageRange,
} from "./lineage.ts";
export {
  attemptOf,
  effectiveEntries,
  isGraphNode,
  nodeOf,
  timerEndOf,
  typedEntryOf,
  type TypedEntry,
} from "./typed-entry.ts";
export { executionText, failedAttemptLines, markOf, thrownAt, type TimelineMark } from "./attempt-texts.ts";
export { offsetText, TimelineReader, type Line, type Tone } from "./entry-line.ts";
export { bytesOf, bytesText, changedText, nodesText, placeText, stepText } from "./node-texts.ts";
export { changesOf, tallyOf, tallyText, type ChannelChange, type NodeTally } from "./step-changes.ts";
export {
  currentStateOf,
  eachEntry,
  lastStepOf,
  readGraphRun,
  StepReader,
  type CurrentNode,
  type GraphNodeState,
  type GraphRun,
  type GraphStep,
  type StepRange,
} from "./graph-run.ts";
export { FAILED_ITEMS, FlowReader, type FailedItem, type VoidRange } from "./flow-fold.ts";
export {
  isCompletedItem,
  readFlowRun,
  rowsOf,
  type FlowNodeState,
  type FlowRow,
  type FlowRowKind,
  type FlowRun,
  type SpreadCounts,
} from "./flow-run.ts";
