// Wait reasons: the closed list of why a run does not move, each with its facts. Types only.

import type { Cost, QueueOptions, RunStatus } from "../kernel/index.ts";

/** A worker that holds work. */
export interface HoldingWorker {
  /** Its number in the store. */
  readonly worker: number;
  /** Undefined: no worker with this number is registered. */
  readonly name?: string;
  /** Its lease is valid. A worker that has just died counts as alive until then. */
  readonly alive: boolean;
  readonly leaseUntil?: Date;
}

/** A live worker, and whether it can run the work. */
export interface LiveWorker {
  readonly worker: number;
  readonly name: string;
  /** Why it does not claim the work, such as `has order version 1`; undefined: it claims such work. */
  readonly lacks?: string;
  /** As of its last heartbeat. */
  readonly running?: number;
  readonly concurrency?: number;
  readonly draining: boolean;
}

/** The work that does not move. */
export interface PendingItems {
  /** The id of the run; undefined: work of several runs. */
  readonly run?: string;
  /** `run`: the turn of the run. `start`: a run that has not started. */
  readonly kind: "run" | "start" | "task" | "node";
  /** The name of the definition or of the task; for a node, its name. */
  readonly name: string;
  /** Of the definition; undefined: a task. */
  readonly version?: number;
  readonly queue?: string;
  readonly key?: string;
  readonly count: number;
  /** There may be more than were counted. */
  readonly more?: boolean;
  /** The commands or nodes of the run that wait, the first ones. */
  readonly commands: readonly string[];
}

/** Work that holds a slot of a queue. */
export interface SlotHolding {
  /** The id of the run. */
  readonly run: string;
  /** Undefined: the run itself holds the slot, from its start to its end. */
  readonly command?: string;
}

/** The facts of each reason. `node` is the node of a graph whose code waits. */
export type WaitFacts =
  /** A caller paused it. */
  | { readonly reason: "paused" }
  /** The engine stopped it, with evidence. */
  | { readonly reason: "stopped"; readonly code: string; readonly message: string; readonly where?: string }
  /** Messages arrived for it, and no call has started it. */
  | { readonly reason: "expected"; readonly definition: string }
  /** The disk of the store has no space left: no worker can commit. */
  | { readonly reason: "disk_full"; readonly folder: string; readonly freeBytes: number }
  /** Its start, or an item of it, is delayed. */
  | { readonly reason: "delay"; readonly until: Date; readonly work: PendingItems }
  | { readonly reason: "queue_paused"; readonly queue: string; readonly since?: Date; readonly work: PendingItems }
  | {
      readonly reason: "concurrency_limit";
      readonly queue: string;
      /** Set: the limit of this key is reached. */
      readonly key?: string;
      readonly limit: number;
      readonly held: number;
      /** The first ones. */
      readonly holders: readonly SlotHolding[];
      readonly limits: QueueOptions;
      readonly work: PendingItems;
    }
  | {
      readonly reason: "rate_limit";
      readonly queue: string;
      readonly key?: string;
      readonly limit: number;
      readonly perMs: number;
      /** When the rate admits the next one. */
      readonly opensAt?: Date;
      readonly limits: QueueOptions;
      readonly work: PendingItems;
    }
  /** No live worker can claim it. */
  | {
      readonly reason: "no_worker";
      /** Messages that the run has received and not read. */
      readonly unread?: number;
      readonly work: PendingItems;
      /** What a live worker that has the definition lacks. */
      readonly label?: string;
      readonly queue?: string;
      readonly workers: readonly LiveWorker[];
    }
  /** It can be claimed, and a live worker claims such work. */
  | {
      readonly reason: "unclaimed";
      readonly work: PendingItems;
      readonly unread: number;
      /** The queue has limits per key, which may hold some of the work back. */
      readonly perKey?: boolean;
      readonly workers: readonly LiveWorker[];
    }
  /** Workers died while they held it: it is claimed in small groups, then alone. */
  | { readonly reason: "suspect"; readonly work: PendingItems; readonly takeovers: number; readonly groupSize: number }
  | {
      readonly reason: "running";
      readonly work: PendingItems;
      readonly worker: HoldingWorker;
      readonly since?: Date;
      readonly lastCommitAt?: Date;
    }
  /** Its worker's lease has expired, and it is not taken over yet. */
  | {
      readonly reason: "lease_expired";
      readonly work: PendingItems;
      readonly worker: HoldingWorker;
      /** Live workers; each takes over with its next heartbeat. */
      readonly workers: readonly LiveWorker[];
    }
  | {
      readonly reason: "retry";
      readonly kind: "task" | "node" | "operation";
      readonly name: string;
      readonly command: string;
      /** The next attempt, counted from 1. */
      readonly attempt: number;
      readonly until: Date;
      /** The error of the last attempt. */
      readonly error?: unknown;
    }
  | {
      readonly reason: "timer";
      readonly command: string;
      /** The id that the code gave it. */
      readonly name?: string;
      readonly until: Date;
      readonly node?: string;
    }
  /** The deadline has passed, and no worker has processed that. */
  | { readonly reason: "deadline"; readonly at: Date }
  | {
      readonly reason: "promise";
      readonly name: string;
      readonly key?: string;
      readonly command: string;
      readonly since?: Date;
      readonly until?: Date;
      readonly show?: unknown;
      readonly node?: string;
    }
  /** A call waits until the budget is raised, or a person declines. */
  | {
      readonly reason: "budget";
      readonly command: string;
      /** The run that the budget belongs to: this one, or an ancestor. */
      readonly owner: string;
      readonly since: Date;
      readonly reserve: Cost;
      readonly cap: Cost;
      readonly spent: Cost;
      readonly reserved: Cost;
      readonly lost: Cost;
      /** The least raise that lets the call begin. */
      readonly missing: Cost;
    }
  | {
      readonly reason: "signal";
      readonly names: readonly string[];
      readonly command: string;
      readonly since?: Date;
      readonly until?: Date;
      readonly node?: string;
    }
  | {
      readonly reason: "child";
      /** The id of the child. */
      readonly child: string;
      /** The name of its definition. */
      readonly definition?: string;
      /** Undefined: the store has no such run. */
      readonly status?: RunStatus;
      readonly command?: string;
      readonly since?: Date;
      /** Why the child does not move. */
      readonly waitsFor: readonly WaitReason[];
      readonly node?: string;
    }
  /** Its code has received an update and has not answered it. */
  | { readonly reason: "update_answer"; readonly name: string; readonly since?: Date }
  /** Nothing is open: only an update or a cancel continues it. */
  | { readonly reason: "update" }
  /** A node of a flow waits for inputs. */
  | {
      readonly reason: "inputs";
      readonly node: string;
      readonly completed: number;
      readonly required: number;
      /** Where the inputs that arrived come from, the first ones. */
      readonly arrived: readonly string[];
    }
  /** A join of a graph waits for more branches. */
  | { readonly reason: "join"; readonly node: string; readonly arrived: readonly string[] }
  /** Messages of `ctx.send` are not delivered. They do not stop the run. */
  | {
      readonly reason: "outbox";
      readonly destination: string;
      readonly pending: number;
      readonly sentAt: Date;
      /** How many deliveries of the first one failed. */
      readonly failed: number;
      readonly nextAt?: Date;
      /** The worker that delivers the first one now. */
      readonly worker?: HoldingWorker;
      /** A live worker has a handler for the destination; undefined: unknown. */
      readonly delivered?: boolean;
    }
  /** A schedule has not started its next run. Only for a schedule: a run of it does not exist before it starts. */
  | {
      readonly reason: "schedule";
      readonly schedule: string;
      readonly definition: string;
      /** `overlap`: planned times wait for the end of `run`. `over`: its pattern has no more times. */
      readonly state: "paused" | "overlap" | "planned" | "overdue" | "over";
      readonly queued: number;
      readonly run?: string;
      /** When it starts the next run, or should have. */
      readonly at?: Date;
      /** Of an overdue one. */
      readonly workers?: readonly LiveWorker[];
    }
  /** The facts that were read do not tell. */
  | { readonly reason: "unknown"; readonly checked: string };

/** A sentence for people, and the commands that help, the safest first. */
interface Advice {
  readonly text: string;
  readonly next: readonly string[];
}

/**
 * Why a run does not move: `reason` tells which facts it has. From `run.info()`.
 *
 * @example
 * ```ts
 * import type { RunInfo, WaitReason } from "reprise";
 * const isStuck = ({ reason }: WaitReason): boolean => reason === "no_worker" || reason === "queue_paused";
 * function report({ id, waitsFor = [] }: RunInfo): void {
 *   for (const one of waitsFor.filter(isStuck)) console.log(id, one.text, one.next[0]);
 * }
 * ```
 */
export type WaitReason = WaitFacts & Advice;

/** The facts of one kind of reason. */
export type FactsOf<R extends WaitFacts["reason"]> = Extract<WaitFacts, { readonly reason: R }>;
