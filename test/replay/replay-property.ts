// The replay property (W1): a run cut at any commit and taken up from its journal alone goes on as if nothing had
// happened. Same commands, same journal, same result, and nothing committed is asked for again.

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

/** Terminal, and yet what the code itself asked for. */
const ITS_OWN: ReadonlySet<EntryType> = new Set<EntryType>(["TimerCancelled", "UpdateCompleted", "UpdateFailed"]);

const isDelivered = ({ type }: Entry): boolean =>
  (isTerminal(type) && !ITS_OWN.has(type)) || isCancel(type) || type === "UpdateRequested";

/** The commits of `run` that a journal cut at `cut` does not hold yet. */
function commitsAfter(run: LiveRun, cut: number): readonly Commit[] {
  let held = run.entries.slice(0, cut).filter(isDelivered).length;
  return run.commits.filter(({ arrivals, late }) => {
    held -= arrivals.length + late.length;
    return held < 0;
  });
}

/** As `LiveRun.asked` has it. */
function labelOf({ type, command, data }: Entry): string[] {
  if (command === "" || type === "UpdateRequested") return [];
  if (type === "TimerCancelled") return [`${command} cancel`];
  if (type === "UpdateCompleted" || type === "UpdateFailed") return [`${command} answer`];
  return [type === "ChildSignalled" || type === "ChildCancelRequested" ? `${command} ${data}` : command];
}

/** Differs from one caller to the next. */
const STACK = /,"stack":"([^"\\]|\\.)*"/;

const lines = (entries: readonly Entry[]): string[] =>
  entries.map(({ type, command, data }) => `${type} ${command} ${data.replace(STACK, "")}`);

/** Why the run taken up at `cut` is not the run it was; undefined when it is. */
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
  if (repeated !== undefined) return `asked again for ${repeated}`;
  const wanted = await runAgain(resumed, commitsAfter(run, cut));
  const stoppedLater = stoppedAt();
  if (stoppedLater !== undefined) return stoppedLater;
  // The end holds a stack; its outcome is compared below.
  const [was, is] = [lines(run.entries.slice(0, -1)), lines(resumed.entries.slice(0, -1))];
  const first = was.findIndex((line, index) => line !== is[index]);
  if (first !== -1) return `entry ${first + 1}: ${was[first]} became ${is[first] ?? "nothing"}`;
  if (is.length !== was.length) return `entry ${was.length + 1}: ${is[was.length]} is new`;
  if (!wanted) return "something that was wanted is no longer";
  const [before, after] = [outcomeText(run.execution), outcomeText(resumed.execution)];
  return before === after ? undefined : `${before} became ${after}`;
}
