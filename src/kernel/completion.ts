// Completion: how a node of a flow ends, and everything that follows from it, in one commit (seed 001).
//
// CN1. Fenced by the token of the node's item, or of the run's turn. A completion that comes a second time, or for a run that
//      has ended, is `stale` and writes nothing.
// CN2. Arrivals are counted per edge: one with the same target, edge and index is stored once and counted once (F1).
// CN3. `required` is written with the first arrival, and asserted equal with every other. A node is queued by the one commit
//      that makes `completed == required`, and by no other.
// CN4. `completed > required`, or another `required`, aborts the commit: nothing of it is written but that the run is blocked,
//      with the evidence (F8).
// CN5. The run ends once. The commit that ends it takes what is left of it out of the queue (F9).
// CN6. Entries get their `seq` under the run's row, in the order of the writes of a batch; many completions of one run share
//      a transaction.
// CN7. While the run is paused or blocked, what becomes ready is queued as stopped, and nothing is leased.

import { encode, RepriseError, type EpochMs } from "../base/index.ts";
import type { Arrival, Claim, NewChild } from "./commit.ts";
import type { EntryType } from "./journal.ts";
import type { QueueSlot } from "./queue.ts";
import type { EndedRunStatus, RunNumber, RunRecord } from "./run.ts";

/** An entry that gets its place from the store. */
export interface NewEntry {
  readonly type: EntryType;
  readonly command: string;
  readonly data: string;
}

/** CN1. With a turn goes up to which arrival its holder has read; the turn is given back. */
export type NodeFence =
  | { readonly item: string; readonly token: string; readonly slot?: QueueSlot }
  | { readonly turn: string; readonly read: number };

/** How a node waits for a worker once it is ready. */
export interface NodeItem {
  /** Says who can run it: `nodeRoute`. */
  readonly name: string;
  readonly priority: number;
  /** Not with a claim. */
  readonly slot?: QueueSlot;
  /** Leases it to whoever writes, should it become ready by this write. */
  readonly claim?: Claim;
}

/** Something has come along an edge. */
export interface NodeArrival {
  readonly target: string;
  /** Named by its source; unique among the edges into the target. */
  readonly edge: string;
  /** Which item of a spread; -1 where there is none. */
  readonly index: number;
  readonly kind: ArrivalKind;
  /** Undefined where a spread has written it. */
  readonly required: number | undefined;
  /** Which of the write's entries holds the value; undefined: the run's first entry. */
  readonly cause: number | undefined;
  readonly node: NodeItem;
}
export type ArrivalKind = "value" | "skip" | "failure";

/** The items of a spread, queued `window` at a time. */
export interface NewSpread {
  /** The barrier that waits for all of them; queued at once when there are none (F4). */
  readonly barrier: string;
  readonly barrierNode: NodeItem;
  readonly required: number;
  readonly window: number;
  /** Of the write's entries: from this one on they hold the items, `perEntry` each. */
  readonly cause: number;
  readonly perEntry: number;
  readonly node: Omit<NodeItem, "claim">;
  /** For the first items, in order. */
  readonly claims: readonly Claim[];
}

export interface CompleteWrite {
  readonly write: "complete";
  readonly run: RunNumber;
  readonly fence: NodeFence;
  readonly entries: readonly NewEntry[];
  readonly arrivals: readonly NodeArrival[];
  readonly spread?: NewSpread;
  /** An item of each of these spreads has ended: its next one that waits is queued. The same spread may stand here twice. */
  readonly advances: readonly { readonly barrier: string; readonly node: NodeItem }[];
  readonly children: readonly NewChild[];
  /** To other runs: the parent's answer. */
  readonly messages: readonly { readonly to: RunNumber; readonly arrival: Arrival }[];
  readonly then: "continue" | EndedRunStatus;
  /** With an end: what children that live are told. */
  readonly cancel?: string;
}

/** A node that the write has queued. */
export interface QueuedNode {
  readonly item: string;
  /** The entry its row names. */
  readonly seq: number;
  /** Undefined: anybody may claim it. */
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
      /** Live children that were told. */
      readonly notified: readonly RunNumber[];
      /** Messages beyond what was read are waiting. */
      readonly more: boolean;
    }
  | { readonly status: "stale" }
  /** CN4 */
  | { readonly status: "blocked"; readonly evidence: ReadinessEvidence };

export interface ReadinessEvidence {
  readonly code: "READINESS_OVERFLOW" | "READINESS_MISMATCH";
  readonly node: string;
  readonly completed: number;
  readonly required: number;
  /** What the commit would have made of it. */
  readonly wanted: number;
}

/** As it stands on the blocked run's row. */
export function readinessEvidence(evidence: ReadinessEvidence): string {
  const { code, node, completed, required, wanted } = evidence;
  const message =
    code === "READINESS_OVERFLOW"
      ? `Node ${node} has got ${completed} of ${required} arrivals, and another came: the commit was refused.`
      : `Node ${node} waits for ${required} arrivals, and now for ${wanted}: the flow has changed under its run. Give the new one another version.`;
  return encode({ ...evidence, message, status: "blocked", where: node });
}

/** Separates the parts of a route. SQL that selects nodes by their name tests for it (`isNodeRoute`). */
export const NODE_ROUTE_SEPARATOR = "\n";

/**
 * Which worker can run a node: one that has this version of the flow, works on the node's queue and has its label. No task has
 * such a name.
 */
export function nodeRoute(definition: string, version: number, queue?: string, label?: string): string {
  if (label !== undefined) return `${definition}\n${version}\n${queue ?? ""}\n${label}`;
  return queue === undefined ? `${definition}\n${version}` : `${definition}\n${version}\n${queue}`;
}

/** Whether a queue row's name is the route of a node. A task's name holds no line break. */
export function isNodeRoute(name: string): boolean {
  return name.includes(NODE_ROUTE_SEPARATOR);
}

/** What every store has room for in its indexes: two names as long as names may be, and a version. */
const MAX_ROUTE_BYTES = 1_224;

/** Refuses names that are too long together; two of them never are. */
export function checkNodeRoute(route: string, what: string): void {
  const bytes = Buffer.byteLength(route);
  if (bytes > MAX_ROUTE_BYTES)
    throw new RepriseError(
      "BAD_NAME",
      `${what}: the names of flow, queue and label have ${bytes} bytes together; expected at most ${MAX_ROUTE_BYTES}. Use a shorter label.`,
    );
}

/** What `nodeRoute` was made of. */
export function readNodeRoute(route: string): NodeRoute | undefined {
  const [definition = "", version, queue = "", label] = route.split("\n");
  if (version === undefined) return undefined;
  return { definition, version: Number(version), queue: queue === "" ? undefined : queue, label };
}

export interface NodeRoute {
  readonly definition: string;
  readonly version: number;
  readonly queue: string | undefined;
  readonly label: string | undefined;
}

/** What a ready node has got, in one query: by target, edge and index (F7). */
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
  /** The node, and barriers whose lists it needs. */
  readonly targets: readonly string[];
}

/** Where a node stands, for people and for a retry. */
export interface Readiness {
  readonly node: string;
  readonly required: number;
  readonly completed: number;
  /** Of a barrier: how many items of its spread have been queued. */
  readonly queued: number | undefined;
}
