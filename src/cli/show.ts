// reprise show: prints one run: its status, its timeline, what it waits for, and the next command if it is stuck.

import { RepriseError } from "../base/index.ts";
import { hasEnded, journalEntryOf, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import { leasesJson, readRunLeases, type RunLeases } from "./run-leases.ts";
import { getRun } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { nextCommandLines, headLines, errorLines, waitLines, openSteps } from "./run-view.ts";
import { readUnclaimable, unclaimableText, pendingJson, type PendingWork } from "./pending-work.ts";
import { withRedactedStore, type InspectOptions } from "./redacted-store.ts";
import { isoOf, runJson, findRunError, type RunErrorInfo } from "./run-format.ts";
import { stepsOf, type Step } from "./steps.ts";
import { renderTimeline } from "./timeline.ts";

export interface ShowOptions extends InspectOptions {
  readonly watch?: boolean;
  /** For graphs: a range of steps. */
  readonly steps?: string;
  /** For flows: the number of nodes. */
  readonly limit?: number;
  readonly timeline?: boolean;
}

/** Longer timelines show only their first and last lines. */
export const EDGE_LINES = 200;

export async function show(id: string, options: ShowOptions): Promise<number> {
  if (options.watch === true && options.generation !== undefined)
    throw new RepriseError("USAGE", "--watch follows the latest generation. Remove --generation.");
  return withRedactedStore(options, async (store) => {
    if (options.watch === true) return (await import("./watch-run.ts")).watchRun(store, id, options);
    const record = await getRun(store, id, options.generation);
    refuseOptions(record, options);
    if (record.kind === "graph") return (await import("./show-graph.ts")).showGraph(store, record, options);
    if (record.kind === "flow") return (await import("./show-flow.ts")).showFlow(store, record, options);
    return showWorkflow(store, record, options);
  });
}

async function showWorkflow(store: Store, record: RunRecord, options: ShowOptions): Promise<number> {
  const entries = await store.readJournal(record.run, 0, record.head);
  const steps = stepsOf(entries.map(journalEntryOf));
  const runError = findRunError(record, entries.at(-1));
  const unclaimable = await readUnclaimable(store, record, steps);
  const leases = await readRunLeases(store, record);
  if (options.json) await printJson(showJson(record, entries, steps, { runError, unclaimable, leases }));
  else {
    await printRun(record, entries, steps, { runError, leases }, store.now());
    for (const line of unclaimableLines(unclaimable)) await print(line);
  }
  return EXIT.ok;
}

/** Why no worker continues the run, after an empty line. */
export function unclaimableLines(unclaimable: readonly PendingWork[]): readonly string[] {
  return unclaimable.length === 0 ? [] : ["", ...unclaimable.map((one) => paint("yellow", unclaimableText(one)))];
}

/** Refuses options of other kinds of runs. */
function refuseOptions({ id, kind, definition }: RunRecord, { steps, limit }: ShowOptions): void {
  const kindText = `run ${id} is a run of the ${kind} ${definition}.`;
  if (steps !== undefined && kind !== "graph")
    throw new RepriseError("USAGE", `--steps applies to graphs; ${kindText}`);
  if (limit !== undefined && kind !== "flow") throw new RepriseError("USAGE", `--limit applies to flows; ${kindText}`);
}

interface RunDetails {
  readonly runError: RunErrorInfo | undefined;
  readonly unclaimable?: readonly PendingWork[];
  readonly leases?: RunLeases | undefined;
  readonly graph?: object | undefined;
  readonly flow?: object | undefined;
}

export function showJson(
  record: RunRecord,
  entries: readonly Entry[],
  steps: readonly Step[],
  { runError, unclaimable = [], leases, graph, flow }: RunDetails,
): object {
  const payload = (entry: Entry | undefined, field: string): unknown =>
    entry === undefined ? null : ((JSON.parse(entry.data) as Record<string, unknown>)[field] ?? null);
  return {
    ...runJson(record),
    priority: record.priority,
    unread: hasEnded(record.status) ? record.unread : record.arrivals - record.read,
    runtime: JSON.parse(record.runtime) as unknown,
    input: payload(entries[0], "input"),
    output: record.status === "completed" ? payload(entries.at(-1), "output") : null,
    error: runError ?? null,
    steps: steps.map(stepJson),
    waitsFor: openSteps(record, steps).map(stepJson),
    ...leasesJson(leases),
    unclaimable: unclaimable.map(pendingJson),
    graph: graph ?? null,
    flow: flow ?? null,
  };
}

function stepJson(step: Step): object {
  return {
    command: step.command,
    kind: step.kind,
    name: step.name,
    startedAt: isoOf(step.startedAt),
    endedAt: isoOf(step.endedAt),
    ending: step.ending ?? null,
    attempts: step.attempts,
    until: isoOf(step.until),
  };
}

async function printRun(
  record: RunRecord,
  entries: readonly Entry[],
  steps: readonly Step[],
  { runError, leases }: RunDetails,
  now: number,
): Promise<void> {
  for (const line of headLines(record, now)) await print(line);
  await print("");
  const lines = renderTimeline(entries.map(journalEntryOf), { width: lineWidth(), paint });
  for (const line of omitMiddle(lines)) await print(line);
  const waits = waitLines(record, steps, now, { leases });
  if (waits.length > 0)
    await print(`\n${paint("bold", waitsTitle(record, leases))}\n${waits.map((line) => `  ${line}`).join("\n")}`);
  for (const line of nextCommandLines(record, steps)) await print(line);
  if (runError === undefined) return;
  await print("");
  for (const line of errorLines(record, runError)) await print(line);
}

/** The title above `waitLines`. */
export function waitsTitle({ status }: RunRecord, leases: RunLeases | undefined): string {
  const isExecuted = leases !== undefined && (leases.turn !== undefined || leases.items.length > 0);
  return isExecuted || status === "paused" ? "now" : "waiting for";
}

export function omitMiddle(lines: readonly string[]): readonly string[] {
  const left = lines.length - 2 * EDGE_LINES;
  if (left <= 0) return lines;
  return [...lines.slice(0, EDGE_LINES), omittedNote(left, "lines"), ...lines.slice(-EDGE_LINES)];
}

export function omittedNote(left: number, what: string): string {
  return paint("dim", `             … ${left} ${what} omitted; print them with reprise journal …`);
}
