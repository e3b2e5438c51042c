// Graph run body: a graph as the worker runs it, driven by the interpreter.

import { RepriseError } from "../base/index.ts";
import type { Definition, Schema } from "../kernel/index.ts";
import type { WorkflowBody } from "../workflow/index.ts";
import { findMisfit } from "./channel.ts";
import { findBadChange } from "./check-result.ts";
import { graphBody, type GraphBody } from "./definition.ts";
import { beginGraph, runGraph, type Position } from "./interpreter.ts";
import { replayGraph } from "./replay.ts";
import { restore } from "./restore.ts";
import type { StateChange } from "./state.ts";

const bodies = new WeakMap<GraphBody, WorkflowBody>();
const graphs = new WeakMap<WorkflowBody, GraphBody>();

/** Undefined if the run is not a graph's. */
export function graphOfRun(body: WorkflowBody): GraphBody | undefined {
  return graphs.get(body);
}

export function graphRunBody(definition: Definition): WorkflowBody {
  const body = graphBody(definition);
  let made = bodies.get(body);
  if (made === undefined) {
    bodies.set(body, (made = runBodyOf(body)));
    graphs.set(made, body);
  }
  return made;
}

function runBodyOf(body: GraphBody): WorkflowBody {
  const made: WorkflowBody = {
    kind: "graph",
    name: body.name,
    version: body.version,
    run: () => Promise.reject(new RepriseError("INVARIANT", "A graph has no workflow function.")),
    drive: async (execution, input, from) =>
      runGraph(execution, body, (from as Position | undefined) ?? beginGraph(execution, body, input)),
    restore: (whole, steps) => restore(body.channels, whole, steps),
    channels: Object.keys(body.channels),
    checkChannel: (name, value) => findMisfit(body.channels[name], value),
    replay: (past) => replayGraph(body, made, past),
    schema: inputSchema(body),
    ports: body.ports,
    slotOptions: body.slotOptions,
    label: body.label,
    deadlineMs: body.deadlineMs,
    retention: body.retention,
    budget: body.budget,
    // Nodes end in any order and their code may be nondeterministic, so commands are matched by id only.
    determinism: "per-type",
  };
  return made;
}

/** The input is the first change (rules.P3): channels by name. */
function inputSchema({ name, channels }: GraphBody): Schema<never, unknown> {
  return {
    "~standard": {
      version: 1,
      vendor: "reprise",
      validate(value) {
        if (value === undefined) return { value: {} };
        if (typeof value !== "object" || value === null || Array.isArray(value))
          return {
            issues: [{ message: `expected changes of channels, such as { ${Object.keys(channels)[0] ?? "name"}: … }` }],
          };
        const stray = Object.keys(value).filter((key) => !Object.hasOwn(channels, key));
        if (stray.length > 0)
          return {
            issues: stray.map((key) => ({
              message: `graph ${name} has no channel ${key}; its channels are: ${Object.keys(channels).join(", ") || "none"}`,
              path: [key],
            })),
          };
        const found = findBadChange(channels, value as StateChange);
        return found === undefined ? { value } : { issues: [{ message: found.problem, path: [found.channel] }] };
      },
    },
  };
}
