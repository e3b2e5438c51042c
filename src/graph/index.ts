// Graph: nodes over shared state, a checkpoint after every step. Stands on the workflow room: a node is durable code.

export {
  append,
  channel,
  last,
  max,
  merge,
  type Channel,
  type Changes,
  type LastOptions,
  type Values,
} from "./channel.ts";
export {
  checkpointOf,
  stateValue,
  type Checkpoint,
  type CheckpointParts,
  type StepData,
  type StoredItem,
  type WorkItem,
} from "./checkpoint.ts";
export {
  checkpointFromJson,
  checkpointToJson,
  workItemFromJson,
  workItemToJson,
  type CheckpointJsonOptions,
} from "./checkpoint-json.ts";
export type { NodeContext } from "./context.ts";
export {
  END,
  goto,
  graph,
  isGraph,
  START,
  type Effects,
  type End,
  type Goto,
  type Graph,
  type GraphOptions,
  type GraphPorts,
  type NodeOptions,
  type Start,
} from "./definition.ts";
export { hashOf, placeOfCommand, recordedIO, type NodePlace, type RecordedIO } from "./recorded-io.ts";
export { describeGraph, type EdgeDescription, type GraphDescription, type NodeDescription } from "./describe.ts";
export { graphOfRun, graphRunBody } from "./run-body.ts";
export { schedulerOf, type ItemState, type SchedulerItem } from "./scheduler.ts";
export { SchedulerFold, type SchedulerState } from "./scheduler-journal.ts";
export { forkStep, type ForkStep } from "./fork-step.ts";
