// Recorded I/O: what the calls of a graph's nodes asked the outside and what it answered, as the journal has it (seed 000).
//
// R1. A call is known by (step, node path, attempt, call index); (node, attempt) finds all calls of an attempt (G7).
// R2. The hash is made of the response when somebody reads it, never kept beside it: an entry's own mark in the hash chain
//     says whether the response is the one that was written (docs/decisions/0035).

import { digest, encode } from "../base/index.ts";
import type { JournalEntry } from "../kernel/index.ts";

/** One call of `ctx.run` in a node that has ended. */
export interface RecordedIO {
  readonly step: number;
  readonly node: string;
  /** The path of the node's item: the same node at two places of a step has two. */
  readonly path: string | undefined;
  /** Of the node, from 0. */
  readonly attempt: number;
  /** Which call of the attempt, from 0. */
  readonly call: number;
  readonly name: string;
  /** Absent when the call was given none. */
  readonly request?: unknown;
  /** What came back; `error` when it failed. */
  readonly response?: unknown;
  readonly error?: unknown;
  /** `sha256:<hex>` over the canonical response, or error. */
  readonly hash: string;
  readonly at: Date;
  /** Of the attempt that brought the answer. */
  readonly durationMs: number | undefined;
}

/** Where a command of a node's code stands. */
export interface NodePlace {
  /** `Node(3.0)` */
  readonly command: string;
  readonly step: number;
  /** Among the items of its step. */
  readonly position: number;
  readonly attempt: number | undefined;
  /** `Operation(2)`; undefined for the node itself. */
  readonly own: string | undefined;
}

const PLACE = /^(Node\((\d+)\.(\d+)\))(?:(?:~\d+)?#(\d+)\/(.+))?$/;

/** Undefined for a command that is no node's. */
export function placeOfCommand(command: string): NodePlace | undefined {
  const found = PLACE.exec(command);
  if (found === null) return undefined;
  const [, node = "", step, position, attempt, own] = found;
  return {
    command: node,
    step: Number(step),
    position: Number(position),
    attempt: attempt === undefined ? undefined : Number(attempt),
    own,
  };
}

/** The canonical text of a value, hashed: what a live answer is compared by. */
export function hashOf(value: unknown): string {
  return digest(encode(value));
}

interface StepData {
  readonly step: number;
  readonly frontier: readonly { readonly node: string; readonly path: string }[];
}
interface CallData {
  readonly operationName: string;
  readonly input?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

/**
 * All calls of a run's nodes that have ended, in the order they did.
 *
 * @example
 * ```ts
 * import { recordedIO, type Run } from "reprise";
 * export const slowest = async (run: Run<unknown>) =>
 *   (await recordedIO(run.journal())).toSorted((a, b) => (b.durationMs ?? 0) - (a.durationMs ?? 0))[0];
 * ```
 */
export async function recordedIO(
  journal: AsyncIterable<JournalEntry> | Iterable<JournalEntry>,
): Promise<readonly RecordedIO[]> {
  const calls: RecordedIO[] = [];
  const frontiers = new Map<number, StepData["frontier"]>();
  for await (const entry of journal) {
    if (entry.type === "StepCommitted") {
      const { step, frontier } = entry.data as StepData;
      frontiers.set(step + 1, frontier);
    } else if (entry.type === "OperationCompleted" || entry.type === "OperationFailed") {
      const place = placeOfCommand(entry.command ?? "");
      if (place?.own !== undefined) calls.push(callOf(entry, place, frontiers.get(place.step)?.[place.position]));
    }
  }
  return calls;
}

function callOf(
  { type, data, at, tookMs }: JournalEntry,
  { step, attempt = 0, own = "" }: NodePlace,
  item: StepData["frontier"][number] | undefined,
): RecordedIO {
  const { operationName, result, error } = data as CallData;
  const failed = type === "OperationFailed";
  return {
    step,
    node: item?.node ?? "",
    path: item?.path,
    attempt,
    call: Number(own.slice(own.indexOf("(") + 1, -1)),
    name: operationName,
    ...("input" in (data as object) && { request: (data as CallData).input }),
    ...(failed ? { error } : { response: result }),
    hash: hashOf(failed ? error : result),
    at,
    durationMs: tookMs,
  };
}
