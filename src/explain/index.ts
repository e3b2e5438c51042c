// Explain: why a run does not move: what its rows and its journal say about open work, and one decision over those facts.

export { explain, explainRun, type ExplainedRun } from "./explain.ts";
export { explainBacklog, type ExplainedBacklog } from "./explain-backlog.ts";
export { explainSchedule, scheduleFacts } from "./explain-schedule.ts";
export { workerText } from "./sentences.ts";
export type { HoldingWorker, LiveWorker, PendingItems, SlotHolding, WaitFacts, WaitReason } from "./reasons.ts";
export {
  attemptOf,
  effectiveEntries,
  isGraphNode,
  nodeOf,
  stepsOf,
  timerEndOf,
  typedEntryOf,
  type Step,
  type StepKind,
  type TypedEntry,
} from "./steps.ts";
