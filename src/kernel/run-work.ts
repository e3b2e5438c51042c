// Run work: the open work of a run and the use of a queue, for people: what `explain` decides from. Reads are bounded: of a run with
// very many items or children the first ones are listed.

import type { EpochMs } from "../base/index.ts";
import type { QueueLimits } from "./queue.ts";
import type { NewPromise, OpenPromise } from "./open-promise.ts";
import type { RunNumber, RunStatus } from "./run.ts";

/** Everything that the rows of a run say about its open work. */
export interface RunWork {
  readonly turn: RunTurn;
  /** The id of the parent; undefined: none, or it was pruned. */
  readonly parent: string | undefined;
  /** Leased ones first, then by name: at most `MAX_OPEN_ITEMS` of each. */
  readonly items: readonly OpenItem[];
  /** How many items the run has; counting stops at `MAX_COUNTED`. */
  readonly itemCount: number;
  /** Promises and receives that the store lists as open, in the order the code created them: at most `MAX_OPEN_PROMISES`. */
  readonly promises: readonly NewPromise[];
  /** Calls that wait for the budget of the run, oldest first. */
  readonly budgetRequests: readonly OpenBudgetRequest[];
  /** Live children, oldest first: at most `MAX_OPEN_CHILDREN`. */
  readonly children: readonly OpenChild[];
  /** Undelivered messages of all its generations, in order: at most `MAX_OPEN_MESSAGES`. */
  readonly messages: readonly OpenMessage[];
  /** Nodes of a flow that wait for inputs: at most `MAX_OPEN_NODES`. */
  readonly nodes: readonly WaitingNode[];
}

export const MAX_OPEN_ITEMS = 500;
export const MAX_OPEN_PROMISES = 20;
export const MAX_OPEN_CHILDREN = 20;
export const MAX_OPEN_MESSAGES = 20;
export const MAX_OPEN_NODES = 20;
/** Counts of items, children and slots stop here. */
export const MAX_COUNTED = 10_000;

export interface RunTurn {
  /** `suspect`: due, and workers claim it in small groups (suspects.ts). `not_started`: the run waits for its delay or its queue. */
  readonly due: "no" | "yes" | "suspect" | "not_started";
  /** The worker that holds it. */
  readonly worker: number | undefined;
  /** When that worker claimed it; undefined: not held, or claimed by an older version. */
  readonly since: EpochMs | undefined;
  /** How often it was taken over in a row without a commit. */
  readonly takeovers: number;
}

/** A row of the queue: a task, a node, a timer or a start. */
export interface OpenItem {
  readonly item: string;
  readonly kind: "task" | "node" | "timer" | "start";
  /** The task's name, the node's route, the entry a timer delivers, or `definition@version`. */
  readonly name: string;
  /** `parked`: its key has no free slot. `admitted`: a start that holds a slot of its queue. */
  readonly state: "delayed" | "ready" | "leased" | "stopped" | "suspect" | "parked" | "admitted";
  /** The current attempt, or the next one; from 0. */
  readonly attempt: number;
  readonly availableAt: EpochMs;
  readonly worker: number | undefined;
  /** When that worker claimed it. */
  readonly since: EpochMs | undefined;
  readonly takeovers: number;
  readonly queue: string | undefined;
  readonly key: string | undefined;
  /** The errors of earlier attempts, encoded. */
  readonly failures: string | undefined;
}

export interface OpenChild {
  readonly id: string;
  readonly definition: string;
  readonly status: RunStatus;
  /** The parent's command that it answers. */
  readonly command: string | undefined;
}

export interface OpenMessage {
  readonly destination: string;
  readonly sentAt: EpochMs;
  /** When it is delivered next. */
  readonly availableAt: EpochMs;
  /** How many deliveries failed. */
  readonly attempt: number;
  /** The worker that delivers it. */
  readonly worker: number | undefined;
}

/** A node of a flow with fewer arrivals than it requires. */
export interface WaitingNode {
  readonly node: string;
  readonly required: number;
  readonly completed: number;
  /** The edges that have arrived, named after their sources; the first ones. */
  readonly arrived: readonly string[];
}

/** The disk that a store writes to. */
export interface DiskSpace {
  readonly folder: string;
  readonly freeBytes: number;
}

/** What holds slots of a queue: tasks and nodes, or runs (queue.Q4). */
export type SlotUser = "task" | "start";

/** How much of a queue's limits is used, by one kind of work. */
export interface QueueUse {
  readonly limits: QueueLimits;
  readonly paused: boolean;
  readonly pausedAt: EpochMs | undefined;
  readonly whole: LimitUse;
  /** Of the key that was asked for. */
  readonly ofKey: LimitUse | undefined;
}

export interface LimitUse {
  /** How many slots are taken; counting stops at `MAX_COUNTED`. */
  readonly held: number;
  /** The work that holds them: at most `MAX_SLOT_HOLDERS`. */
  readonly holders: readonly SlotHolder[];
  /** How many were admitted in the current period of the rate; undefined: no rate. */
  readonly admitted: number | undefined;
  /** When the rate admits the next one; undefined: now, or there is no rate. */
  readonly opensAt: EpochMs | undefined;
}

export const MAX_SLOT_HOLDERS = 5;

export interface SlotHolder {
  readonly run: RunNumber;
  /** The id of the run; undefined: it has no row. */
  readonly id: string | undefined;
  /** The task or node; `Start`: the run itself. */
  readonly item: string;
}

/** A call that waits for the budget of its run. */
export interface OpenBudgetRequest {
  readonly command: string;
  readonly at: EpochMs;
  readonly budget: NonNullable<OpenPromise["budget"]>;
}
