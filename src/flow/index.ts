// Flow: pipelines. Values derived from values, each node run on any worker the moment what it needs is there (seed 001).
//
// It owns the definition of a flow, its regions, and what follows from a node's value. It does not own rows, leases or
// time: the worker hands it values and commits the plans it makes; the store counts what has arrived (completion.ts).

export { flow, flowBody, isFlow, OUTPUT, type FlowBody, type FlowOptions } from "./definition.ts";
export {
  describeFlow,
  type FlowDescription,
  type FlowEdgeDescription,
  type FlowNodeDescription,
  type FlowNodeKind,
} from "./describe.ts";
export { atOnce } from "./at-once.ts";
export { derive, evaluate, givenOf, SKIPPED, type Evaluated, type Known, type PlannedArrival } from "./evaluate.ts";
export { edgesInto, type Edge, type FlowNode, type Gate, type NodeWork } from "./node.ts";
export type { ActionOptions, Flow, FlowBuilder, Given, Needs, Part, SpreadOptions } from "./parts.ts";
export { regionsOf, type Head, type Region, type Regions } from "./regions.ts";
export { decodeInputs, knownFrom, listFrom, valueIn, type Arrived } from "./inputs.ts";
export { findRef, itemOf, refOf, targetsOf, type NodeRef } from "./items.ts";
export { endOf, planOf, type NodeOutcome, type Plan, type PlanHost } from "./plan.ts";
export { takeIn, type Turn } from "./take-in.ts";
export { flowRunBody } from "./run-body.ts";
export { replayFlow } from "./replay.ts";
export { RecordedNodes, type RecordedNode } from "./recorded.ts";
export { planFlowRetry, type FailedFlow } from "./retry.ts";
