// Changed code: finds a node or a channel that the journal names and the graph no longer has. A node's result is checked
// when it is stored, so only a code change can cause this. The run is blocked with the evidence (rules.A3) and continues
// once the code is fixed.

import type { Execution, Stop } from "../workflow/index.ts";
import type { GraphBody } from "./definition.ts";
import type { StepItem } from "./step-item.ts";
import type { NodeResult } from "./node-run.ts";
import type { WaitingJoin } from "./route.ts";

interface MissingName {
  readonly what: "node" | "channel";
  readonly name: string;
  /** The part of the journal that uses it. */
  readonly by: string;
}

/** Undefined if the graph has every node of the step and every waiting join. */
export function stopAtMissingNode(
  execution: Execution,
  body: GraphBody,
  step: number,
  items: readonly StepItem[],
  waiting: readonly WaitingJoin[],
): Promise<never> | undefined {
  const item = items.find(({ node }) => !body.nodes.has(node));
  if (item !== undefined)
    return stop(execution, body, step, { what: "node", name: item.node, by: "the run continues with" });
  const join = waiting.find(({ node }) => !body.nodes.has(node));
  return join && stop(execution, body, step, { what: "node", name: join.node, by: "nodes have arrived at" });
}

/** Checks the results of a step's nodes, which another process with other code may have recorded. */
export function stopAtUnknownResult(
  execution: Execution,
  body: GraphBody,
  step: number,
  items: readonly StepItem[],
  results: readonly NodeResult[],
): Promise<never> | undefined {
  for (let index = 0; index < results.length; index++) {
    const { change, goto: targets } = results[index]!;
    const node = items[index]?.node;
    for (const name in change)
      if (!Object.hasOwn(body.channels, name))
        return stop(execution, body, step, { what: "channel", name, by: `node ${node} changed` });
    if (targets === undefined) continue;
    for (const name of targets)
      if (typeof name === "string" && !body.nodes.has(name))
        return stop(execution, body, step, { what: "node", name, by: `node ${node} goes to` });
  }
  return undefined;
}

function stop(execution: Execution, body: GraphBody, step: number, { what, name, by }: MissingName): Promise<never> {
  const known = what === "node" ? [...body.nodes.keys()] : Object.keys(body.channels);
  const stopped: Stop = {
    status: "blocked",
    code: "GRAPH_CHANGED",
    where: `step ${step}`,
    seq: execution.stepOf(step - 1)?.seq,
    message: `In step ${step} ${by} the ${what} ${name}, which graph ${body.name} no longer has; its ${what}s are: ${known.join(", ") || "none"}. Restore it, or register the old graph together with the new one under another \`version\`.`,
    expected: name,
    actual: known,
  };
  return execution.halt(stopped);
}
