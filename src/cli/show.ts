// reprise show: prints one run: its status, its timeline, what it waits for, and the next command if it is stuck.

import { RepriseError } from "../base/index.ts";
import {
  AttemptReader,
  hasEnded,
  runtimesOf,
  journalEntryOf,
  type AttemptRecord,
  type CommandForkOrigin,
  type Entry,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { attemptJson } from "./attempt-lines.ts";
import { notedInputChanges, originIn } from "../workflow/index.ts";
import { leasesJson, readRunLeases, type RunLeases } from "./run-leases.ts";
import { shellWord } from "./next-command.ts";
import { getRun } from "./open-store.ts";
import type { Timeline } from "../contract/index.ts";
import type { Budget } from "../engine/index.ts";
import { budgetJson, budgetLines, readBudget } from "./budget.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { explain, stepsOf, type Step, type WaitReason } from "../explain/index.ts";
import { explanationLines, reasonJson } from "./explanation.ts";
import { inputChangeLines, headLines, errorLines } from "./run-view.ts";
import { withRedactedStore, type InspectOptions } from "./redacted-store.ts";
import { isoOf, runJson, findRunError, type RunErrorInfo } from "./run-format.ts";
import { markEntries, renderEvents, renderTimeline, TimelineReader } from "./timeline.ts";

export interface ShowOptions extends InspectOptions {
  readonly watch?: boolean;
  /** For graphs: a range of steps. */
  readonly steps?: string;
  /** For flows: the number of nodes. */
  readonly limit?: number;
  /** For graphs and flows: every entry. With `--json`: the rows of the Gantt chart, as the API has them. */
  readonly timeline?: boolean;
}

/** Longer timelines show only their first and last lines. */
export const EDGE_LINES = 200;

export async function show(id: string, options: ShowOptions): Promise<number> {
  if (options.watch === true && options.generation !== undefined)
    throw new RepriseError("USAGE", "--watch follows the latest generation. Remove --generation.");
  return withRedactedStore(options, async (store) => {
    if (options.watch === true && store.mirrorOf !== undefined)
      throw new RepriseError(
        "USAGE",
        `--watch: run ${id} is a copy in the mirror ${store.mirrorOf}, which does not move. Remove --watch, and run \`reprise pull ${store.mirrorOf} ${shellWord(id)}\` for its present state.`,
      );
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
  const waitsFor = await explain(store, record, { entries });
  const leases = await readRunLeases(store, record);
  const attempts = await store.readAttempts(record.run);
  const forked = originIn(entries[0]);
  const budget = await readBudget(store, record);
  const timeline = await timelineJson(store, record, options);
  const details = { runError, waitsFor, leases, attempts, forked, budget, timeline };
  if (options.json) await printJson(showJson(record, entries, steps, details));
  else await printRun(record, entries, details, store.now());
  return EXIT.ok;
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
  readonly waitsFor?: readonly WaitReason[];
  readonly leases?: RunLeases | undefined;
  /** The executions that ended without an entry. */
  readonly attempts?: readonly AttemptRecord[];
  /** fork.F5 */
  readonly forked?: CommandForkOrigin | undefined;
  readonly budget?: Budget | undefined;
  readonly graph?: object | undefined;
  readonly flow?: object | undefined;
  readonly timeline?: Timeline | undefined;
}

export function showJson(
  record: RunRecord,
  entries: readonly Entry[],
  steps: readonly Step[],
  { runError, waitsFor = [], leases, attempts = [], forked, budget, graph, flow, timeline }: RunDetails,
): object {
  const payload = (entry: Entry | undefined, field: string): unknown =>
    entry === undefined ? null : ((JSON.parse(entry.data) as Record<string, unknown>)[field] ?? null);
  return {
    ...runJson(record),
    priority: record.priority,
    unread: hasEnded(record.status) ? record.unread : record.arrivals - record.read,
    runtimes: runtimesOf(record),
    input: payload(entries[0], "input"),
    output: record.status === "completed" ? payload(entries.at(-1), "output") : null,
    error: runError ?? null,
    inputChanges: notedInputChanges(entries),
    steps: steps.map(stepJson),
    attempts: attemptsJson(entries, attempts),
    waitsFor: waitsFor.map(reasonJson),
    budget: budget === undefined ? null : budgetJson(budget),
    ...leasesJson(leases),
    ...(forked && { forked: forkedJson(forked) }),
    graph: graph ?? null,
    flow: flow ?? null,
    ...(timeline && { timeline }),
  };
}

/** The timeline for `--json --timeline`. */
export async function timelineJson(
  store: Store,
  record: RunRecord,
  { json, timeline }: ShowOptions,
): Promise<Timeline | undefined> {
  if (!json || timeline !== true) return undefined;
  const { readTimeline, thrownErrorOf } = await import("../picture/index.ts");
  // The store has removed secrets.
  const redaction = { text: (text: string) => text };
  const showError = ({ error, stack }: { readonly error: unknown; readonly stack: unknown }) =>
    thrownErrorOf(error, { redaction }, stack);
  return readTimeline(store, record, { flow: undefined, showError }, { limit: Number.MAX_SAFE_INTEGER, after: 0 });
}

function forkedJson({ run, generation, at, seq, answers = {}, effects }: CommandForkOrigin): object {
  return { run, generation, at, seq, answers: Object.keys(answers), effects: effects ?? "live" };
}

/** `entries`: for graphs and flows only the first and the last, so the list has what is not in the journal. */
function attemptsJson(entries: readonly Entry[], records: readonly AttemptRecord[]): readonly object[] {
  const reader = new AttemptReader(records);
  const read = entries.flatMap((entry) => reader.read(journalEntryOf(entry)));
  return [...read, ...reader.rest()].map(attemptJson);
}

function stepJson(step: Step): object {
  return {
    command: step.command,
    kind: step.kind,
    name: step.name,
    key: step.key ?? null,
    by: step.by ?? null,
    reason: step.reason ?? null,
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
  { runError, waitsFor = [], attempts = [], budget }: RunDetails,
  now: number,
): Promise<void> {
  for (const line of headLines(record, now)) await print(line);
  for (const line of budget === undefined ? [] : budgetLines(budget, now).slice(0, 2)) await print(line);
  for (const line of inputChangeLines(notedInputChanges(entries))) await print(line);
  await print("");
  const lines = renderTimeline(entries.map(journalEntryOf), { width: lineWidth(), paint, attempts });
  for (const line of omitMiddle(lines)) await print(line);
  const reasons = explanationLines(waitsFor);
  if (reasons.length > 0) await print(`\n${reasons.join("\n")}`);
  if (runError === undefined) return;
  await print("");
  for (const line of errorLines(record, runError)) await print(line);
}

/** The takeovers of a run, for a view without its entries; empty if there were none. */
export function takeoverLines(attempts: readonly AttemptRecord[], { createdAt }: RunRecord): readonly string[] {
  const reader = new TimelineReader(createdAt, attempts);
  const marks = markEntries(reader.takeMarks(true).slice(-MAX_TAKEOVERS_SHOWN), createdAt);
  return renderEvents(marks, { width: lineWidth(), paint });
}
const MAX_TAKEOVERS_SHOWN = 10;

export function omitMiddle(lines: readonly string[]): readonly string[] {
  const left = lines.length - 2 * EDGE_LINES;
  if (left <= 0) return lines;
  return [...lines.slice(0, EDGE_LINES), omittedNote(left, "lines"), ...lines.slice(-EDGE_LINES)];
}

export function omittedNote(left: number, what: string): string {
  return paint("dim", `             … ${left} ${what} omitted; print them with reprise journal …`);
}
