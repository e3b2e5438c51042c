// Recorded I/O: the requests and responses of the `ctx.run` calls of a graph's nodes, from the journal (seed 000).
//
// recorded-io.R1. A call is identified by (step, node path, attempt, call index). (node, attempt) selects all calls of an
//   attempt (rules.G7).
// recorded-io.R2. The hash is computed from the response when it is read and is not stored. The entry's mark in the hash
//   chain shows whether the response is the one that was written (docs/decisions/0035).

import { digest, encode } from "../base/index.ts";
import type {
  FrontierItemData,
  JournalEntry,
  OperationCompletedData,
  OperationFailedData,
  StepCommittedData,
} from "../kernel/index.ts";

/** One `ctx.run` call of a node that has ended. */
export interface RecordedIO {
  readonly step: number;
  readonly node: string;
  /** The path of the node's item: two items of one node in a step have different paths. */
  readonly path: string | undefined;
  /** The attempt of the node, from 0 as seed 000 has it; `ctx.attempt` counts from 1. */
  readonly attempt: number;
  /** The call's number in the attempt, from 0. */
  readonly call: number;
  readonly name: string;
  /** Absent if the call had no input. */
  readonly request?: unknown;
  /** Absent if the call failed: then `error` is set. */
  readonly response?: unknown;
  readonly error?: unknown;
  /** `sha256:<hex>` of the canonical response or error. */
  readonly hash: string;
  readonly at: Date;
  /** The duration of the attempt that returned the response. */
  readonly durationMs: number | undefined;
}

/** The parts of a command id of a node, or of a command that its code issued. */
export interface NodeCommand {
  /** `Node(3.0)` */
  readonly command: string;
  readonly step: number;
  /** Its place among the items of the step. */
  readonly position: number;
  readonly attempt: number | undefined;
  /** `Operation(2)`; undefined for the node itself. */
  readonly inner: string | undefined;
}

const PLACE = /^(Node\((\d+)\.(\d+)\))(?:(?:~\d+)?#(\d+)\/(.+))?$/;

/** Undefined for a command that does not belong to a node. */
export function parseNodeCommand(command: string): NodeCommand | undefined {
  const found = PLACE.exec(command);
  if (found === null) return undefined;
  const [, node = "", step, position, attempt, own] = found;
  return {
    command: node,
    step: Number(step),
    position: Number(position),
    attempt: attempt === undefined ? undefined : Number(attempt),
    inner: own,
  };
}

/** The hash of a value's canonical text; live answers are compared by it. */
export function hashValue(value: unknown): string {
  return digest(encode(value));
}

/**
 * All ended `ctx.run` calls of a graph's nodes, in the order they ended.
 *
 * @example
 * ```ts
 * import type { Run } from "reprise";
 * import { recordedIO } from "reprise/checkpoints";
 * export const slowest = async (run: Run<unknown>) =>
 *   (await recordedIO(run.journal())).toSorted((a, b) => (b.durationMs ?? 0) - (a.durationMs ?? 0))[0];
 * ```
 */
export async function recordedIO(
  journal: AsyncIterable<JournalEntry> | Iterable<JournalEntry>,
): Promise<readonly RecordedIO[]> {
  const calls: RecordedIO[] = [];
  const frontiers = new Map<number, readonly FrontierItemData[]>();
  for await (const entry of journal) {
    if (entry.type === "StepCommitted") {
      const { step, frontier } = entry.data as StepCommittedData;
      frontiers.set(step + 1, frontier);
    } else if (entry.type === "OperationCompleted" || entry.type === "OperationFailed") {
      const place = parseNodeCommand(entry.command ?? "");
      if (place?.inner !== undefined) calls.push(callOf(entry, place, frontiers.get(place.step)?.[place.position]));
    }
  }
  return calls;
}

function callOf(
  { type, data, at, tookMs }: JournalEntry,
  { step, attempt = 0, inner: own = "" }: NodeCommand,
  item: FrontierItemData | undefined,
): RecordedIO {
  const { operationName, result, error } = data as OperationCompletedData & Partial<OperationFailedData>;
  const failed = type === "OperationFailed";
  return {
    step,
    node: item?.node ?? "",
    path: item?.path,
    attempt,
    call: Number(own.slice(own.indexOf("(") + 1, -1)),
    name: operationName,
    ...("input" in (data as object) && { request: (data as OperationCompletedData).input }),
    ...(failed ? { error } : { response: result }),
    hash: hashValue(failed ? error : result),
    at,
    durationMs: tookMs,
  };
}
