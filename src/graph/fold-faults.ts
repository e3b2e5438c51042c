// What goes wrong when changes are folded, named: the graph, the channel, and the nodes that changed it.

import { encode, RepriseError } from "../base/index.ts";
import type { Delta } from "../kernel/index.ts";
import type { Change } from "./state.ts";

export interface FoldFault {
  readonly graph: string;
  readonly channel: string;
  /** In fold order. */
  readonly writers: readonly string[];
}

export function writersOf(
  channel: string,
  changes: readonly Change[],
  writerOf: ((index: number) => string) | undefined,
): readonly string[] {
  if (writerOf === undefined) return ["the input"];
  return changes.flatMap((change, index) => (Object.hasOwn(change, channel) ? [`node ${writerOf(index)}`] : []));
}

export function inConflict({ graph, channel, writers }: FoldFault): RepriseError {
  return new RepriseError(
    "CHANNEL_CONFLICT",
    `Graph ${graph}: channel ${channel} may be changed once in a step, and was by ${listed(writers)}. Let one of them change it, or give the channel a rule for several.`,
    { details: { channel, writers } },
  );
}

/** A rule is code of the user's, and not part of any node: there is nothing to try again. */
export function ruleThrew({ graph, channel, writers }: FoldFault, error: unknown): RepriseError {
  return new RepriseError(
    "BAD_GRAPH",
    `Graph ${graph}: the rule of channel ${channel} threw on what ${listed(writers)} changed: ${saidBy(error)}`,
    { cause: error, details: { channel, writers } },
  );
}

/** Found by trying each: only the state as a whole is known not to be kept. */
export function notKept(delta: Delta, error: unknown, fault: (channel: string) => FoldFault): unknown {
  if (!(error instanceof RepriseError)) return error;
  const found = Object.entries({ ...delta.append, ...delta.merge, ...delta.set }).find(([, value]) => !isData(value));
  if (found === undefined) return error;
  const { graph, channel, writers } = fault(found[0]);
  return new RepriseError(
    error.code,
    `Graph ${graph}: channel ${channel} cannot be kept after what ${listed(writers)} changed: ${error.message}`,
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

export function saidBy(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A wide step may have thousands. */
function listed(writers: readonly string[]): string {
  const left = writers.length - NAMED;
  return left > 0 ? `${writers.slice(0, NAMED).join(", ")} and ${left} more` : writers.join(", ");
}
const NAMED = 5;
