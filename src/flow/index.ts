// Flow: pipelines of named values; each node runs on any worker as soon as the values it needs exist (seed 001).
//
// This room owns the definition of a flow, its regions, and the plan that follows from a node's value. It does not own rows,
// leases or time: the worker passes values in and commits the plans; the store counts arrivals (complete-node.ts).

export { flow, flowBody, isFlow, OUTPUT, type FlowBody } from "./definition.ts";
export {
  describeFlow,
  describeFlowBody,
  type FlowDescription,
  type FlowEdgeDescription,
  type FlowNodeDescription,
  type FlowNodeKind,
} from "./describe.ts";
export { requireSynchronous } from "./require-synchronous.ts";
export {
  derive,
  evaluate,
  neededValues,
  SKIPPED,
  type Evaluation,
  type ValuesByNode,
  type PlannedArrival,
} from "./evaluate.ts";
export { edgesInto, SPREAD_SUFFIX, type FlowEdge, type FlowNode, type BranchGuard, type NodeWork } from "./node.ts";
export type { ActionOptions, Flow, FlowBuilder, FlowOptions, NeededValues, FlowPart, SpreadOptions } from "./parts.ts";
export { regionsOf, type Head, type Region, type Regions } from "./regions.ts";
export { decodeInputs, valuesFrom, spreadListFrom, valueInEntry, type DecodedArrival } from "./inputs.ts";
export {
  findRef,
  parseItemName,
  spreadItemName,
  requireRef,
  inputTargets,
  type NodeRef,
  type ParsedItemName,
} from "./items.ts";
export { hasKey, slotOf } from "./keys.ts";
export {
  entriesPerPortion,
  planCompletion,
  planEnd,
  planPortion,
  routeOf,
  type CompletionPlan,
  type NodeOutcome,
  type PlanHost,
} from "./plan.ts";
export { isForkable, planFlowFork, sortNodes, type FlowFork } from "./fork.ts";
export { findMisfit, routesOf, type LiveFlow } from "./fit.ts";
export { planTurn, type FlowTurn } from "./plan-turn.ts";
export { flowRunBody } from "./run-body.ts";
export { replayFlow } from "./replay.ts";
export { effectiveFlowEntries, isNodeEnd, RecordedNodes, type NodeEndEntry } from "./recorded-nodes.ts";
export { planFlowRetry, type FailedFlow } from "./retry.ts";
