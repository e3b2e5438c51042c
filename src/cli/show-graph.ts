// Show graph: `reprise show` for a graph: a table of steps, the current nodes and the end of the run. Reads only the steps
// that it prints.

import { RepriseError } from "../base/index.ts";
import {
  journalEntryOf,
  type AttemptRecord,
  type Entry,
  type EntryType,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { eachEntry, lastStepOf, readGraphRun, type GraphRun, type StepRange } from "../explain/index.ts";
import { graphJson, currentStepLines, stepLines } from "./graph-view.ts";
import { EXIT } from "./exit-codes.ts";
import { readRunLeases } from "./run-leases.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { explain, stepsOf } from "../explain/index.ts";
import { explanationLines } from "./explanation.ts";
import { headLines, errorLines } from "./run-view.ts";
import { omitMiddle, showJson, takeoverLines, timelineJson, type ShowOptions } from "./show.ts";
import { findRunError } from "./run-format.ts";
import { markEntries, renderEvents, timelineEntries, TimelineReader, type TimelineEntry } from "./timeline.ts";

const DEFAULT_STEPS = 20;

export async function showGraph(store: Store, record: RunRecord, options: ShowOptions): Promise<number> {
  const given = options.steps === undefined ? undefined : stepRangeOf(options.steps);
  const range = given ?? (await lastSteps(store, record));
  const graph = await readGraphRun(store, record, range);
  const [first] = await store.readJournal(record.run, 0, 1);
  const [final] = await store.readJournal(record.run, record.head - 1, 1);
  const runError = findRunError(record, final);
  const steps = stepsOf(graph.since);
  const waitsFor = await explain(store, record);
  const leases = await readRunLeases(store, record);
  const attempts = await store.readAttempts(record.run);
  if (options.json) {
    const timeline = await timelineJson(store, record, options);
    const ends = [first, final].filter((entry): entry is Entry => entry !== undefined);
    await printJson(
      showJson(record, ends, steps, { runError, waitsFor, leases, attempts, timeline, graph: graphJson(graph) }),
    );
    return EXIT.ok;
  }
  const now = store.now();
  const lines = [...headLines(record, now), ""];
  if (options.timeline === true) lines.push(...omitMiddle(await timelineLines(store, record, graph, attempts)));
  else
    lines.push(
      ...stepLines(graph, range),
      ...withGap(takeoverLines(attempts, record)),
      ...withGap(endLines(record, graph)),
    );
  lines.push(...withGap(currentStepLines(record, graph)), ...withGap(explanationLines(waitsFor)));
  if (runError !== undefined) lines.push("", ...errorLines(record, runError));
  for (const line of lines) await print(line);
  return EXIT.ok;
}

function withGap(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ["", ...lines];
}

async function lastSteps(store: Store, record: RunRecord): Promise<StepRange> {
  const last = await lastStepOf(store, record);
  return { from: Math.max(0, last - DEFAULT_STEPS + 1), to: last };
}

export async function readLastSteps(store: Store, record: RunRecord): Promise<GraphRun> {
  return readGraphRun(store, record, await lastSteps(store, record));
}

const RUN_EVENTS: ReadonlySet<EntryType> = new Set<EntryType>([
  "RunCompleted",
  "RunFailed",
  "RunRetried",
  "RunCancelled",
  "RunContinued",
  "CancelRequested",
  "DeadlineExceeded",
]);

/** How the run ended, and cancel and retry requests since the last step. */
function endLines({ createdAt }: RunRecord, { since }: GraphRun): string[] {
  const reader = new TimelineReader();
  const lines = since
    .filter(({ type }) => RUN_EVENTS.has(type))
    .map((entry) => ({ at: entry.at.getTime() - createdAt, line: reader.read(entry) }));
  return renderEvents(lines, { width: lineWidth(), paint });
}

/** Every entry of the shown steps; after the last step, also the entries since. */
async function timelineLines(
  store: Store,
  record: RunRecord,
  { steps, last }: GraphRun,
  attempts: readonly AttemptRecord[],
): Promise<string[]> {
  const [first] = steps;
  const final = steps.at(-1);
  if (first === undefined || final === undefined) return [];
  const before = first.step === 0 ? undefined : await store.findCheckpoint(record.run, first.step - 1, false);
  const end = final.step === last ? record.head : final.seq;
  const reader = new TimelineReader(record.createdAt, attempts);
  const lines: TimelineEntry[] = [];
  await eachEntry(store, record, before?.seq ?? 0, end, (entry) => {
    lines.push(...timelineEntries(reader, journalEntryOf(entry), record.createdAt));
  });
  if (final.step === last) lines.push(...markEntries(reader.takeMarks(true), record.createdAt));
  return renderEvents(lines, { width: lineWidth(), paint });
}

/** `3`, `10..20`, `..5`, `90..` */
export function stepRangeOf(text: string): StepRange {
  const [, first, dots, last] = /^(\d*)(?:(\.\.)(\d*))?$/.exec(text) ?? [];
  const from = Number(first ?? Number.NaN);
  const open = last === "" && first !== "" ? Number.MAX_SAFE_INTEGER : Number(last || Number.NaN);
  const to = dots === undefined ? from : open;
  if (text !== "" && Number.isSafeInteger(from) && Number.isSafeInteger(to) && from <= to) return { from, to };
  throw new RepriseError(
    "USAGE",
    `--steps: ${JSON.stringify(text)} is not a step or a range. Use 3, 10..20, ..5 or 90.. .`,
  );
}
