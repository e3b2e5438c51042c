// reprise/describe: graphs and flows as plain data, for diagrams and tools.

export {
  describeFlow,
  type FlowDescription,
  type FlowEdgeDescription,
  type FlowNodeDescription,
  type FlowNodeKind,
} from "./flow/index.ts";
export {
  describeGraph,
  type GraphDescription,
  type GraphEdgeDescription,
  type GraphNodeDescription,
} from "./graph/index.ts";
