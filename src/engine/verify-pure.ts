// Verify pure: executes the pure steps of a recorded run again, with the code at hand, and compares the results by their text.
//
// verify-pure.V1. Which steps are pure is what the code says: tasks by their definition, operations and nodes by a replay. Only
//   steps with a recorded result are executed, those whose result was reused too.
// verify-pure.V2. Functions are called one after the other, after the replay, with copies of the recorded inputs. Nothing is
//   written and the memo is not read.
// verify-pure.V3. A function that throws has no result to compare: it may need a service that is not at hand. That is not a
//   difference, and not a proof either.

import { decode, encode, systemTimers } from "../base/index.ts";
import { isOfType, silentLogger, type DecodedEntry, type TaskBody } from "../kernel/index.ts";
import { effectiveFlowEntries } from "../flow/index.ts";
import { executionHostOf, type Registry } from "../process/index.ts";
import {
  callInStep,
  decodeEffectiveEntries,
  Guard,
  idempotencyKeyOf,
  replayJournal,
  type OperationContext,
  type PureCall,
  type Replay,
} from "../workflow/index.ts";
import type { RecordedRun } from "./replay-recorded.ts";

/** What came of one pure step. `expected` is what the function returns now, `actual` what the journal recorded, as texts. */
export type PureStepVerdict = {
  /** The command, `Task(3)`, or the node. */
  readonly where: string;
  readonly name: string;
} & (
  | { readonly status: "same" }
  | { readonly status: "differs"; readonly expected: string | undefined; readonly actual: string | undefined }
  | { readonly status: "not-executable"; readonly reason: string }
);

export interface PureVerification {
  /** The replay that found the steps. A mismatch: some steps may be missing below. */
  readonly replay: Replay;
  readonly steps: readonly PureStepVerdict[];
}

export async function verifyPure(registry: Registry, run: RecordedRun): Promise<PureVerification> {
  const { id, generation, definition, version, shared = [], chain } = run;
  const entries = [...shared, ...run.entries];
  const body = registry.getWorkflow(definition, version);
  const effective = body.kind === "flow" ? effectiveFlowEntries(entries) : decodeEffectiveEntries(entries);
  const recorded = recordedResults(effective);
  const calls: PureCall[] = [];
  const host = executionHostOf({ registry, guard: new Guard("off", () => {}), log: () => {} });
  const replay = await replayJournal(body, {
    identity: { id, generation },
    entries,
    chain,
    host: { ...host, onPureCall: (call) => void calls.push(call) },
    timers: systemTimers,
  });
  calls.push(...taskCalls(registry, effective));
  const steps: PureStepVerdict[] = [];
  const seen = new Set<string>();
  for (const call of calls) {
    const result = recorded.get(call.command);
    if (result === undefined || seen.has(call.command)) continue;
    seen.add(call.command);
    steps.push(await callAgain(call, result.text, contextOf(id, generation, call.command)));
  }
  for (const [where, { isReused }] of recorded)
    if (isReused && !seen.has(where))
      steps.push({ where, name: where, status: "not-executable", reason: "the code does not declare it pure" });
  return { replay, steps };
}

interface RecordedResult {
  readonly text: string | undefined;
  readonly isReused: boolean;
}

/** The results that count, by command or node. */
function recordedResults(entries: readonly DecodedEntry[]): ReadonlyMap<string, RecordedResult> {
  const results = new Map<string, RecordedResult>();
  for (const entry of entries) {
    if (!isOfType(entry, "TaskCompleted", "OperationCompleted", "NodeCompleted") || results.has(entry.command))
      continue;
    const { result, reused } = entry.data as { readonly result?: unknown; readonly reused?: string };
    results.set(entry.command, { text: textOf(result), isReused: reused !== undefined });
  }
  return results;
}

/** Tasks of workflows and graphs, which a replay does not call. */
function taskCalls(registry: Registry, entries: readonly DecodedEntry[]): readonly PureCall[] {
  return entries
    .filter((entry): entry is DecodedEntry<"TaskScheduled"> => isOfType(entry, "TaskScheduled"))
    .flatMap(({ command, data: { taskType: name, input } }) => {
      const task: TaskBody | undefined = registry.findTask(name);
      if (task?.pure === undefined) return [];
      const call = (op: OperationContext): unknown => task.run(op, copyOf(input));
      return [{ command, name, pure: task.pure, call }];
    });
}

async function callAgain(
  { command: where, name, call }: PureCall,
  actual: string | undefined,
  op: OperationContext,
): Promise<PureStepVerdict> {
  let expected: string | undefined;
  try {
    expected = textOf(await callInStep(name, () => call(op)));
  } catch (error) {
    // verify-pure.V3
    const reason = `it threw ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`;
    return { where, name, status: "not-executable", reason };
  }
  return expected === actual ? { where, name, status: "same" } : { where, name, status: "differs", expected, actual };
}

function contextOf(runId: string, generation: number, command: string): OperationContext {
  return {
    runId,
    attempt: 1,
    execution: 1,
    idempotencyKey: idempotencyKeyOf(runId, generation, command),
    abortSignal: new AbortController().signal,
    log: silentLogger,
    heartbeat: () => {},
    emit: () => {},
  };
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : encode(value);
}

function copyOf(value: unknown): unknown {
  return value === undefined ? undefined : decode(encode(value));
}
