// Validation matrix: the fields of a recorded entry that a command must agree with (seed 004).

import type { DecodedEntry, EntryFields, EntryType } from "../kernel/index.ts";

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
export type CommandName =
  | SeedCommand
  | "CancelTask"
  | "FinishCancelledTask"
  | "SendMessage"
  | "SettlePromise"
  | "RunNode";

interface Field {
  readonly field: string;
  /** What a message calls the field: "the journal recorded task 'a'". */
  readonly recorded: string;
  /** What a message says the code does: "the code now calls task 'b'". */
  readonly requested: string;
}

interface Row {
  readonly entry: EntryType;
  /** Other entry types that record the same command. */
  readonly also?: readonly EntryType[];
  readonly fields: readonly Field[];
}

function field(name: string, recorded: string, verb: string, noun = recorded): Field {
  return { field: name, recorded, requested: `${verb} ${noun}` };
}

/** The nine rows of the seed. */
export const MATRIX: Readonly<Record<SeedCommand, Row>> = {
  ScheduleTask: { entry: "TaskScheduled", fields: [field("taskType", "task", "calls")] },
  ScheduleChildWorkflow: {
    entry: "ChildWorkflowInitiated",
    fields: [
      field("childExecutionName", "child workflow", "starts"),
      field("childWorkflowKind", "a child of kind", "starts"),
    ],
  },
  RecordOperation: {
    entry: "OperationCompleted",
    also: ["OperationFailed", "OperationRetried"],
    fields: [field("operationName", "step", "runs")],
  },
  SetState: { entry: "StateSet", fields: [field("key", "state key", "sets")] },
  ClearState: { entry: "StateCleared", fields: [field("key", "state key", "clears")] },
  StartTimer: { entry: "TimerStarted", fields: [field("timerId", "timer", "starts")] },
  CancelTimer: { entry: "TimerCancelled", fields: [field("timerId", "the cancel of timer", "cancels", "timer")] },
  CreatePromise: { entry: "PromiseCreated", fields: [field("promiseId", "promise", "waits for")] },
  ResolvePromise: {
    entry: "PromiseResolved",
    also: ["PromiseRejected"],
    fields: [field("promiseId", "a value for promise", "waits for", "promise")],
  },
};

const ROWS: Readonly<Record<CommandName, Row>> = {
  ...MATRIX,
  // The seed lets a child have any id. Ours is part of the call: it names the run that answers and that messages go to.
  ScheduleChildWorkflow: {
    ...MATRIX.ScheduleChildWorkflow,
    fields: [...MATRIX.ScheduleChildWorkflow.fields, field("childExecutionId", "the child with id", "starts")],
  },
  RunNode: {
    entry: "NodeCompleted",
    also: ["NodeFailed", "NodeRetried"],
    fields: [field("operationName", "node", "runs")],
  },
  CancelTask: { entry: "TaskCancelled", fields: [] },
  FinishCancelledTask: { entry: "TaskCancelRequested", fields: [] },
  SettlePromise: {
    entry: "SettleRequested",
    fields: [
      field("promiseId", "a value for promise", "settles", "promise"),
      field("runId", "run", "settles it in", "run"),
    ],
  },
  SendMessage: { entry: "MessageSent", fields: [field("destination", "a message to", "sends")] },
};

/** As in seed 004, `expected` comes from the code and `actual` from the journal. */
export interface Mismatch {
  readonly message: string;
  readonly expected: unknown;
  readonly actual: unknown;
  /** Absent: another command, order or name. */
  readonly differs?: Differs;
}

/** What differs where code and journal have the same command: what the code passes, or a value that it made. */
export type Differs = "input" | "value";

export function compareFields(
  name: CommandName,
  command: string,
  fields: EntryFields,
  recorded: Pick<DecodedEntry, "type" | "data">,
): Mismatch | undefined {
  const row = ROWS[name];
  if (recorded.type !== row.entry && !row.also?.includes(recorded.type))
    return {
      message: `the journal recorded '${recorded.type}'; the code now requests '${row.entry}' (at ${command})`,
      expected: row.entry,
      actual: recorded.type,
    };
  const data = recorded.data as EntryFields;
  for (const { field: key, recorded: noun, requested } of row.fields) {
    const expected = fields[key];
    const actual = data[key];
    if (expected !== actual)
      return {
        message: `the journal recorded ${noun} ${quoted(actual)}; the code now ${requested} ${quoted(expected)} (at ${command})`,
        expected,
        actual,
      };
  }
  return undefined;
}

function quoted(value: unknown): string {
  return value === undefined ? "(none)" : `'${value as string}'`;
}
