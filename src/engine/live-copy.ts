// Live copy: a run continues from a place of its journal, on a copy in memory (resume-replay.R1). The journal may come from a store,
// a mirror or a bundle.
//
// live-copy.L1. The copy has the journal before the place as it is, with the id and the keys of the run. What the run waited for
//   there is put into the queue of the copy: a task is executed, a timer keeps its due time.
// live-copy.L2. Without a place, a live run continues at the end of its journal, and a failed one before the failure that ended it.
// live-copy.L3. What cannot be continued in this way is refused before anything is executed.

import { RepriseError } from "../base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  decodeData,
  END_ENTRIES,
  nodeItemOf,
  type AnyTask,
  type Arrival,
  type Definition,
  type DefinitionKind,
  type Entry,
  type EntryType,
  type NewItem,
  type RunRecord,
} from "../kernel/index.ts";
import { entryData, findForkPlace, openWorkIn, planRetry } from "../workflow/index.ts";
import { checkClientOptions } from "./engine-options.ts";
import { graphMessages, resumeLive, type Resumed } from "./resume-replay.ts";
import type { RecordedRun } from "./replay-recorded.ts";

/** The run to copy. */
export type LiveSource = RecordedRun & { readonly kind: DefinitionKind };

/** What of its journal the copy has. */
export interface LiveCopy {
  readonly recorded: readonly Entry[];
  /** After the last of them. */
  readonly chain: string;
  readonly items: readonly NewItem[];
  readonly arrivals: readonly Arrival[];
}

export interface LiveOptions {
  /** Called when the code of the copy has caught up: what it requests from now on is executed. */
  readonly onLive: (run: RunRecord) => void;
}

/** A debugger can pause for hours, and the store has no other worker. */
const LEASE_MS = 7 * 86_400_000;
/** A timer that is due within this time is waited for. */
const TIMER_WAIT_MS = 60_000;

/** live-copy.L3. `at`: a command, or the number of an entry. */
export function planLiveCopy(run: LiveSource, at: string | undefined): LiveCopy {
  const { id, kind, generation, shared = [], entries } = run;
  if (kind === "flow")
    throw refused(
      run,
      `Run ${id} is a flow: its nodes end in any order, so there is no place in its journal to continue from. Fork it in its own store`,
    );
  if (generation > 0)
    throw refused(run, `Generation ${generation} of run ${id} continues an earlier one, which a copy does not have`);
  if (shared.length > 0)
    throw refused(run, `Run ${id} is a fork, and shares entries with its origin. Continue its origin instead`);
  const last = entries.at(-1);
  if (last === undefined) throw refused(run, `Run ${id} has not been started yet`);
  if (at === undefined && END_ENTRIES.includes(last.type) && last.type !== "RunFailed")
    throw refused(run, `Run ${id} has ended. Say with --at from where it continues`);
  return kind === "graph" ? planGraph(run, at) : planWorkflow(run, at);
}

/** The newest step before the place. */
function planGraph(run: LiveSource, at: string | undefined): LiveCopy {
  const { entries } = run;
  const steps = entries.filter(({ type }) => type === "StepCommitted");
  const step = at === undefined ? undefined : nodeItemOf(at)?.step;
  const found = steps.findLast(({ seq, data }) => {
    if (at === undefined) return true;
    if (step !== undefined) return decodeData("StepCommitted", data).step < step;
    return isNumber(at) && seq < Number(at);
  });
  if (found === undefined)
    throw refused(run, `Run ${run.id} has no committed step${at === undefined ? "" : ` before ${at}`}`);
  const recorded = entries.filter(({ seq }) => seq <= found.seq);
  return { ...pastOf(recorded), items: [], arrivals: graphMessages(entries.filter(({ seq }) => seq > found.seq)) };
}

function planWorkflow(run: LiveSource, at: string | undefined): LiveCopy {
  const { id, entries } = run;
  const upTo = at === undefined ? defaultPlace(entries) : placeOf(run, at);
  const recorded = entries.filter(({ seq }) => seq <= upTo);
  const { items, children } = openWorkIn(recorded);
  if (children.length > 0)
    throw refused(
      run,
      `${at === undefined ? "At its end" : `At ${at}`}, run ${id} waits for its child ${children[0]}, which a copy does not have. Choose a place before the child starts or after it has answered`,
    );
  // live-copy.L2. The message that failed the run is not sent again.
  const from = at === undefined ? upTo + 1 : upTo;
  return { ...pastOf(recorded), items, arrivals: workflowMessages(entries.filter(({ seq }) => seq > from)) };
}

function pastOf(recorded: readonly Entry[]): Pick<LiveCopy, "recorded" | "chain"> {
  const chain = recorded.reduce(
    (before, { type, command, data }) => chainAfter(before, type, command, data),
    CHAIN_START,
  );
  return { recorded, chain };
}

/** live-copy.L2. The last entry before it. */
function defaultPlace(entries: readonly Entry[]): number {
  const last = entries.at(-1)!;
  if (last.type !== "RunFailed") return last.seq;
  const plan = planRetry(entries);
  return plan.status === "ready" ? plan.from - 1 : last.seq - 1;
}

function placeOf(run: LiveSource, at: string): number {
  if (isNumber(at)) return Math.max(1, Number(at) - 1);
  const place = findForkPlace(run.entries, at);
  if (place.status === "found") return place.seq;
  throw refused(run, `Run ${run.id} did not wait for an answer to ${at}`);
}

function isNumber(at: string): boolean {
  return /^\d+$/.test(at);
}

const MESSAGES: ReadonlySet<EntryType> = new Set<EntryType>(["PromiseResolved", "PromiseRejected", "SignalReceived"]);

function workflowMessages(after: readonly Entry[]): readonly Arrival[] {
  return after.flatMap(({ type, data }) =>
    MESSAGES.has(type) ? [entryData.arrivalOf(type, decodeData(type, data))] : [],
  );
}

function refused({ id }: LiveSource, why: string): RepriseError {
  return new RepriseError("USAGE", `--live: ${why}.`, { details: { run: id } });
}

/** Executes the copy until it ends, or waits for something that only time or a caller can bring. */
export async function runLiveCopy(
  definitions: readonly (Definition | AnyTask)[],
  { id, definition, kind, version }: LiveSource,
  copy: LiveCopy,
  { onLive }: LiveOptions,
): Promise<Resumed> {
  const { parts } = checkClientOptions({ store: "sqlite::memory:", definitions }, "debug");
  const { openScratch } = await import("./scratch-engine.ts");
  let isLive = false;
  const onLoaded = (run: RunRecord): void => {
    if (run.id !== id || isLive) return;
    isLive = true;
    onLive(run);
  };
  const scratch = await openScratch({ ...parts, leaseMs: LEASE_MS, onLoaded });
  const run = { id, definition, kind, version: version ?? parts.registry.getWorkflow(definition).version };
  return resumeLive(scratch, { ...run, priority: 0, tags: [] }, { ...copy, timerWaitMs: TIMER_WAIT_MS });
}
