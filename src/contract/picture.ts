// Pictures: a graph or flow as nodes and edges, and what a run did with them. The dashboard, `reprise graph` and the API draw this model.

import { RUN_STATUSES } from "../kernel/index.ts";
import { boolean, integer, list, object, oneOf, optional, text, type Static } from "./json-schema.ts";

const node = {
  id: text(),
  name: text(),
  kind: oneOf(["node", "items", "join", "action", "part", "call", "inline", "parallel", "spread", "when"]),
  notes: list(text(), { description: "What the definition says about it, such as `once per item`." }),
  open: boolean("It has no edges: it ends the run, or `goto` decides at run time."),
};
const edge = {
  from: optional(text({ description: "Absent: the start, or the input." })),
  to: optional(text({ description: "Absent: the end, or the output." })),
  kind: oneOf(["always", "conditional", "spread", "value", "branch", "goto"]),
  label: optional(text({ description: "In the order of evaluation: `if …`, `else if …`, `else`." })),
};

export const picture = object({ nodes: list(object(node)), edges: list(object(edge)) });
export type Picture = Static<typeof picture>;
export type PictureNode = Picture["nodes"][number];
export type PictureEdge = Picture["edges"][number];

/**
 * `idle`: not reached. `pending`: some of its inputs have arrived. `waiting`: its code waits for a timer, a message, a person or a child.
 * `retrying`: it waits for its next attempt. `skipped`: its branch was not taken. `cancelled`: the run ended before it.
 */
export const NODE_STATES = [
  "idle",
  "pending",
  "queued",
  "running",
  "waiting",
  "retrying",
  "completed",
  "failed",
  "skipped",
  "cancelled",
] as const;

export const progress = object({ done: integer(), total: integer(), failed: integer(), running: integer() });

export const runPicture = object({
  id: text(),
  definition: text(),
  version: integer(),
  kind: oneOf(["graph", "flow"]),
  status: oneOf(RUN_STATUSES),
  step: optional(integer({ description: "Of a graph: the last committed step, or the one that was asked for." })),
  started: boolean(),
  ended: boolean("It completed, so that it reached the end or the output."),
  nodes: list(
    object({
      ...node,
      state: oneOf(NODE_STATES),
      text: optional(text({ description: "The state for people, such as `341 of 500, 2 failed`." })),
      runs: integer({ description: "How often it completed." }),
      active: integer({ description: "How many of its executions are queued, run or wait." }),
      attempts: integer({ description: "Of its latest execution." }),
      step: optional(integer({ description: "The newest step of a graph in which it ran or runs." })),
      tookMs: optional(integer()),
      progress: optional(progress),
      arrived: optional(list(text(), { description: "Of a join that waits: the nodes that have arrived." })),
      inputs: optional(object({ completed: integer(), required: integer() })),
      child: optional(text({ description: "The id of the child run." })),
      children: optional(list(text(), { description: "The definitions of the children that it started." })),
    }),
  ),
  edges: list(
    object({
      ...edge,
      taken: integer({ description: "How often. Targets of `goto` are edges, too." }),
      live: boolean("It leads to what is queued, runs or waits now."),
    }),
  ),
});
export type RunPicture = Static<typeof runPicture>;
export type RunPictureNode = RunPicture["nodes"][number];
export type RunPictureEdge = RunPicture["edges"][number];
