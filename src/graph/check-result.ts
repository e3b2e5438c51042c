// Check result: validates what a node returned before it is stored. A wrong result is a bug in the node, so it is not
// retried. A graph's input is its first change (rules.P3) and is validated in the same way.

import { RepriseError } from "../base/index.ts";
import { isPlain, findMisfit, type Channels } from "./channel.ts";
import { isEnd, type End, type GraphBody } from "./definition.ts";
import type { StateChange } from "./state.ts";

/** The part of a node's entry that its function returned. END is stored as null. */
export interface StoredResult {
  readonly change?: StateChange;
  readonly goto?: readonly (string | null)[];
}

export function checkResult(body: GraphBody, node: string, result: unknown): StoredResult {
  if (result === undefined) return {};
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_GRAPH", `Graph ${body.name}: node ${node} ${problem}.`);
  };
  if (!isPlain(result)) {
    const example = `{ ${Object.keys(body.channels)[0] ?? "name"}: … }`;
    return refuse(`returned ${kindOf(result)}; expected changes of channels such as ${example}, a goto(…), or nothing`);
  }
  const { goto: to, change } = "goto" in result ? (result as { goto: unknown; change?: unknown }) : { change: result };
  if (change !== undefined) {
    if (!isPlain(change)) return refuse(`changed ${kindOf(change)}; expected channels by name`);
    const found = findBadChange(body.channels, change);
    if (found !== undefined) refuse(found.problem);
  }
  const kept = change === undefined ? {} : { change };
  return to === undefined && !("goto" in result) ? kept : { goto: targetsOf(body, to, refuse), ...kept };
}

function targetsOf(body: GraphBody, to: unknown, refuse: (problem: string) => never): readonly (string | null)[] {
  const targets = (Array.isArray(to) ? to : [to]) as (string | End)[];
  const names = (): string => [...body.nodes.keys()].join(", ");
  if (targets.length === 0) return refuse("returned a goto to an empty list; name at least one node, or END");
  return targets.map((target) => {
    if (isEnd(target)) return null;
    if (typeof target !== "string" || !body.nodes.has(target))
      return refuse(
        `returned a goto to ${typeof target === "string" ? target : kindOf(target)}, which is not a node; the nodes are: ${names()}`,
      );
    if (body.itemNodes.has(target))
      return refuse(
        `returned a goto to ${target}, which runs once per item of a spread; a goto has no item. Add a separate node for it`,
      );
    return target;
  });
}

/** Undefined if every channel accepts its part of the change. */
export function findBadChange(
  channels: Channels,
  change: StateChange,
): { readonly channel: string; readonly problem: string } | undefined {
  for (const name of Object.keys(change)) {
    const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
    if (channel === undefined) {
      const known = Object.keys(channels).join(", ") || "none";
      return { channel: name, problem: `changed ${name}, which is not a channel; the channels are: ${known}` };
    }
    const wrong = findMisfit(channel, change[name]);
    if (wrong !== undefined) return { channel: name, problem: `changed ${name}, which ${wrong}` };
  }
  return undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value !== "object") return typeof value;
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof name === "string" && name !== "Object" && name !== "" ? `an object of class ${name}` : "an object";
}
