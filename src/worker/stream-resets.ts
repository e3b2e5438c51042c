// Stream resets: what the chunks of a step say about its execution (stream.Q3), and when the earlier ones are void (stream.Q4).

import { isInNode, streamStepOf, type EmittedChunk, type RunRecord, type StepReset } from "../kernel/index.ts";
import { nodePrefix, type Execution, type OperationRequest } from "../workflow/index.ts";
import type { JournalWriter } from "./journal-writer.ts";

export interface StepExecution {
  /** The command. */
  readonly step: string;
  /** attempts.X1 */
  readonly execution: number;
}

type Source = Required<Pick<EmittedChunk, "step" | "execution">>;

export function chunkSource({ generation }: RunRecord, { step, execution }: StepExecution): Source {
  return { step: streamStepOf(step, generation), execution };
}

/** Adds the reset before a repeated execution. True: it is committed now, and not together with what follows. */
export function resetStreams(
  journal: JournalWriter,
  execution: Execution,
  request: OperationRequest,
  attempt: { readonly execution: number; readonly storedAttempt: number },
): boolean {
  // Most executions are the first one.
  if (attempt.execution === 1 && execution.epochs.last === 0 && request.isReplayed !== true) return false;
  const reset = resetBefore(journal.record, execution, request, attempt);
  if (reset === undefined) return false;
  journal.emit(reset);
  return attempt.execution > 1;
}

/** Undefined: it is the first execution, or its definition has no streams. */
function resetBefore(
  { generation }: RunRecord,
  execution: Execution,
  { command, isNode, isReplayed }: OperationRequest,
  attempt: { readonly execution: number; readonly storedAttempt: number },
): StepReset | undefined {
  // After a retry of the run, a step that failed has the name it had before.
  const epoch =
    isNode === true ? execution.epochs.ofStep(stepOf(command)) : isInNode(command) ? 0 : execution.epochs.last;
  // A node that waits may leave memory without losing a turn, and runs again when its run is read from the store (load-run.ts).
  const mayHaveRun = isReplayed === true && execution.emitted !== undefined;
  if (attempt.execution === 1 && epoch === 0 && !mayHaveRun) return undefined;
  if (!Object.values(execution.body.ports).some(({ port }) => port === "stream")) return undefined;
  return {
    reset: true,
    step: streamStepOf(command, generation),
    execution: attempt.execution,
    ...(isNode === true && { attempt: nodePrefix(command, epoch, attempt.storedAttempt) }),
  };
}

/** The 3 of `Node(3.1)`. */
function stepOf(node: string): number {
  return Number.parseInt(node.slice(node.indexOf("(") + 1), 10);
}
