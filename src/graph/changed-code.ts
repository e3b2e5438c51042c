// Changed code: the journal names a node or a channel that the graph does not have. A node is held to its graph when it
// ends, so only other code than then can find such a thing. The run is stopped with the evidence (A3), not failed: it goes
// on when the code is right again.

import type { Execution, Stop } from "../workflow/index.ts";
import type { GraphBody } from "./definition.ts";
import type { Item } from "./item.ts";
import type { NodeResult } from "./node-run.ts";
import type { WaitingJoin } from "./route.ts";

interface Gone {
  readonly what: "node" | "channel";
  readonly name: string;
  /** What in the journal needs it. */
  readonly by: string;
}

/** Undefined: the graph has every node the step goes on with, and every join that waits. */
export function stopAtGoneNode(
  execution: Execution,
  body: GraphBody,
  step: number,
  items: readonly Item[],
  waiting: readonly WaitingJoin[],
): Promise<never> | undefined {
  const item = items.find(({ node }) => !body.nodes.has(node));
  if (item !== undefined) return stop(execution, body, step, { what: "node", name: item.node, by: "the run goes to" });
  const join = waiting.find(({ node }) => !body.nodes.has(node));
  return join && stop(execution, body, step, { what: "node", name: join.node, by: "others have arrived at" });
}

/** The same for what the nodes of a step, perhaps in another process, have said. */
export function stopAtGoneResult(
  execution: Execution,
  body: GraphBody,
  step: number,
  items: readonly Item[],
  results: readonly NodeResult[],
): Promise<never> | undefined {
  for (const [index, { change, goto: targets }] of results.entries()) {
    const by = `node ${items[index]?.node}`;
    for (const name in change)
      if (!Object.hasOwn(body.channels, name))
        return stop(execution, body, step, { what: "channel", name, by: `${by} changed` });
    for (const name of targets ?? [])
      if (typeof name === "string" && !body.nodes.has(name))
        return stop(execution, body, step, { what: "node", name, by: `${by} goes to` });
  }
  return undefined;
}

function stop(execution: Execution, body: GraphBody, step: number, { what, name, by }: Gone): Promise<never> {
  const known = what === "node" ? [...body.nodes.keys()] : Object.keys(body.channels);
  const stopped: Stop = {
    status: "blocked",
    code: "GRAPH_CHANGED",
    where: `step ${step}`,
    seq: execution.stepOf(step - 1)?.seq,
    message: `In step ${step} ${by} the ${what} ${name}, which graph ${body.name} does not have (any more); there are: ${known.join(", ") || "none"}. Put it back, or register the graph as it was beside the new one, which gets a \`version\` of its own. Then resume the run`,
    expected: name,
    actual: known,
  };
  return execution.halt(stopped);
}
