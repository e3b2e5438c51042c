// Graph: nodes over shared state, with a checkpoint after every step. Built on the workflow room: a node is durable code.

export {
  append,
  channel,
  last,
  max,
  merge,
  type Channel,
  type ChannelChanges,
  type LastOptions,
  type ChannelValues,
} from "./channel.ts";
export {
  createCheckpoint,
  stateValue,
  type Checkpoint,
  type CheckpointParts,
  type WorkItem,
} from "./checkpoint-view.ts";
export {
  checkpointFromJson,
  checkpointToJson,
  workItemFromJson,
  workItemToJson,
  type CheckpointJsonOptions,
} from "./checkpoint-json.ts";
export type { NodeContext } from "./node-context.ts";
export {
  END,
  goto,
  graph,
  isGraph,
  START,
  type NodeEffects,
  type End,
  type Goto,
  type Graph,
  type GraphOptions,
  type GraphPorts,
  type NodeOptions,
  type Start,
} from "./definition.ts";
export { hashValue, parseNodeCommand, recordedIO, type NodeCommand, type RecordedIO } from "./recorded-io.ts";
export {
  describeGraph,
  describeGraphBody,
  type GraphEdgeDescription,
  type GraphDescription,
  type GraphNodeDescription,
} from "./describe.ts";
export { graphOfRun, graphRunBody } from "./run-body.ts";
export { schedulerOf, type SchedulerItemState, type SchedulerItem } from "./scheduler.ts";
export { SchedulerFold, type SchedulerState } from "./scheduler-journal.ts";
export { forkStep, type ForkStep } from "./fork-step.ts";
