// Execution host: what an execution needs from its worker, and the reasons for which it stops.

import { formatMs, RepriseError, type PayloadLimits } from "../base/index.ts";
import type { AnyTask, Definition, LogLevel, ModelNames, Ports, QueueSlot } from "../kernel/index.ts";
import type { OperationRequest } from "./command-request.ts";
import type { OperationContext } from "./context.ts";
import type { Violation } from "./command-matcher.ts";
import { describeDefinition } from "./refusals.ts";
import { encodeInput } from "./entry-data.ts";
import type { Differs } from "./validation-matrix.ts";
import type { Guard, NondeterminismError } from "./guard.ts";

export type { LogLevel };

/** What executions need from the worker that runs them. Runs share it, except for what concerns the nodes of a graph. */
export interface ExecutionHost {
  /** The kind of database behind `ctx.tx`; undefined in a replay, which writes nothing. */
  readonly storeKind?: string;
  /** A line of the code of this run. */
  log(run: string, level: LogLevel, message: string, data?: object): void;
  /** Checks the calls of the code that bypass `ctx`. */
  readonly guard?: Guard | undefined;
  /** Patches the functions that library code calls in `ctx.deterministic`, also where no calls are checked. */
  readonly library?: Guard | undefined;
  /** Called when the code of a node has made a request without a delivery. */
  onNodeRequest?(): void;
  /** Called when the code of a node starts or stops waiting (running-nodes.N1). */
  onNodeWaiting?(command: string, isWaiting: boolean): void;
  /** True: the replay notes the difference and continues with the recorded result. */
  readonly tolerates?: (found: Violation) => boolean;
  /** Called when the journal answers a call instead of the function. */
  onRecordedCall?(command: string, name: string, call: OperationRequest["call"] | undefined, input: unknown): void;
  /** Called when a replay has found a pure step with a recorded answer. */
  readonly onPureCall?: (call: PureCall) => void;
  /** Checks the calls of nodes that bypass `ctx`, in a replay. */
  readonly nodeGuard?: Guard | undefined;
  /** The parsed input of a task; undefined if the task is not registered. */
  acceptTask(task: AnyTask, input: unknown): AcceptedInput | undefined;
  hasTask(task: AnyTask): boolean;
  acceptChild(definition: Definition, input: unknown): AcceptedInput | undefined;
  /** The ports of a definition; undefined if it is not registered. */
  portsOf(definition: Definition): Ports | undefined;
  /** The parsed input of the next generation; undefined if that version is not registered. */
  acceptNext(name: string, version: number, input: unknown): { readonly input: unknown } | undefined;
}

/** A pure step of a replayed run, to be called again. */
export interface PureCall {
  readonly command: string;
  readonly name: string;
  readonly pure: string;
  /** Calls its function with a copy of the recorded input. */
  readonly call: (op: OperationContext) => unknown;
}

export interface AcceptedInput {
  readonly input: unknown;
  readonly parsed: boolean;
  /** Undefined: the default queue. */
  readonly slot?: QueueSlot | undefined;
}

export interface RunIdentity {
  readonly id: string;
  readonly generation: number;
}

export type CodeOutcome =
  | { readonly status: "returned"; readonly value: unknown }
  | { readonly status: "threw"; readonly error: unknown }
  /** `input` is the input of the next generation, `given` the digest of the value that the code passed. */
  | {
      readonly status: "continued";
      readonly version: number;
      readonly input: string | undefined;
      readonly given: string | undefined;
      /** fork.F8 */
      readonly models?: ModelNames | undefined;
    };

/** Why an execution stops; stored as the evidence of the run. */
export interface Stop {
  readonly status: "determinism_violation" | "blocked";
  readonly code:
    | "DETERMINISM_VIOLATION"
    | "EFFECT_NOT_RECORDED"
    | "JOURNAL_TOO_LONG"
    | "NONDETERMINISM"
    | "STALLED"
    | "UNKNOWN_TASK"
    | "GRAPH_CHANGED"
    | "UNKNOWN_DEFINITION";
  readonly message: string;
  readonly where: string;
  readonly seq: number | undefined;
  readonly expected: unknown;
  readonly actual: unknown;
  /** Absent: another command, order or name, or no difference from the journal. */
  readonly differs?: Differs;
}

/** The code requests a definition that is not registered: the deployment is wrong, not the run. */
export function unregistered(
  code: "UNKNOWN_TASK" | "UNKNOWN_DEFINITION",
  by: Pick<Definition, "kind" | "name">,
  name: string,
  where: string,
): Stop {
  const what = code === "UNKNOWN_TASK" ? "task" : "definition";
  return {
    status: "blocked",
    code,
    where,
    seq: undefined,
    message: `${describeDefinition(by)} requests ${what} \`${name}\`, which is not registered in this process. Add it to \`definitions\`, or export it from the file that \`reprise worker\` loads.`,
    expected: name,
    actual: undefined,
  };
}

/** fork.F6. The code requests something that the origin of the fork did not, or that it never got an answer to. */
export function effectNotRecorded(definition: string, command: string, name: string, isRequested: boolean): Stop {
  const why = isRequested ? "recorded no answer to it" : "did not request it with this name and input";
  return {
    status: "blocked",
    code: "EFFECT_NOT_RECORDED",
    where: command,
    seq: undefined,
    message: `The code of ${definition} requests ${command} (${name}), but the origin of this fork ${why}, and the fork uses recorded effects only. Fork again with an answer for ${command}, or with effects: "live".`,
    expected: `a recorded answer to ${command}`,
    actual: isRequested ? "no answer" : "no such request",
  };
}

/** `ctx.patched` is a method of workflows only. */
export function violated(found: Violation, kind: Definition["kind"]): Stop {
  const { message, where, seq, expected, actual, differs } = found;
  const advice =
    found.advice ??
    (kind === "workflow" ? "Restore the code, or guard the change with ctx.patched(…)." : "Restore the code.");
  return {
    status: "determinism_violation",
    code: "DETERMINISM_VIOLATION",
    message: `${message}. ${advice}`,
    where,
    seq,
    expected,
    actual,
    ...(differs !== undefined && { differs }),
  };
}

/** The guard detected a call that is not deterministic. */
export function nondeterministic({ message, called, instead, location }: NondeterminismError): Stop {
  return {
    status: "blocked",
    code: "NONDETERMINISM",
    where: location,
    seq: undefined,
    message,
    expected: instead,
    actual: called,
  };
}

/** The code waits for a promise that the engine does not own, so no entry can settle it. */
export function stalled(workflow: string, lastCommand: string | undefined, place?: string): Stop {
  const after = lastCommand === undefined ? "before its first command" : `after ${lastCommand}`;
  const where = place === undefined ? after : `at ${place}, ${after}`;
  return {
    status: "blocked",
    code: "STALLED",
    where,
    seq: undefined,
    message: `Workflow ${workflow} waits for a promise that the engine does not own (${where}), such as a timer, a fetch or an import. Move the call into ctx.run() or a task, and wait with ctx.sleep().`,
    expected: "a promise made by ctx",
    actual: "another promise",
  };
}

/** The reason with which the children of a run are canceled at its deadline. */
export const PARENT_DEADLINE_PASSED = "The deadline of its parent has passed.";

/** The error that the code receives at the deadline. */
export function deadlineExceeded(run: string, deadlineMs: number | undefined): RepriseError {
  const given = deadlineMs === undefined ? "" : ` of ${formatMs(deadlineMs)}`;
  return new RepriseError("DEADLINE_EXCEEDED", `Run ${run} did not end within its deadline${given}.`);
}

/** The error that the run fails with; undefined if it completes. An output that cannot be encoded is a failure. */
export function failureOf(
  outcome: CodeOutcome,
  limits: PayloadLimits | undefined,
): { readonly error: unknown } | undefined {
  if (outcome.status === "threw") return outcome;
  if (outcome.status === "continued") return undefined;
  try {
    encodeInput(outcome.value, limits);
    return undefined;
  } catch (notData) {
    return { error: notData };
  }
}
