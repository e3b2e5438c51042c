// The replay property (W1): a run cut at any commit and taken up from its journal alone goes on as if nothing had
// happened. Same commands, same journal, same result, and nothing committed is asked for again.

import { encode } from "../../src/base/index.ts";
import { isTerminal, type Definition, type Entry } from "../../src/kernel/index.ts";
import { entryData, type Execution } from "../../src/workflow/index.ts";
import { LiveRun, type Arrival, type Drive } from "./live-run.ts";
import { runAgain } from "./scheduler.ts";

/** How the code ended, as text; stacks are left out. */
export function outcomeText(execution: Execution): string {
  const { outcome } = execution;
  if (outcome === undefined) return "not ended";
  if (outcome.status === "threw") return `threw ${encode(entryData.asError(outcome.error))}`;
  if (outcome.status === "continued") return `continued ${outcome.given}`;
  return `returned ${entryData.encodeInput(outcome.value) ?? "nothing"}`;
}

const isDelivered = ({ type }: Entry): boolean =>
  (isTerminal(type) && type !== "TimerCancelled") || type === "CancelRequested";

/** The commits of `run` that a journal cut at `cut` does not hold yet. */
function commitsAfter(run: LiveRun, cut: number): readonly (readonly Arrival[])[] {
  let held = run.entries.slice(0, cut).filter(isDelivered).length;
  return run.commits.filter((arrivals) => {
    held -= arrivals.length;
    return held < 0;
  });
}

const lines = (entries: readonly Entry[]): string[] =>
  entries.map(({ type, command, data }) => `${type} ${command} ${data}`);

/** Why the run taken up at `cut` is not the run it was; undefined when it is. */
export async function divergenceAt(
  definition: Definition,
  run: LiveRun,
  cut: number,
  drive?: Drive,
): Promise<string | undefined> {
  const prefix = run.entries.slice(0, cut);
  const { id } = run.execution.facts;
  const resumed = await LiveRun.resume(definition, prefix, drive === undefined ? { id } : { id, drive });
  const stoppedAt = (): string | undefined => resumed.stop && `stopped: ${resumed.stop.message}`;
  const stopped = stoppedAt();
  if (stopped !== undefined) return stopped;
  const committed = new Set(
    prefix.map(({ type, command }) => (type === "TimerCancelled" ? `${command} cancel` : command)).filter(Boolean),
  );
  const repeated = resumed.asked.find((command) => committed.has(command));
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
