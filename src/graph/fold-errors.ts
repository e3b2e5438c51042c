// Fold errors: the errors of folding changes, with the graph, the channel and the nodes that changed it.

import { encode, RepriseError } from "../base/index.ts";
import type { Delta } from "../kernel/index.ts";
import type { StateChange } from "./state.ts";

export interface FoldFailure {
  readonly graph: string;
  readonly channel: string;
  /** In fold order. */
  readonly writers: readonly string[];
}

export function writersOf(
  channel: string,
  changes: readonly StateChange[],
  writerOf: ((index: number) => string) | undefined,
): readonly string[] {
  if (writerOf === undefined) return ["the input"];
  return changes.flatMap((change, index) => (Object.hasOwn(change, channel) ? [`node ${writerOf(index)}`] : []));
}

export function channelConflict({ graph, channel, writers }: FoldFailure): RepriseError {
  return new RepriseError(
    "CHANNEL_CONFLICT",
    `Graph ${graph}: ${listNodes(writers)} changed channel ${channel} in one step, but it accepts one change per step. Let only one node change it, or use a channel that combines changes, such as append().`,
    { details: { channel, writers } },
  );
}

/** A reducer belongs to no node, so there is nothing to retry. */
export function reducerThrew({ graph, channel, writers }: FoldFailure, error: unknown): RepriseError {
  return new RepriseError(
    "BAD_GRAPH",
    `Graph ${graph}: the reducer of channel ${channel} threw on the change of ${listNodes(writers)}: ${messageOf(error)}`,
    { cause: error, details: { channel, writers } },
  );
}

/** Tries every channel, because the error is known only for the state as a whole. */
export function channelNotEncodable(delta: Delta, error: unknown, fault: (channel: string) => FoldFailure): unknown {
  if (!(error instanceof RepriseError)) return error;
  const found = Object.entries({ ...delta.append, ...delta.merge, ...delta.set }).find(([, value]) => !isData(value));
  if (found === undefined) return error;
  const { graph, channel, writers } = fault(found[0]);
  return new RepriseError(
    error.code,
    `Graph ${graph}: channel ${channel} cannot be stored after the change of ${listNodes(writers)}: ${error.message}`,
    { cause: error, details: { channel, writers } },
  );
}

function isData(value: unknown): boolean {
  try {
    encode(value);
    return true;
  } catch {
    return false;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Names the first few: a wide step can have thousands of nodes. */
function listNodes(writers: readonly string[]): string {
  const left = writers.length - NAMED;
  return left > 0 ? `${writers.slice(0, NAMED).join(", ")} and ${left} more` : writers.join(", ");
}
const NAMED = 5;
