// Command requests: what the code has requested and the journal does not have yet. The worker turns them into entries and work.

import type { EpochMs, RepriseError } from "../base/index.ts";
import type {
  AnyTask,
  Arrival,
  CallCost,
  Database,
  Definition,
  ModelNames,
  ChildBudget,
  QueueSlot,
  Policy,
  SentSettlement,
} from "../kernel/index.ts";
import type { OperationContext } from "./context.ts";

interface RecordedRequest {
  /** `Task(3)` */
  readonly command: string;
  /** The entry's canonical text. */
  readonly data: string;
}

export interface TaskRequest extends RecordedRequest {
  readonly kind: "task";
  readonly task: AnyTask;
  readonly priority: number;
  readonly slot: QueueSlot | undefined;
}
export interface ChildRequest extends RecordedRequest {
  readonly kind: "child";
  readonly definition: Definition;
  readonly childId: string;
  readonly input: string | undefined;
  readonly detached: boolean;
  readonly slot: QueueSlot | undefined;
  readonly deadlineMs: number | undefined;
  /** fork.F8. Those of its parent. */
  readonly models?: ModelNames | undefined;
  /** Undefined: its definition's, or that of the parent. */
  readonly budget?: ChildBudget | undefined;
}
export interface TimerRequest extends RecordedRequest {
  readonly kind: "timer";
  /** Counted from the time of the entry, or a moment. */
  readonly due: { readonly afterMs: number } | { readonly at: EpochMs };
  /** fork.F5. Since when it runs in the origin: the fork keeps its due time. */
  readonly since?: EpochMs | undefined;
}
export interface CancelTimerRequest extends RecordedRequest {
  readonly kind: "cancel-timer";
}
/** The cancel of one task. */
export interface CancelTaskRequest extends RecordedRequest {
  readonly kind: "cancel-task";
  /** `TaskCancelled`: its item is dropped and its function aborted. `TaskCancelRequested`: it finishes first (undo.U5). */
  readonly type: "TaskCancelled" | "TaskCancelRequested";
}
interface OpenPromiseRequest {
  readonly promiseId: string;
  readonly name: string;
  readonly key: string | undefined;
}
export interface PromiseRequest extends RecordedRequest {
  readonly kind: "promise";
  readonly timeoutMs: number | undefined;
  /** fork.F5. Since when the origin waits for it: the fork keeps its timeout. */
  readonly since?: EpochMs | undefined;
  /** Set for a promise that is open; not for a wait for signals. */
  readonly open?: OpenPromiseRequest | undefined;
}
export interface StateRequest extends RecordedRequest {
  readonly kind: "state";
  readonly type: "StateSet" | "StateCleared";
}
export interface SendRequest extends RecordedRequest {
  readonly kind: "send";
  readonly destination: string;
}
/** A chunk of a stream. It is not a command and has no entry. */
export interface EmitRequest {
  readonly kind: "emit";
  readonly stream: string;
  /** From 0, per stream. */
  readonly number: number;
  readonly data: string;
}
/** Not a command: it takes no index, so code may drop the call (command-patched.V3). */
export interface PatchRequest {
  readonly kind: "patch";
  readonly command: "";
  readonly data: string;
}
/** A replay passed another input than the recorded one. */
export interface InputChangeRequest extends RecordedRequest {
  readonly kind: "input-change";
  readonly message: string;
}
/** The answer to an update. */
export interface AnswerRequest extends RecordedRequest {
  readonly kind: "answer";
  readonly type: "UpdateCompleted" | "UpdateFailed";
}
/** A promise of another run, settled by the commit of its entry. */
export interface SettleRequest extends RecordedRequest {
  readonly kind: "settle";
  readonly settlement: SentSettlement;
}
/** A message to a child, sent by the commit of its entry. */
export interface ChildMessageRequest extends RecordedRequest {
  readonly kind: "child-message";
  readonly type: "ChildSignalled" | "ChildCancelRequested";
  readonly childId: string;
  readonly arrival: Arrival;
}
/** An operation has no entry until it ends (rules.W3). */
export interface OperationRequest {
  readonly kind: "operation";
  readonly command: string;
  readonly name: string;
  /** The command index, and the encoded input if there is one. */
  readonly index: number;
  readonly input: string | undefined;
  readonly call: (op: OperationContext, input: unknown) => unknown;
  /** Set for `ctx.tx`: `call` gets a handle on this database instead. */
  readonly database: Database<unknown> | undefined;
  readonly policy: Policy;
  /** The version of its function, if its result depends on its input alone. */
  readonly pure?: string | undefined;
  readonly cost?: CallCost | undefined;
  /** True: the function is called, even if the effects of the run are those of its origin (fork-answers.A6). */
  readonly isLive?: boolean;
  /** retry-record.V3 */
  readonly epoch: number;
  /** A node of a graph: recorded as such, and it may wait for messages while no worker holds the run. */
  readonly isNode?: boolean;
  /** False: a node that calls services outside of `ctx` (rules.G8). */
  readonly isRecordable?: boolean;
  /** The number of failed attempts, and when the next one is due. */
  readonly attempt: number;
  readonly dueAt: EpochMs | undefined;
  /** attempts.X1. How many turns were lost since the code requested it: their holders may have called it. */
  readonly lostTurns: number;
  /** A node that was requested while the journal was replayed. */
  readonly isReplayed?: boolean;
}

/** The checkpoint of a graph's completed step; goes into the commit of the step's last result, or into the next one. */
export interface StepRequest {
  readonly kind: "step";
  readonly data: string;
  readonly step: number;
  readonly key: string;
  readonly label: string | undefined;
  /** The parts of the whole state, when the checkpoint keeps it. */
  readonly whole: readonly string[] | undefined;
  /** Called when the entry is appended. */
  readonly written: (at: EpochMs) => void;
}

/** A node of a step in which another node failed permanently (rules.G12). */
export interface StoppedNode {
  readonly command: string;
  readonly name: string;
  readonly index: number;
}
export interface StopNodesRequest {
  readonly kind: "stop-nodes";
  readonly nodes: readonly StoppedNode[];
  readonly error: RepriseError;
}

/** rules.G5. How long an item of a step may wait for room before the run is paused. Undefined: no item waits. */
export interface LimitWaitRequest {
  readonly kind: "limit-wait";
  readonly limit: { readonly ms: number; readonly evidence: () => PauseEvidence } | undefined;
}
export interface PauseEvidence {
  readonly code: "BACKPRESSURE_TIMEOUT";
  readonly message: string;
  readonly where: string;
}

export type CommandRequest =
  | StepRequest
  | LimitWaitRequest
  | StopNodesRequest
  | TaskRequest
  | ChildRequest
  | TimerRequest
  | CancelTimerRequest
  | CancelTaskRequest
  | PromiseRequest
  | StateRequest
  | PatchRequest
  | InputChangeRequest
  | EmitRequest
  | SendRequest
  | OperationRequest
  | AnswerRequest
  | ChildMessageRequest
  | SettleRequest;
