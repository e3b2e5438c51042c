// Replay property (rules.W1): a run that is cut at any commit and resumed from its journal continues as if it had not been
// cut: same commands, same journal, same result, and no committed command is requested again.

import { encode } from "../../src/base/index.ts";
import { isCancel, isTerminal, type Definition, type Entry, type EntryType } from "../../src/kernel/index.ts";
import { entryData, type Execution } from "../../src/workflow/index.ts";
import { LiveRun, type Commit, type Drive } from "./live-run.ts";
import { runAgain } from "./arrival-scheduler.ts";

/** How the code ended, as text; stacks are left out. */
export function outcomeText(execution: Execution): string {
  const { outcome } = execution;
  if (outcome === undefined) return "not ended";
  if (outcome.status === "threw") return `threw ${encode(entryData.asError(outcome.error))}`;
  if (outcome.status === "continued") return `continued ${outcome.given}`;
  return `returned ${entryData.encodeInput(outcome.value) ?? "nothing"}`;
}

/** Terminal entries that the code itself requests. */
const REQUESTED_ENDS: ReadonlySet<EntryType> = new Set<EntryType>([
  "TimerCancelled",
  "TaskCancelled",
  "UpdateCompleted",
  "UpdateFailed",
]);

const isDelivered = ({ type }: Entry): boolean =>
  (isTerminal(type) && !REQUESTED_ENDS.has(type)) || isCancel(type) || type === "UpdateRequested";

/** The commits of `run` that are not in a journal cut at `cut`. */
function commitsAfter(run: LiveRun, cut: number): readonly Commit[] {
  let held = run.entries.slice(0, cut).filter(isDelivered).length;
  return run.commits.filter(({ arrivals, late }) => {
    held -= arrivals.length + late.length;
    return held < 0;
  });
}

/** The label in `LiveRun.requested`. */
function labelOf({ type, command, data }: Entry): string[] {
  if (command === "" || type === "UpdateRequested") return [];
  if (type === "TimerCancelled" || type === "TaskCancelled" || type === "TaskCancelRequested")
    return [`${command} cancel`];
  if (type === "UpdateCompleted" || type === "UpdateFailed") return [`${command} answer`];
  return [type === "ChildSignalled" || type === "ChildCancelRequested" ? `${command} ${data}` : command];
}

/** Differs between callers. */
const STACK = /,"stack":"([^"\\]|\\.)*"/;

const lines = (entries: readonly Entry[]): string[] =>
  entries.map(({ type, command, data }) => `${type} ${command} ${data.replace(STACK, "")}`);

/** How a run that is resumed at `cut` differs from the original; undefined if it does not. */
export async function findDivergence(
  definition: Definition,
  run: LiveRun,
  cut: number,
  drive?: Drive,
): Promise<string | undefined> {
  const prefix = run.entries.slice(0, cut);
  const { id } = run.execution.identity;
  const resumed = await LiveRun.resume(definition, prefix, drive === undefined ? { id } : { id, drive });
  const stoppedAt = (): string | undefined => resumed.stop && `stopped: ${resumed.stop.message}`;
  const stopped = stoppedAt();
  if (stopped !== undefined) return stopped;
  const committed = new Set(prefix.flatMap(labelOf));
  const repeated = resumed.requested.find((command) => committed.has(command));
  if (repeated !== undefined) return `requested ${repeated} again`;
  const wanted = await runAgain(resumed, commitsAfter(run, cut));
  const stoppedLater = stoppedAt();
  if (stoppedLater !== undefined) return stoppedLater;
  // The last entry has a stack; the outcome is compared below.
  const [was, is] = [lines(run.entries.slice(0, -1)), lines(resumed.entries.slice(0, -1))];
  const first = was.findIndex((line, index) => line !== is[index]);
  if (first !== -1) return `entry ${first + 1}: ${was[first]} became ${is[first] ?? "nothing"}`;
  if (is.length !== was.length) return `entry ${was.length + 1}: ${is[was.length]} is new`;
  if (!wanted) return "the run no longer accepts an arrival";
  const [before, after] = [outcomeText(run.execution), outcomeText(resumed.execution)];
  return before === after ? undefined : `${before} became ${after}`;
}
