// What an execution needs from its worker, and what it says of itself.

import { formatMs, RepriseError, type PayloadLimits } from "../base/index.ts";
import type { AnyTask, Definition, Line } from "../kernel/index.ts";
import type { OperationAsk } from "./ask.ts";
import type { Violation } from "./commands.ts";
import { titleOf } from "./refusals.ts";
import { encodeInput } from "./entry-data.ts";
import type { Guard, NondeterminismError } from "./guard.ts";

export type LogLevel = "info" | "warn" | "error";

/** What an execution needs from the worker that runs it. */
export interface ExecutionHost {
  /** The kind of database `ctx.tx` reaches; undefined where nothing is written, as in a replay of a saved journal. */
  readonly storeKind?: string;
  log(level: LogLevel, message: string, data?: object): void;
  /** Watches what the code does past `ctx`. */
  readonly guard?: Guard | undefined;
  /** Code has asked for something by itself, not because something was delivered to it. */
  asked?(): void;
  /** The code of a node has begun to wait for something that may come while nobody holds the run, or goes on. */
  nodeWaits?(command: string, isWaiting: boolean): void;
  /** True: a replay notes the difference and goes on with what was recorded. */
  readonly tolerates?: (found: Violation) => boolean;
  /** A recorded call is not made again: it is answered from the journal. */
  served?(command: string, name: string, call: OperationAsk["call"] | undefined, input: unknown): void;
  /** Watches what the code of nodes does past `ctx`, in a replay. */
  readonly nodeGuard?: Guard | undefined;
  /** Validated input of a registered task, or undefined when nobody here can run it. */
  acceptTask(task: AnyTask, input: unknown): Accepted | undefined;
  hasTask(task: AnyTask): boolean;
  acceptChild(definition: Definition, input: unknown): Accepted | undefined;
  /** The input of a next generation, or undefined when nobody here can run that version. */
  acceptNext(name: string, version: number, input: unknown): { readonly input: unknown } | undefined;
}

export interface Accepted {
  readonly input: unknown;
  readonly parsed: boolean;
  /** Where it waits; undefined in the default queue. */
  readonly line?: Line | undefined;
}

export interface RunFacts {
  readonly id: string;
  readonly generation: number;
}

export type CodeOutcome =
  | { readonly status: "returned"; readonly value: unknown }
  | { readonly status: "threw"; readonly error: unknown }
  /** `input` is what the next generation starts with, `given` the digest of what the code gave. */
  | {
      readonly status: "continued";
      readonly version: number;
      readonly input: string | undefined;
      readonly given: string | undefined;
    };

/** Why an execution cannot go on, in the words of its evidence. */
export interface Stop {
  readonly status: "determinism_violation" | "blocked";
  readonly code:
    | "DETERMINISM_VIOLATION"
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
}

/** Code asks for something nobody here can run: the deployment is wrong, not the run. */
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
    message: `${titleOf(by)} asks for the ${what} ${name}, which is not registered. Add it to \`definitions\` of createEngine and resume the run.`,
    expected: name,
    actual: undefined,
  };
}

/** Code used the clock, chance or the outside directly, and the guard saw it. */
export function nondeterministic({ message, called, instead, place }: NondeterminismError): Stop {
  return {
    status: "blocked",
    code: "NONDETERMINISM",
    where: place,
    seq: undefined,
    message,
    expected: instead,
    actual: called,
  };
}

/** Code waits, and for nothing that was asked of the engine: no journal could ever wake it. */
export function stalled(workflow: string, lastCommand: string | undefined, place?: string): Stop {
  const after = lastCommand === undefined ? "before its first command" : `after ${lastCommand}`;
  const where = place === undefined ? after : `at ${place}, ${after}`;
  return {
    status: "blocked",
    code: "STALLED",
    where,
    seq: undefined,
    message: `Workflow ${workflow} waits for a promise the engine does not own, ${where}: a timer, a fetch, an import. Put what takes time into ctx.run() or a task and wait with ctx.sleep(), then resume the run`,
    expected: "a promise made by ctx",
    actual: "another promise",
  };
}

/** What the children of a run hear whose time is up. */
export const DEADLINE_PASSED = "The deadline of its parent has passed.";

/** What the code of a run is told when its time is up. */
export function deadlineExceeded(run: string, deadlineMs: unknown): RepriseError {
  const given = typeof deadlineMs === "number" ? ` of ${formatMs(deadlineMs)}` : "";
  return new RepriseError("DEADLINE_EXCEEDED", `Run ${run} did not end within its deadline${given}.`);
}

/** What the run fails with, unless it completes: an output that cannot be kept is a failure too. */
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
