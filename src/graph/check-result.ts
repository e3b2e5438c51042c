// What a node returned, looked at before it is kept: what is wrong with it is the node's mistake, and trying again would
// not help. A graph's input is a first change (P3), and looked at in the same way.

import { RepriseError } from "../base/index.ts";
import { isPlain, misfit, type Channels } from "./channel.ts";
import { END, type End, type GraphBody } from "./definition.ts";
import type { Change } from "./state.ts";

/** What a node's entry holds; END is null there. */
export interface Stored {
  readonly change?: Change;
  readonly goto?: readonly (string | null)[];
}

export function storedOf(body: GraphBody, node: string, result: unknown): Stored {
  if (result === undefined) return {};
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_GRAPH", `Graph ${body.name}: node ${node} ${problem}.`);
  };
  if (!isPlain(result)) {
    const example = `{ ${Object.keys(body.channels)[0] ?? "name"}: … }`;
    return refuse(
      `returned ${kindOf(result)}; expected a change of channels such as ${example}, a goto(…), or nothing`,
    );
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
  if (targets.length === 0) return refuse("went to an empty list; name at least one node, or END");
  return targets.map((target) => {
    if (target === END) return null;
    if (typeof target !== "string" || !body.nodes.has(target))
      return refuse(
        `went to ${typeof target === "string" ? target : kindOf(target)}, which is not a node; there are: ${names()}`,
      );
    if (body.itemNodes.has(target))
      return refuse(`went to ${target}, which takes the items of a spread; goto would give it none`);
    return target;
  });
}

/** Undefined when every channel can take its part of the change. */
export function findBadChange(
  channels: Channels,
  change: Change,
): { readonly channel: string; readonly problem: string } | undefined {
  for (const name of Object.keys(change)) {
    const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
    if (channel === undefined) {
      const known = Object.keys(channels).join(", ") || "none";
      return { channel: name, problem: `changed ${name}, which is no channel of the state; there are: ${known}` };
    }
    const wrong = misfit(channel, change[name]);
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
