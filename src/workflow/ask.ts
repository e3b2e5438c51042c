// Asks: what workflow code asked for that the journal does not have yet. The worker turns them into entries and work.

import type { EpochMs, RepriseError } from "../base/index.ts";
import type { AnyTask, Arrival, Database, Definition, Line, Policy } from "../kernel/index.ts";
import type { OperationContext } from "./context.ts";

interface Journaled {
  /** `Task(3)` */
  readonly command: string;
  /** The entry's canonical text. */
  readonly data: string;
}

export interface TaskAsk extends Journaled {
  readonly ask: "task";
  readonly task: AnyTask;
  readonly priority: number;
  readonly line: Line | undefined;
}
export interface ChildAsk extends Journaled {
  readonly ask: "child";
  readonly definition: Definition;
  readonly childId: string;
  readonly input: string | undefined;
  readonly detached: boolean;
  readonly line: Line | undefined;
  readonly deadlineMs: number | undefined;
}
export interface TimerAsk extends Journaled {
  readonly ask: "timer";
  /** From the entry's own time, or a moment. */
  readonly due: { readonly afterMs: number } | { readonly at: EpochMs };
}
export interface CancelTimerAsk extends Journaled {
  readonly ask: "cancel-timer";
}
export interface PromiseAsk extends Journaled {
  readonly ask: "promise";
  readonly timeoutMs: number | undefined;
}
export interface StateAsk extends Journaled {
  readonly ask: "state";
  readonly type: "StateSet" | "StateCleared";
}
export interface SendAsk extends Journaled {
  readonly ask: "send";
  readonly destination: string;
}
/** A chunk of a stream: no entry, and no command. */
export interface EmitAsk {
  readonly ask: "emit";
  readonly stream: string;
  /** From 0, per stream. */
  readonly number: number;
  readonly data: string;
}
/** No command: it takes no index, so that code which no longer asks is no violation. */
export interface PatchAsk {
  readonly ask: "patch";
  readonly command: "";
  readonly data: string;
}
/** The answer to an update. */
export interface AnswerAsk extends Journaled {
  readonly ask: "answer";
  readonly type: "UpdateCompleted" | "UpdateFailed";
}
/** A message to a child, in the same commit as its entry. */
export interface ChildMessageAsk extends Journaled {
  readonly ask: "child-message";
  readonly type: "ChildSignalled" | "ChildCancelRequested";
  readonly childId: string;
  readonly arrival: Arrival;
}
/** An operation has no entry until it ends (W3). */
export interface OperationAsk {
  readonly ask: "operation";
  readonly command: string;
  readonly name: string;
  /** Command index, and the encoded input where there is one: the fields of its terminal entry. */
  readonly index: number;
  readonly input: string | undefined;
  readonly call: (op: OperationContext, input: unknown) => unknown;
  /** Set for `ctx.tx`: `call` is given a handle on this database instead. */
  readonly database: Database<unknown> | undefined;
  readonly policy: Policy;
  /** V3 */
  readonly life: number;
  /** It is a node of a graph: its entries say so, and it may wait for what comes while nobody holds the run. */
  readonly isNode?: boolean;
  /** Attempts that already failed, and when the next one is due. */
  readonly attempt: number;
  readonly dueAt: EpochMs | undefined;
}

/** A step of a graph is complete: its checkpoint, in the commit that holds its last result or the next one. */
export interface StepAsk {
  readonly ask: "step";
  readonly data: string;
  readonly step: number;
  readonly key: string;
  readonly label: string | undefined;
  /** The state in parts, when the whole of it is to be kept. */
  readonly whole: readonly string[] | undefined;
  /** To be told when its entry was written. */
  readonly written: (at: EpochMs) => void;
}

/** A node of a step in which another one failed for good (G12); with what an entry of its end says. */
export interface StoppedNode {
  readonly command: string;
  readonly name: string;
  readonly index: number;
}
export interface StopNodesAsk {
  readonly ask: "stop-nodes";
  readonly nodes: readonly StoppedNode[];
  readonly error: RepriseError;
}

/** G5. How long an item of a step may go on waiting for room before the run is paused; without a limit none waits. */
export interface LimitWaitAsk {
  readonly ask: "limit-wait";
  readonly limit: { readonly ms: number; readonly evidence: () => PauseEvidence } | undefined;
}
export interface PauseEvidence {
  readonly code: "BACKPRESSURE_TIMEOUT";
  readonly message: string;
  readonly where: string;
}

export type Ask =
  | StepAsk
  | LimitWaitAsk
  | StopNodesAsk
  | TaskAsk
  | ChildAsk
  | TimerAsk
  | CancelTimerAsk
  | PromiseAsk
  | StateAsk
  | PatchAsk
  | EmitAsk
  | SendAsk
  | OperationAsk
  | AnswerAsk
  | ChildMessageAsk;
