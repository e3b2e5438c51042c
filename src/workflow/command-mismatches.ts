// Command mismatches: the texts of differences between a command of the code and the journal.

import { nodeItemOf, type CommandType, type EntryFields, type EntryType } from "../kernel/index.ts";
import type { Violation } from "./command-matcher.ts";
import type { ChildMessageEntry } from "./recorded-journal.ts";
import type { NodeScope } from "./scope.ts";
import type { Differs, Mismatch } from "./validation-matrix.ts";

/** `what`: "task input". */
export interface InputMismatch {
  readonly what: string;
  readonly expected: unknown;
  readonly actual: unknown;
  /** Default `input`. */
  readonly differs?: Differs | "command";
}

const ENTRY_OF: Readonly<Record<CommandType, EntryType>> = {
  Task: "TaskScheduled",
  ChildWorkflow: "ChildWorkflowInitiated",
  Timer: "TimerStarted",
  Operation: "OperationCompleted",
  Promise: "PromiseCreated",
  Settle: "SettleRequested",
  State: "StateSet",
  Message: "MessageSent",
  Node: "NodeCompleted",
};

export function compareMessage(
  key: string,
  type: EntryType,
  fields: EntryFields,
  recorded: ChildMessageEntry,
): Mismatch | undefined {
  const data: EntryFields = { ...recorded.data };
  const expected = [type, ...Object.values(fields)].join(" ");
  const actual = [recorded.type, ...Object.keys(fields).map((field) => String(data[field]))].join(" ");
  if (expected === actual) return undefined;
  return {
    message: `the journal recorded message '${actual}' to the child; the code now sends '${expected}' (at ${key})`,
    expected,
    actual,
  };
}

export function newTooEarly(
  type: CommandType,
  id: string,
  index: number,
  fields: EntryFields,
  lastIndex: number,
  entry: EntryType = ENTRY_OF[type],
): Violation {
  return {
    message: `the journal recorded no '${entry}' before index ${lastIndex}; the code now requests one at index ${index} (at ${id})`,
    expected: `command ${index}: ${id} ${JSON.stringify(fields)}`,
    actual: `the journal's last command is ${lastIndex}`,
    where: id,
    seq: undefined,
  };
}

export function otherInput(id: string, { what, expected, actual, differs = "input" }: InputMismatch): Mismatch {
  const message = `the journal recorded another ${what} than the code now passes (at ${id})`;
  return { message, expected, actual, ...(differs !== "command" && { differs }) };
}

export function otherRequest(
  id: string,
  { command, name }: NodeScope,
  expected: unknown,
  actual: unknown,
): Mismatch & Pick<Violation, "advice"> {
  const step = nodeItemOf(command)!.step;
  return {
    message: `the journal recorded another request of node '${name}' in step ${step} than its code now makes (at ${id}). A node's requests must follow from its state, its item, the answers it received, ctx.now, ctx.random and ctx.uuid`,
    expected,
    actual,
    differs: "input",
    advice: `Restore the code, or fork the run from step ${step - 1}, which runs step ${step} again.`,
  };
}
