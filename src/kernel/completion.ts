// Completion: the end of a flow's node and all its consequences, in one commit (seed 001).
//
// completion.C1. The token of the node's item, or of the run's turn, fences the write. A repeated completion, or one for an
//   ended run, is `stale` and writes nothing.
// completion.C2. Arrivals are counted per edge: one with the same target, edge and index is stored once and counted once
//   (rules.F1).
// completion.C3. The first arrival writes `required`; every later one asserts that it is equal. The one commit that makes
//   `completed == required` queues the node, and no other commit does.
// completion.C4. `completed > required`, or another `required`, aborts the commit: the store only blocks the run, with the
//   evidence (rules.F8).
// completion.C5. The run ends once. The commit that ends it removes its remaining items from the queue (rules.F9).
// completion.C6. The store assigns `seq` under the lock of the run's row, in the order of the batch; many completions of one
//   run share a transaction.
// completion.C7. While the run is paused or blocked, nodes that become ready are queued as stopped, and none is leased.

import { encode, invariant, RepriseError, type EpochMs } from "../base/index.ts";
import type { ExecutionFacts } from "./attempts.ts";
import type { Arrival, Claim, NewChild } from "./commit.ts";
import type { EntryType } from "./journal.ts";
import type { QueueSlot } from "./queue.ts";
import type { EndedRunStatus, RunNumber, RunRecord } from "./run.ts";
import type { Traced } from "./telemetry.ts";

/** An entry whose `seq` the store assigns. */
export interface NewEntry {
  readonly type: EntryType;
  readonly command: string;
  readonly data: string;
  /** The execution that this entry ends (attempts.X2). */
  readonly ran?: ExecutionFacts | undefined;
}

/** completion.C1. With a turn: `read` is the last arrival that its holder read; the write returns the turn. */
export type NodeFence =
  | { readonly item: string; readonly token: string; readonly slot?: QueueSlot }
  | { readonly turn: string; readonly read: number };

/** How a node waits for a worker once it is ready. */
export interface NodeItem {
  /** `nodeRoute`: names the workers that can run it. */
  readonly name: string;
  readonly priority: number;
  /** Not with a claim. */
  readonly slot?: QueueSlot;
  /** Leases the node to the writer if this write makes it ready. */
  readonly claim?: Claim;
}

/** A value, a skip or a failure that arrives along an edge. */
export interface NodeArrival {
  readonly target: string;
  /** Named after its source; unique among the edges into the target. */
  readonly edge: string;
  /** The item of a spread; -1: not from a spread. */
  readonly index: number;
  readonly kind: ArrivalKind;
  /** Undefined: a spread wrote it. */
  readonly required: number | undefined;
  /** The index of the write's entry that holds the value; undefined: the run's first entry. */
  readonly cause: number | undefined;
  readonly node: NodeItem;
}
export type ArrivalKind = "value" | "skip" | "failure";

/** The items of a spread, queued `window` at a time. */
export interface NewSpread {
  /** The barrier that waits for all items; queued immediately if there are none (rules.F4). */
  readonly barrier: string;
  readonly barrierNode: NodeItem;
  readonly required: number;
  readonly window: number;
  /** The index of the first of the write's entries that hold the items, `perEntry` each. */
  readonly cause: number;
  readonly perEntry: number;
  readonly node: Omit<NodeItem, "claim">;
  /** For the first items, in order. */
  readonly claims: readonly Claim[];
  /** Instead of the window. */
  readonly portion?: SpreadPortion;
}

/**
 * The next items of a spread with limits per key. Each commit queues one portion until all items are queued, so that items that
 * wait for their key keep no other key waiting.
 */
export interface SpreadPortion {
  /** Of each item, from the first one that is not queued yet; null: no key. */
  readonly keys: readonly (string | null)[];
  /** With the queue in which the keys are limited. */
  readonly node: Omit<NodeItem, "claim">;
  /** Queued if items are left: its completion brings the next portion. */
  readonly next: { readonly item: string; readonly node: NodeItem };
}

export interface CompleteWrite extends Traced {
  readonly write: "complete";
  readonly run: RunNumber;
  readonly fence: NodeFence;
  readonly entries: readonly NewEntry[];
  readonly arrivals: readonly NodeArrival[];
  readonly spread?: NewSpread;
  readonly portion?: SpreadPortion & { readonly barrier: string };
  /** For each ended item, its spread: the store queues the next item. A spread may occur twice. */
  readonly advances: readonly { readonly barrier: string; readonly node: NodeItem }[];
  readonly children: readonly NewChild[];
  /** To other runs: the answer to the parent. */
  readonly messages: readonly { readonly to: RunNumber; readonly arrival: Arrival }[];
  /** runtimes.M2. The text of the worker's process; absent: the row has it. */
  readonly runtime?: string | undefined;
  /** The budget that the run pays from; absent: none. */
  readonly budget?: RunNumber | undefined;
  readonly then: "continue" | EndedRunStatus;
  /** With an end: the data of the cancel that live children receive. */
  readonly cancel?: string;
}

/** A node that the write queued. */
export interface QueuedNode {
  readonly item: string;
  /** The entry its row names. */
  readonly seq: number;
  /** Undefined: any worker may claim it. */
  readonly token: string | undefined;
}

export type CompleteOutcome =
  | {
      readonly status: "committed";
      /** The `seq` of its first entry. */
      readonly seq: number;
      readonly at: EpochMs;
      readonly queued: readonly QueuedNode[];
      readonly children: readonly RunRecord[];
      /** Live children that received a cancel. */
      readonly notified: readonly RunNumber[];
      /** Whether there are messages beyond `read`. */
      readonly more: boolean;
    }
  | { readonly status: "stale" }
  /** completion.C4 */
  | { readonly status: "blocked"; readonly evidence: ReadinessEvidence };

export interface ReadinessEvidence {
  readonly code: "READINESS_OVERFLOW" | "READINESS_MISMATCH";
  readonly node: string;
  readonly completed: number;
  readonly required: number;
  /** The value that the commit would have written. */
  readonly wanted: number;
}

/** The text that the row of the blocked run stores. */
export function readinessEvidence(evidence: ReadinessEvidence): string {
  const { code, node, completed, required, wanted } = evidence;
  const message =
    code === "READINESS_OVERFLOW"
      ? `Node ${node} has ${completed} of ${required} arrivals, and another one came. The store refused the commit.`
      : `Node ${node} waits for ${required} arrivals, but the current flow has ${wanted}: it changed while the run was live. Register the changed flow with another \`version\`.`;
  return encode({ ...evidence, message, status: "blocked", where: node });
}

/** Separates the parts of a route. SQL that selects nodes by their name tests for it (`isNodeRoute`). */
export const NODE_ROUTE_SEPARATOR = "\n";

/**
 * Names the workers that can run a node: those with this version of the flow, the node's queue and its label. The text contains
 * a line break, which no task's name can.
 */
export function nodeRoute(definition: string, version: number, queue?: string, label?: string): string {
  if (label !== undefined) return `${definition}\n${version}\n${queue ?? ""}\n${label}`;
  return queue === undefined ? `${definition}\n${version}` : `${definition}\n${version}\n${queue}`;
}

/** Whether a queue row's name is the route of a node. A task's name holds no line break. */
export function isNodeRoute(name: string): boolean {
  return name.includes(NODE_ROUTE_SEPARATOR);
}

/** What every store can index: two names of maximum length, and a version. */
const MAX_ROUTE_BYTES = 1_224;

/** Refuses a route that is too long; two names never are. */
export function checkNodeRoute(route: string, what: string): void {
  const bytes = Buffer.byteLength(route);
  if (bytes > MAX_ROUTE_BYTES)
    throw new RepriseError(
      "BAD_NAME",
      `${what}: the names of the flow, the queue and the label have ${bytes} bytes together; expected at most ${MAX_ROUTE_BYTES}. Use a shorter label.`,
    );
}

/** The parts of a route; undefined: the name of a task. */
export function readNodeRoute(route: string): NodeRoute | undefined {
  const [definition = "", version, queue = "", label] = route.split("\n");
  if (version === undefined) return undefined;
  invariant(Number(version) >= 1, "a route names a version of 1 or more");
  return { definition, version: Number(version), queue: queue === "" ? undefined : queue, label };
}

export interface NodeRoute {
  readonly definition: string;
  readonly version: number;
  readonly queue: string | undefined;
  readonly label: string | undefined;
}

/** An input of a ready node, ordered by target, edge and index (rules.F7). */
export interface NodeInput {
  readonly target: string;
  readonly edge: string;
  readonly index: number;
  readonly kind: ArrivalKind;
  readonly seq: number;
  /** Of the entry that holds the value. */
  readonly data: string;
}

export interface InputsRequest {
  readonly run: RunNumber;
  /** The node, and the barriers whose lists it needs. */
  readonly targets: readonly string[];
}

/** How many arrivals a node has, for people and for a retry. */
export interface Readiness {
  readonly node: string;
  readonly required: number;
  readonly completed: number;
  /** For a barrier: how many items of its spread were queued. */
  readonly queued: number | undefined;
}
