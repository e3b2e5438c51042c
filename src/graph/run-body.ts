// A graph as the worker runs it: a body whose execution is driven by the interpreter.

import { RepriseError } from "../base/index.ts";
import type { Definition, Schema } from "../kernel/index.ts";
import type { WorkflowBody } from "../workflow/index.ts";
import { misfit } from "./channel.ts";
import { findBadChange } from "./check-result.ts";
import { graphBody, type GraphBody } from "./definition.ts";
import { begin, runGraph, type Position } from "./interpreter.ts";
import { replayGraph } from "./replay.ts";
import { restore } from "./restore.ts";
import type { Change } from "./state.ts";

const bodies = new WeakMap<GraphBody, WorkflowBody>();
const graphs = new WeakMap<WorkflowBody, GraphBody>();

/** The graph a run follows; undefined when it follows something else. */
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
    run: () => Promise.reject(new RepriseError("INVARIANT", "A graph has no function of its own.")),
    drive: async (execution, input, from) =>
      runGraph(execution, body, (from as Position | undefined) ?? begin(execution, body, input)),
    restore: (whole, steps) => restore(body.channels, whole, steps),
    channels: Object.keys(body.channels),
    checkChannel: (name, value) => misfit(body.channels[name], value),
    replay: (past) => replayGraph(body, made, past),
    schema: inputSchema(body),
    ports: body.ports,
    line: body.line,
    label: body.label,
    deadlineMs: body.deadlineMs,
    // Nodes end in any order and their code need not be deterministic: commands are matched by id alone.
    determinism: "per-type",
  };
  return made;
}

/** The input is a first change (P3): channels by name. */
function inputSchema({ name, channels }: GraphBody): Schema<never, unknown> {
  return {
    "~standard": {
      version: 1,
      vendor: "reprise",
      validate(value) {
        if (value === undefined) return { value: {} };
        if (typeof value !== "object" || value === null || Array.isArray(value))
          return {
            issues: [
              { message: `expected a change of channels, such as { ${Object.keys(channels)[0] ?? "name"}: … }` },
            ],
          };
        const stray = Object.keys(value).filter((key) => !Object.hasOwn(channels, key));
        if (stray.length > 0)
          return {
            issues: stray.map((key) => ({
              message: `graph ${name} has no channel ${key}; there are: ${Object.keys(channels).join(", ") || "none"}`,
              path: [key],
            })),
          };
        const found = findBadChange(channels, value as Change);
        return found === undefined ? { value } : { issues: [{ message: found.problem, path: [found.channel] }] };
      },
    },
  };
}
