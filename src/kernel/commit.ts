// Commit: the writes of a store and their outcomes. A commit is the only way a run makes progress.
//
// commit.K1. A write is fenced: it carries the token of its lease, and the store rejects the whole write if the token does not
//   match.
// commit.K2. Outcomes are values. A store returns an outcome only when it is certain.
// commit.K3. Writes share a transaction, but each is atomic: a rejected write changes nothing.
// commit.K4. A batch has at most one turn commit per run. The holder of the turn assigns `seq`, dense from its head.
// commit.K5. An inbox row is an entry without a `seq`; only the holder of the turn assigns one.

import type { EpochMs } from "../base/index.ts";
import type { ExecutionFacts, FailedExecution } from "./attempts.ts";
import type { BudgetCap } from "./budget.ts";
import type { NewCheckpoint } from "./checkpoint.ts";
import type { CompleteOutcome, CompleteWrite } from "./completion.ts";
import type {
  PauseOutcome,
  PauseWrite,
  ResumeOutcome,
  ResumeWrite,
  RetryOutcome,
  RetryWrite,
  TerminateOutcome,
  TerminateWrite,
} from "./control.ts";
import type { DefinitionVersion, NextGeneration } from "./generation.ts";
import type { ForkOutcome, ForkWrite } from "./fork.ts";
import type { ReleaseOutcome, ReleaseWrite, SequenceOutcome, SequenceWrite } from "./log.ts";
import type { MigrateOutcome, MigrateWrite } from "./migrate.ts";
import type { Entry, EntryType } from "./journal.ts";
import type { PromiseChanges } from "./open-promise.ts";
import type {
  AdmitOutcome,
  AdmitWrite,
  ChangeQueueWrite,
  DeclareQueueWrite,
  QueueSlot,
  QueueOutcome,
  ThrottledWork,
} from "./queue.ts";
import type { EndedRunStatus, RunNumber, RunRecord } from "./run.ts";
import type {
  ClaimMessagesOutcome,
  ClaimMessagesWrite,
  ReturnMessageWrite,
  MessageDeliveredOutcome,
  MessageDeliveredWrite,
  NewMessage,
} from "./outbox.ts";
import type {
  AnswerBudgetOutcome,
  AnswerBudgetWrite,
  OfferBudgetOutcome,
  OfferBudgetWrite,
  ReserveOutcome,
  ReserveWrite,
} from "./spending.ts";
import type { SentSettlement } from "./settlement.ts";
import type { NewChunk } from "./stream.ts";
import type { PutScheduleOutcome, PutScheduleWrite, RemoveScheduleOutcome, RemoveScheduleWrite } from "./schedule.ts";
import type { Traced } from "./telemetry.ts";

/** A run to create. `started` is the data of its first entry, input included. */
export interface NewRun extends Traced {
  readonly id: string;
  readonly definition: string;
  readonly kind: RunRecord["kind"];
  readonly version: number;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly started: string;
  /** The text of the process that starts it (runtimes.M1). */
  readonly runtime: string;
  /** Set: the run starts when its queue has room. */
  readonly slot?: QueueSlot;
  /** From its start. A timer in the queue then delivers `DeadlineExceeded`. */
  readonly deadlineMs?: number;
  /** Absent: a child shares the budget of its parent, and another run has none. */
  readonly budget?: BudgetCap | "none";
}

/** The queue item of a run's deadline. */
export const DEADLINE_ITEM = "Deadline";

/** A lease that a worker takes on something it creates. */
export interface Claim {
  readonly worker: number;
  readonly token: string;
}

export interface StartWrite {
  readonly write: "start";
  readonly run: NewRun;
  /** Leases the first turn to the starter in the same write. Not with a delay or a queue. */
  readonly claim?: Claim;
  /** Delivered in the same write, in this order, if this write starts the run. */
  readonly messages?: readonly Arrival[];
  /** The run starts after this delay. */
  readonly delayMs?: number;
  /** If a live run of the definition has this key, the write starts nothing. */
  readonly singleton?: string;
  /** A run of the definition that has this key and has not started takes this input instead, and starts `delayMs` from now. */
  readonly debounce?: string;
}
export type StartOutcome =
  /** Messages that arrived before the start precede those of the start. */
  | { readonly status: "started"; readonly record: RunRecord; readonly first: Entry }
  /** The id is taken; the caller compares `first` with its own request. */
  | { readonly status: "exists"; readonly record: RunRecord; readonly first: Entry }
  /** A live run has the singleton key. */
  | { readonly status: "singleton"; readonly record: RunRecord; readonly first: Entry }
  /** A run that had not started got a new first entry. */
  | { readonly status: "debounced"; readonly record: RunRecord; readonly first: Entry }
  /** Messages with `beforeStart` expect a run of another definition under this id. */
  | { readonly status: "other_definition"; readonly record: RunRecord };

/** An entry on its way into a run: from a task, a timer, a child or a caller. */
export interface Arrival {
  readonly type: EntryType;
  /** A command (`Task(3)`) or a port name. */
  readonly target: string;
  readonly data: string;
  /** The execution that this message ends (attempts.X2). */
  readonly ran?: ExecutionFacts | undefined;
}

/** A row of the inbox. */
export interface InboxRow extends Arrival {
  readonly arrival: number;
}

/** A queue item: work that any worker may claim, or a timer. Its identity is the command, so a replay creates no second one. */
export interface NewItem extends Traced {
  /** The command it serves, unique in the run. */
  readonly item: string;
  readonly kind: "task" | "timer" | "node";
  /** The task's name, the node's route, or for a timer the type of the entry it delivers. */
  readonly name: string;
  readonly priority: number;
  /** Undefined: immediately. */
  readonly availableAt?: EpochMs;
  /** The entry that holds its input. */
  readonly seq: number;
  /** Not with a slot. */
  readonly claim?: Claim;
  readonly slot?: QueueSlot;
  /** How often it was executed before its run was retried (attempts.X1). Not with a claim. */
  readonly executions?: number;
}

export interface ItemFence {
  readonly item: string;
  readonly token: string;
  /** The slot it was claimed in, which becomes free. */
  readonly slot?: QueueSlot;
}

export interface NewChild {
  readonly run: NewRun;
  readonly command: string;
  /** A detached child does not answer. */
  readonly detached: boolean;
  readonly claim?: Claim;
  /** Goes into the parent's inbox if the child's id belongs to another run. */
  readonly taken: Arrival;
}

/** The commit of the holder of a run's turn. */
export interface TurnWrite extends Traced {
  readonly write: "turn";
  readonly run: RunNumber;
  readonly token: string;
  /**
   * Entries `seq > head`, in order; `chain` is the chain after the last of them, `previousChain` the one at `head`. The store
   * rejects the write unless the row has this token, head and chain: a head alone does not identify a history.
   */
  readonly head: number;
  readonly previousChain: string;
  readonly entries: readonly Entry[];
  readonly chain: string;
  /** Every arrival up to this number became an entry or was dropped. */
  readonly read: number;
  /** Items this worker held and finished; each is fenced by its own token. */
  readonly finished: readonly ItemFence[];
  readonly items: readonly NewItem[];
  /** Items no longer wanted: canceled timers and tasks. */
  readonly dropped: readonly string[];
  readonly children: readonly NewChild[];
  /**
   * To other runs, in the same transaction: the answer to the parent, by number; the cancel of a child, by id. Dropped if that
   * run has ended, or if the id is not a child of this run: it may belong to an unrelated run.
   */
  readonly messages: readonly { readonly to: RunNumber | string; readonly arrival: Arrival }[];
  /** Settlements of promises of other runs, in the same transaction. Each is answered in the inbox of this run. Absent: none. */
  readonly settlements?: readonly SentSettlement[] | undefined;
  /** Chunks of streams, in order. */
  readonly chunks: readonly NewChunk[];
  /** outbox.O1. Messages to external destinations, in order. */
  readonly outgoing: readonly NewMessage[];
  /**
   * One per completed step of a graph, written first. If the store has all of them, with the same keys: `already_committed`. If it
   * has another key for a step: `lease_lost`, or `conflict` for the holder, whose run is stopped with the evidence (rules.C2).
   */
  readonly checkpoints?: readonly NewCheckpoint[] | undefined;
  /** Absent: no promise opens or closes. With an end, its presence says that the run may have open promises. */
  readonly promises?: PromiseChanges | undefined;
  /** runtimes.M2. The text of the holder's process; absent: the row has it. */
  readonly runtime?: string | undefined;
  /** The budget that the run pays from; absent: none. */
  readonly budget?: RunNumber | undefined;
  readonly then: "hold" | "release" | EndedRunStatus;
  /** With the end `continued` only. */
  readonly next?: NextGeneration;
  /** With an end: the number of messages in the journal that the code never read. */
  readonly unread?: number;
}
export type TurnOutcome =
  /** `more`: there are messages beyond `read`. `children`: the started children, in order. */
  | {
      readonly status: "committed";
      readonly more: boolean;
      readonly children: readonly RunRecord[];
      /** The generation that continues. */
      readonly next?: RunRecord;
      /** Runs that received messages by id: children, and runs with settled promises. Absent: none. */
      readonly reached?: readonly RunNumber[];
    }
  | { readonly status: "already_committed" }
  | { readonly status: "lease_lost" }
  | { readonly status: "conflict" };

/** The result of an item whose run another worker may hold. */
export interface EndItemWrite {
  readonly write: "end-item";
  readonly run: RunNumber;
  readonly item: string;
  readonly token: string;
  readonly slot?: QueueSlot;
  readonly arrival: Arrival;
}
/** Returns an item to the queue: with a delay after a failed attempt, immediately if the worker drains. */
export interface ReturnItemWrite {
  readonly write: "return-item";
  readonly run: RunNumber;
  readonly item: string;
  readonly token: string;
  readonly slot?: QueueSlot;
  readonly attempt: number;
  readonly availableAt?: EpochMs;
  /** Errors of the attempts so far, encoded; the terminal entry contains them. */
  readonly failures?: string;
  /** The attempt that failed; absent when the code did not run. */
  readonly failed?: FailedExecution;
  /** How often it was executed, if the worker did not call its code (attempts.X1). */
  readonly executions?: number;
  /** Where it waits from now on: the worker computed the key of a flow's node. */
  readonly into?: { readonly name: string; readonly slot: QueueSlot };
}
/** Returns a turn, due immediately: its holder no longer trusts its memory of the run. */
export interface ReturnTurnWrite extends Traced {
  readonly write: "return-turn";
  readonly run: RunNumber;
  readonly token: string;
}
export type ItemOutcome = { readonly status: "committed" } | { readonly status: "lease_lost" };

/** A message to a run: signal, resolve, reject, update or cancel. */
export interface MessageWrite {
  readonly write: "message";
  readonly to: string;
  readonly arrival: Arrival;
  /** Refuses a second message to the same target. */
  readonly once: boolean;
  /** Refuses a second message with the same id, for `DEDUP_MS` at least. */
  readonly dedupId?: string;
  /** Refuses a run of another definition. */
  readonly definition?: string;
  /** rules.W6. If no run has this id, the store creates an expected one. */
  readonly beforeStart?: ExpectedRun;
}
/** What is known about a run that received messages before its start. */
export type ExpectedRun = Pick<NewRun, "definition" | "kind" | "version" | "runtime">;
/** A repeated `dedupId` is ignored for at least this time. */
export const DEDUP_MS = 86_400_000;
export type MessageOutcome =
  | { readonly status: "committed"; readonly run: RunNumber }
  | { readonly status: "no_run" }
  | { readonly status: "ended"; readonly as: EndedRunStatus }
  | { readonly status: "other_definition"; readonly definition: string }
  /** `settled`: the data of the first message to a target that accepts one; undefined if the store does not have it. */
  | { readonly status: "duplicate"; readonly settled?: string };

/** Stops a run that cannot continue. Of the turn, only the evidence is stored. */
export interface StopWrite extends Traced {
  readonly write: "stop";
  readonly run: RunNumber;
  readonly token: string;
  /** Set: the token is that of this node of a flow, not of the turn. */
  readonly item?: string;
  readonly slot?: QueueSlot;
  readonly status: "determinism_violation" | "blocked";
  readonly evidence: string;
}
export type StopOutcome = { readonly status: "committed" } | { readonly status: "lease_lost" };

/** Claims due turns of runs of these definition versions, by priority, then oldest first. */
export interface ClaimTurnsWrite {
  readonly write: "claim-turns";
  readonly worker: number;
  /** One per turn to claim at most. */
  readonly tokens: readonly string[];
  readonly definitions: readonly DefinitionVersion[];
}
export interface ClaimedTurn {
  readonly record: RunRecord;
  readonly token: string;
  readonly inbox: readonly InboxRow[];
  /** store.S5. The level of a suspect; 0: not a suspect. */
  readonly suspicion: number;
}

export interface ClaimItemsWrite {
  readonly write: "claim-items";
  readonly worker: number;
  readonly tokens: readonly string[];
  /** Task names, and routes of nodes. */
  readonly names: readonly string[];
  /**
   * Also leases the turn of a task's run, under the token of the item, if the run is of one of these definition versions, waits, and
   * has no unread message. The end of the task is then part of the turn's commit. Absent: no turns.
   */
  readonly turnsOf?: readonly DefinitionVersion[];
  /**
   * queue.Q5. A refill: claims only from these queues, and no suspects. A store applies it in the transaction of the writes before
   * it, which free the slots. Absent: a claim from everywhere.
   */
  readonly refills?: readonly string[];
  /** queue.Q6. Queues whose slots the worker may lease, to start more items in them than they have slots. */
  readonly ahead?: readonly AheadClaim[];
  /** queue.Q6. Queues whose leased slots the worker gives back, before it claims. */
  readonly returnedSlots?: readonly string[];
}
/** queue.Q6 */
export interface AheadClaim {
  readonly queue: string;
  /** How many items to claim at most beside those that get a slot. */
  readonly count: number;
  /** How many functions of the queue the worker runs at once. Absent: all that it holds. */
  readonly slots?: number;
}
/** queue.Q6. The slots of a queue that a worker has leased. 0: it must start no further item that waits for one of them. */
export interface LeasedSlots {
  readonly queue: string;
  readonly slots: number;
}
export interface ClaimedItem {
  readonly run: RunNumber;
  readonly runId: string;
  /** The name of the run's definition. */
  readonly definition: string;
  readonly generation: number;
  readonly item: string;
  readonly kind: "task" | "node";
  readonly name: string;
  readonly token: string;
  readonly attempt: number;
  /** attempts.X1 */
  readonly execution: number;
  readonly failures: string | undefined;
  /** The entry its row names. */
  readonly seq: number;
  /** The data of that entry; empty for a node, whose inputs the worker reads when it starts (rules.F7). */
  readonly data: string;
  /** As in `ClaimedTurn`. */
  readonly suspicion: number;
  readonly slot?: QueueSlot;
  /** The budget that its run pays from. */
  readonly budget?: RunNumber | undefined;
  /** The claim also leased the turn of the run, under the same token. The run has no unread message. */
  readonly turn?: RunRecord;
}
export interface ClaimItemsOutcome extends ThrottledWork {
  readonly items: readonly ClaimedItem[];
  /** queue.Q6. For each queue of `ahead` where the worker has leased slots now, and other queues that were read. Absent: not read. */
  readonly slots?: readonly LeasedSlots[];
}

/** Fires due timers, makes delayed items ready and starts delayed runs, oldest first. */
export interface FireDueWrite {
  readonly write: "fire-due";
  readonly limit: number;
}
export interface FireDueOutcome {
  /** Runs that got a message, or started. */
  readonly runs: readonly RunNumber[];
  readonly ready: number;
  /** When the next one is due; undefined: none. */
  readonly nextAt: EpochMs | undefined;
}

/** Every kind of write, with its outcome. */
export interface Writes {
  readonly start: [StartWrite, StartOutcome];
  readonly fork: [ForkWrite, ForkOutcome];
  readonly turn: [TurnWrite, TurnOutcome];
  readonly "return-turn": [ReturnTurnWrite, ItemOutcome];
  readonly "end-item": [EndItemWrite, ItemOutcome];
  readonly "return-item": [ReturnItemWrite, ItemOutcome];
  readonly message: [MessageWrite, MessageOutcome];
  readonly stop: [StopWrite, StopOutcome];
  readonly resume: [ResumeWrite, ResumeOutcome];
  readonly pause: [PauseWrite, PauseOutcome];
  readonly reserve: [ReserveWrite, ReserveOutcome];
  readonly "answer-budget": [AnswerBudgetWrite, AnswerBudgetOutcome];
  readonly "offer-budget": [OfferBudgetWrite, OfferBudgetOutcome];
  readonly terminate: [TerminateWrite, TerminateOutcome];
  readonly retry: [RetryWrite, RetryOutcome];
  readonly migrate: [MigrateWrite, MigrateOutcome];
  readonly "claim-turns": [ClaimTurnsWrite, readonly ClaimedTurn[]];
  readonly "claim-items": [ClaimItemsWrite, ClaimItemsOutcome];
  readonly "fire-due": [FireDueWrite, FireDueOutcome];
  readonly "claim-messages": [ClaimMessagesWrite, ClaimMessagesOutcome];
  readonly "message-delivered": [MessageDeliveredWrite, MessageDeliveredOutcome];
  readonly "return-message": [ReturnMessageWrite, ItemOutcome];
  readonly "put-schedule": [PutScheduleWrite, PutScheduleOutcome];
  readonly "remove-schedule": [RemoveScheduleWrite, RemoveScheduleOutcome];
  readonly complete: [CompleteWrite, CompleteOutcome];
  readonly admit: [AdmitWrite, AdmitOutcome];
  readonly "declare-queue": [DeclareQueueWrite, QueueOutcome];
  readonly "change-queue": [ChangeQueueWrite, QueueOutcome];
  readonly sequence: [SequenceWrite, SequenceOutcome];
  readonly release: [ReleaseWrite, ReleaseOutcome];
}

export type Write = Writes[keyof Writes][0];
/** The outcome of a write. */
export type OutcomeOf<W extends Write> = Writes[W["write"]][1];
export type Outcome = Writes[keyof Writes][1];
