// Commit: the only way a run moves forward.
//
// K1. A write is fenced: it names the token it was given, and a token that no longer matches voids the whole write.
// K2. Outcomes are values. A store answers only when the outcome is certain; `unknown` never leaves it.
// K3. Writes share a transaction, yet each is atomic by itself: a void one contributes nothing.
// K4. At most one turn commit per run in a batch. `seq` is assigned by the holder of the turn, dense from its head.
// K5. An inbox row is an entry that has no place yet; only the holder of the turn gives it one.

import type { EpochMs } from "../base/index.ts";
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
import type { Entry, EntryType } from "./journal.ts";
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
import type { NewChunk } from "./stream.ts";
import type { PutScheduleOutcome, PutScheduleWrite, RemoveScheduleOutcome, RemoveScheduleWrite } from "./schedule.ts";

/** A run about to exist. `started` is the data of its first entry, input included. */
export interface NewRun {
  readonly id: string;
  readonly definition: string;
  readonly kind: RunRecord["kind"];
  readonly version: number;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly started: string;
  readonly runtime: string;
  /** Set: it begins when its queue has room. */
  readonly slot?: QueueSlot;
  /** Counted from its start; it then gets a `DeadlineExceeded` from the queue. */
  readonly deadlineMs?: number;
}

/** The queue item of a run's deadline. */
export const DEADLINE_ITEM = "Deadline";

/** A lease a worker gives itself on something it creates. */
export interface Claim {
  readonly worker: number;
  readonly token: string;
}

export interface StartWrite {
  readonly write: "start";
  readonly run: NewRun;
  /** Set to lease the first turn to the starter in the same write; not for a run that begins later. */
  readonly claim?: Claim;
  /** Delivered in the same write, in this order, when the run is started by it. */
  readonly messages?: readonly Arrival[];
  /** It begins this much later. */
  readonly delayMs?: number;
  /** While a live run of the definition has this key, nothing is started. */
  readonly singleton?: string;
  /** A run of the definition with this key that has not begun takes over what was given, and begins `delayMs` from now. */
  readonly debounce?: string;
}
export type StartOutcome =
  /** A run that was expected has its earlier messages before those of the start. */
  | { readonly status: "started"; readonly record: RunRecord; readonly first: Entry }
  /** The id is taken; the caller compares `first` with what it wanted to start. */
  | { readonly status: "exists"; readonly record: RunRecord; readonly first: Entry }
  /** A live run has the singleton's key. */
  | { readonly status: "singleton"; readonly record: RunRecord; readonly first: Entry }
  /** A run that had not begun has a new first entry. */
  | { readonly status: "debounced"; readonly record: RunRecord; readonly first: Entry }
  /** The id is that of a run which is expected to follow another definition. */
  | { readonly status: "other_definition"; readonly record: RunRecord };

/** An entry on its way into a run: from a task, a timer, a child, a person. */
export interface Arrival {
  readonly type: EntryType;
  /** A command (`Task(3)`) or a port name. */
  readonly target: string;
  readonly data: string;
}

/** A row of the inbox. */
export interface InboxRow extends Arrival {
  readonly arrival: number;
}

/** Work any worker may claim; a timer when `kind` says so. Identity is the command, so a replay never makes another. */
export interface NewItem {
  /** The command it serves, unique in the run. */
  readonly item: string;
  readonly kind: "task" | "timer" | "node";
  /** Task name, or route of a node; for a timer the entry type its firing becomes. */
  readonly name: string;
  readonly priority: number;
  /** Undefined: at once. */
  readonly availableAt?: EpochMs;
  /** The entry that holds its input. */
  readonly seq: number;
  /** Not for an item in a line. */
  readonly claim?: Claim;
  readonly slot?: QueueSlot;
}

export interface ItemFence {
  readonly item: string;
  readonly token: string;
  /** As it was claimed: its place is free now. */
  readonly slot?: QueueSlot;
}

export interface NewChild {
  readonly run: NewRun;
  readonly command: string;
  /** A detached child does not answer. */
  readonly detached: boolean;
  readonly claim?: Claim;
  /** Goes into the parent's own inbox when the child's id belongs to another run. */
  readonly taken: Arrival;
}

/** What the holder of a run's turn commits. */
export interface TurnWrite {
  readonly write: "turn";
  readonly run: RunNumber;
  readonly token: string;
  /**
   * Entries `seq > head`, in order; `chain` is the chain after the last of them, `previousChain` the one at `head`. The write
   * is void unless the row has this token, head and chain: a head alone says nothing about which history it counts.
   */
  readonly head: number;
  readonly previousChain: string;
  readonly entries: readonly Entry[];
  readonly chain: string;
  /** Everything up to this arrival number has become an entry or was dropped. */
  readonly read: number;
  /** Items this worker held and finished; each is fenced by its own token. */
  readonly finished: readonly ItemFence[];
  readonly items: readonly NewItem[];
  /** Items no longer wanted: cancelled timers and tasks. */
  readonly dropped: readonly string[];
  readonly children: readonly NewChild[];
  /**
   * To other runs, in the same transaction: the parent's answer, by number; a child's cancel, by id. Dropped where the run
   * has ended, or where the id is not a child of this run: it may belong to somebody else.
   */
  readonly messages: readonly { readonly to: RunNumber | string; readonly arrival: Arrival }[];
  /** Chunks of streams, in order. */
  readonly chunks: readonly NewChunk[];
  /** O1. Messages to the outside, in order. */
  readonly outgoing: readonly NewMessage[];
  /**
   * Of a graph: one per step that is complete, first of all that is written. All in already, with the same keys: `already_committed`.
   * Another key for a step that is in: `lease_lost`, or `conflict` from the holder, whose run is stopped with the evidence (C2).
   */
  readonly checkpoints?: readonly NewCheckpoint[] | undefined;
  readonly then: "hold" | "release" | EndedRunStatus;
  /** With the end `continued`, and with no other. */
  readonly next?: NextGeneration;
  /** With an end: messages that are in the journal and that the code never took. */
  readonly unread?: number;
}
export type TurnOutcome =
  /** `more`: messages beyond `read` are waiting. `children`: those that were started, in order. */
  | {
      readonly status: "committed";
      readonly more: boolean;
      readonly children: readonly RunRecord[];
      /** The generation that goes on. */
      readonly next?: RunRecord;
      /** Children that messages by id have reached; left out where there are none. */
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
/** Gives an item back: later when an attempt failed, at once when the worker drains. */
export interface ReturnItemWrite {
  readonly write: "return-item";
  readonly run: RunNumber;
  readonly item: string;
  readonly token: string;
  readonly slot?: QueueSlot;
  readonly attempt: number;
  readonly availableAt?: EpochMs;
  /** Errors of the attempts so far, encoded; handed over with the terminal entry. */
  readonly failures?: string;
}
/** Gives a turn back, due at once: its holder no longer trusts what it has in memory. */
export interface ReturnTurnWrite {
  readonly write: "return-turn";
  readonly run: RunNumber;
  readonly token: string;
}
export type ItemOutcome = { readonly status: "committed" } | { readonly status: "lease_lost" };

/** From outside: signal, resolve, reject, cancel. */
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
  /** W6. Without a run of this id, one is expected from now on. */
  readonly beforeStart?: ExpectedRun;
}
/** What is known of a run that was spoken to before it was started. */
export type ExpectedRun = Pick<NewRun, "definition" | "kind" | "version" | "runtime">;
/** How long a store remembers the ids of messages. */
export const DEDUP_MS = 86_400_000;
export type MessageOutcome =
  | { readonly status: "committed"; readonly run: RunNumber }
  | { readonly status: "no_run" }
  | { readonly status: "ended"; readonly as: EndedRunStatus }
  | { readonly status: "other_definition"; readonly definition: string }
  | { readonly status: "duplicate" };

/** Stops a run that cannot go on as it is; nothing of the turn is kept but the evidence. */
export interface StopWrite {
  readonly write: "stop";
  readonly run: RunNumber;
  readonly token: string;
  /** The token is that of this node of a flow, not of the turn. */
  readonly item?: string;
  readonly slot?: QueueSlot;
  readonly status: "determinism_violation" | "blocked";
  readonly evidence: string;
}
export type StopOutcome = { readonly status: "committed" } | { readonly status: "lease_lost" };

/** Takes due turns of runs that follow one of these versions, most urgent first, oldest first. */
export interface ClaimTurnsWrite {
  readonly write: "claim-turns";
  readonly worker: number;
  /** One per turn that may be taken. */
  readonly tokens: readonly string[];
  readonly definitions: readonly DefinitionVersion[];
}
export interface ClaimedTurn {
  readonly record: RunRecord;
  readonly token: string;
  readonly inbox: readonly InboxRow[];
  /** S5. The level of a suspect; 0 when it is none. */
  readonly suspicion: number;
}

export interface ClaimItemsWrite {
  readonly write: "claim-items";
  readonly worker: number;
  readonly tokens: readonly string[];
  /** Task names, and routes of nodes. */
  readonly names: readonly string[];
}
export interface ClaimedItem {
  readonly run: RunNumber;
  readonly runId: string;
  readonly generation: number;
  readonly item: string;
  readonly kind: "task" | "node";
  readonly name: string;
  readonly token: string;
  readonly attempt: number;
  readonly failures: string | undefined;
  /** The entry its row names. */
  readonly seq: number;
  /** The data of that entry; empty for a node, whose inputs are read when it starts (F7). */
  readonly data: string;
  /** S5. As of a turn. */
  readonly suspicion: number;
  readonly slot?: QueueSlot;
}
export interface ClaimItemsOutcome extends ThrottledWork {
  readonly items: readonly ClaimedItem[];
}

/** Fires timers that are due, makes delayed items ready and lets delayed runs begin, oldest first. */
export interface FireDueWrite {
  readonly write: "fire-due";
  readonly limit: number;
}
export interface FireDueOutcome {
  /** Runs that got an arrival, or began. */
  readonly runs: readonly RunNumber[];
  readonly ready: number;
  /** When the next one is due, if there is one. */
  readonly nextAt: EpochMs | undefined;
}

/** Every kind of write, and the outcome it answers with. */
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
  readonly terminate: [TerminateWrite, TerminateOutcome];
  readonly retry: [RetryWrite, RetryOutcome];
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
}

export type Write = Writes[keyof Writes][0];
/** The outcome a write answers with. */
export type OutcomeOf<W extends Write> = Writes[W["write"]][1];
export type Outcome = Writes[keyof Writes][1];
