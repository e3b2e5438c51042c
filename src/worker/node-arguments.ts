// Node arguments: what a node of a flow starts with, and what fences its commit.

import {
  decodeData,
  type ClaimedItem,
  type CompleteWrite,
  type Entry,
  type NodeFence,
  type NodeInput,
} from "../kernel/index.ts";
import type { FlowStart } from "./flow-start.ts";

/** What a node's function receives: an item of a spread, or the inputs along its edges. */
export type NodeArguments =
  | { readonly item: unknown }
  | { readonly inputs: readonly NodeInput[] }
  /** The value the node already had (retry). */
  | { readonly value: unknown };

export function fenceOf({ item, token, slot }: ClaimedItem): NodeFence {
  return { item, token, ...(slot && { slot }) };
}

/** The value in the run's first entry, or in a node's entry. */
export function valueOf(entry: Entry | undefined): unknown {
  if (entry?.type === "RunStarted") return decodeData("RunStarted", entry.data).input;
  return entry === undefined ? undefined : decodeData("NodeCompleted", entry.data).result;
}

export function inputOf({ started }: FlowStart): unknown {
  return decodeData("RunStarted", started ?? "{}").input;
}

export function inputsOf(
  run: FlowStart,
  { entries }: CompleteWrite,
  came: CompleteWrite["arrivals"],
): readonly NodeInput[] {
  return came.map(({ target, edge, index, kind, cause }) => ({
    target,
    edge,
    index,
    kind,
    seq: cause ?? -1,
    data: cause === undefined ? (run.started ?? "{}") : (entries[cause]?.data ?? "{}"),
  }));
}
