// The validation matrix: which fields of a recorded entry a command must agree with (seed 004).

import type { EntryType } from "../kernel/index.ts";

type SeedCommand =
  | "ScheduleTask"
  | "ScheduleChildWorkflow"
  | "RecordOperation"
  | "SetState"
  | "ClearState"
  | "StartTimer"
  | "CancelTimer"
  | "CreatePromise"
  | "ResolvePromise";
export type CommandName = SeedCommand | "SendMessage" | "RunNode";

interface Row {
  readonly entry: EntryType;
  /** Entries that record the same command another way. */
  readonly also?: readonly EntryType[];
  /** Field, and how a message calls it. */
  readonly fields: readonly (readonly [field: string, label: string])[];
}

const NODE: Row = {
  entry: "NodeCompleted",
  also: ["NodeFailed", "NodeRetried"],
  fields: [["operationName", "Node name"]],
};

/** The nine rows of the seed. */
export const MATRIX: Readonly<Record<SeedCommand, Row>> = {
  ScheduleTask: { entry: "TaskScheduled", fields: [["taskType", "Task type"]] },
  ScheduleChildWorkflow: {
    entry: "ChildWorkflowInitiated",
    fields: [
      ["childExecutionName", "Child workflow name"],
      ["childWorkflowKind", "Child workflow kind"],
    ],
  },
  RecordOperation: {
    entry: "OperationCompleted",
    also: ["OperationFailed", "OperationRetried"],
    fields: [["operationName", "Operation name"]],
  },
  SetState: { entry: "StateSet", fields: [["key", "State key"]] },
  ClearState: { entry: "StateCleared", fields: [["key", "State key"]] },
  StartTimer: { entry: "TimerStarted", fields: [["timerId", "Timer id"]] },
  CancelTimer: { entry: "TimerCancelled", fields: [["timerId", "Timer id"]] },
  CreatePromise: { entry: "PromiseCreated", fields: [["promiseId", "Promise id"]] },
  ResolvePromise: { entry: "PromiseResolved", also: ["PromiseRejected"], fields: [["promiseId", "Promise id"]] },
};

const ROWS: Readonly<Record<CommandName, Row>> = {
  ...MATRIX,
  RunNode: NODE,
  SendMessage: { entry: "MessageSent", fields: [["destination", "Destination"]] },
};

export interface Mismatch {
  readonly message: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** `expected` is what the code asks for, `got` what the journal has: the words of seed 004. */
export function compareFields(
  name: CommandName,
  command: string,
  fields: Readonly<Record<string, unknown>>,
  recorded: { readonly type: EntryType; readonly data: Readonly<Record<string, unknown>> },
): Mismatch | undefined {
  const row = ROWS[name];
  if (recorded.type !== row.entry && !row.also?.includes(recorded.type))
    return {
      message: `Entry type mismatch at ${command}: expected '${row.entry}', got '${recorded.type}'`,
      expected: row.entry,
      actual: recorded.type,
    };
  for (const [field, label] of row.fields) {
    const expected = fields[field];
    const actual = recorded.data[field];
    if (expected !== actual)
      return {
        message: `${label} mismatch at ${command}: expected '${String(expected)}', got '${String(actual)}'`,
        expected,
        actual,
      };
  }
  return undefined;
}
