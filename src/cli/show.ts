// reprise show: one run — where it stands, what happened, what it waits for, what to do when it is stuck.

import { RepriseError } from "../base/index.ts";
import { hasEnded, journalEntryOf, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import { holdingJson, holdingOf, type Holding } from "./holding.ts";
import { getRun } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { answerLines, headLines, troubleLines, waitLines, waitsFor } from "./run-view.ts";
import { unservedOf, unservedText, waitingJson, type Waiting } from "./serving.ts";
import { looking, type LookOptions } from "./shown-store.ts";
import { isoOf, runJson, troubleOf, type Trouble } from "./shown-run.ts";
import { stepsOf, type Step } from "./steps.ts";
import { renderTimeline } from "./timeline.ts";

export interface ShowOptions extends LookOptions {
  readonly watch?: boolean;
  /** Of a graph. */
  readonly steps?: string;
  /** Of a flow: how many nodes. */
  readonly limit?: number;
  readonly timeline?: boolean;
}

/** Longer journals are shown by their beginning and their end. */
export const SHOWN_AT_EACH_END = 200;

export async function show(id: string, options: ShowOptions): Promise<number> {
  if (options.watch === true && options.generation !== undefined)
    throw new RepriseError("USAGE", "--watch follows the newest generation; leave out --generation.");
  return looking(options, async (store) => {
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
  const trouble = troubleOf(record, entries.at(-1));
  const unserved = await unservedOf(store, record, steps);
  const holding = await holdingOf(store, record);
  if (options.json) await printJson(showJson(record, entries, steps, { trouble, unserved, holding }));
  else {
    await printRun(record, entries, steps, { trouble, holding }, store.now());
    for (const line of unservedLines(unserved)) await print(line);
  }
  return EXIT.ok;
}

/** Why nothing happens, with a gap before. */
export function unservedLines(unserved: readonly Waiting[]): readonly string[] {
  return unserved.length === 0 ? [] : ["", ...unserved.map((one) => paint("yellow", unservedText(one)))];
}

/** What only another kind of run has. */
function refuseOptions({ id, kind, definition }: RunRecord, { steps, limit }: ShowOptions): void {
  const so = `run ${id} is of the ${kind} ${definition}.`;
  if (steps !== undefined && kind !== "graph") throw new RepriseError("USAGE", `--steps are those of a graph; ${so}`);
  if (limit !== undefined && kind !== "flow")
    throw new RepriseError("USAGE", `--limit counts the nodes of a flow; ${so}`);
}

interface ShownBesides {
  readonly trouble: Trouble | undefined;
  readonly unserved?: readonly Waiting[];
  readonly holding?: Holding | undefined;
  readonly graph?: object | undefined;
  readonly flow?: object | undefined;
}

export function showJson(
  record: RunRecord,
  entries: readonly Entry[],
  steps: readonly Step[],
  { trouble, unserved = [], holding, graph, flow }: ShownBesides,
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
    error: trouble ?? null,
    steps: steps.map(stepJson),
    waitsFor: waitsFor(record, steps).map(stepJson),
    ...holdingJson(holding),
    unserved: unserved.map(waitingJson),
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
  { trouble, holding }: ShownBesides,
  now: number,
): Promise<void> {
  for (const line of headLines(record, now)) await print(line);
  await print("");
  const lines = renderTimeline(entries.map(journalEntryOf), { width: lineWidth(), paint });
  for (const line of middleLeftOut(lines)) await print(line);
  const waits = waitLines(record, steps, now, { holding });
  if (waits.length > 0)
    await print(`\n${paint("bold", waitsTitle(record, holding))}\n${waits.map((line) => `  ${line}`).join("\n")}`);
  for (const line of answerLines(record, steps)) await print(line);
  if (trouble === undefined) return;
  await print("");
  for (const line of troubleLines(record, trouble)) await print(line);
}

/** Over what `waitLines` says: who is at it comes first, where somebody is. */
export function waitsTitle({ status }: RunRecord, holding: Holding | undefined): string {
  const isHeld = holding !== undefined && (holding.turn !== undefined || holding.items.length > 0);
  return isHeld && status !== "paused" ? "now" : "waits for";
}

export function middleLeftOut(lines: readonly string[]): readonly string[] {
  const left = lines.length - 2 * SHOWN_AT_EACH_END;
  if (left <= 0) return lines;
  return [...lines.slice(0, SHOWN_AT_EACH_END), leftOutNote(left, "lines"), ...lines.slice(-SHOWN_AT_EACH_END)];
}

export function leftOutNote(left: number, what: string): string {
  return paint("dim", `             … ${left} ${what} left out; \`reprise journal\` has them all …`);
}
