// reprise show for the run of a graph: a table of its steps, the nodes of the next one, how it ended. However long the run
// is, only the steps that are shown are read.

import { RepriseError } from "../base/index.ts";
import { journalEntryOf, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import { eachEntry, lastStepOf, readGraphRun, type GraphRun, type StepRange } from "./graph-run.ts";
import { graphJson, nowLines, stepLines } from "./graph-view.ts";
import { EXIT } from "./exit-codes.ts";
import { holdingOf } from "./holding.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { answerLines, headLines, troubleLines, waitLines } from "./run-view.ts";
import { unservedOf } from "./serving.ts";
import { middleLeftOut, showJson, unservedLines, waitsTitle, type ShowOptions } from "./show.ts";
import { troubleOf } from "./shown-run.ts";
import { nodeOf, stepsOf } from "./steps.ts";
import { renderEvents, TimelineReader, type TimelineEntry } from "./timeline.ts";

const DEFAULT_STEPS = 20;

export async function showGraph(store: Store, record: RunRecord, options: ShowOptions): Promise<number> {
  const asked = options.steps === undefined ? undefined : stepRangeOf(options.steps);
  const range = asked ?? (await lastSteps(store, record));
  const graph = await readGraphRun(store, record, range);
  const [first] = await store.readJournal(record.run, 0, 1);
  const [final] = await store.readJournal(record.run, record.head - 1, 1);
  const trouble = troubleOf(record, final);
  const steps = stepsOf(graph.since);
  const unserved = await unservedOf(store, record, steps);
  const holding = await holdingOf(store, record);
  if (options.json) {
    const ends = [first, final].filter((entry): entry is Entry => entry !== undefined);
    await printJson(showJson(record, ends, steps, { trouble, unserved, holding, graph: graphJson(graph) }));
    return EXIT.ok;
  }
  const now = store.now();
  const lines = [...headLines(record, now), ""];
  if (options.timeline === true) lines.push(...middleLeftOut(await timelineLines(store, record, graph)));
  else lines.push(...stepLines(graph, range), ...withGap(endLines(record, graph)));
  const standing = nowLines(record, graph, now);
  lines.push(...withGap(standing));
  const waits = waitLines(record, ownSteps(graph), now, { isTold: standing.length > 0, holding });
  if (waits.length > 0) lines.push("", paint("bold", waitsTitle(record, holding)), ...waits.map((line) => `  ${line}`));
  lines.push(
    ...answerLines(
      record,
      graph.now.flatMap((node) => node.waits),
    ),
  );
  if (trouble !== undefined) lines.push("", ...troubleLines(record, trouble));
  for (const line of [...lines, ...unservedLines(unserved)]) await print(line);
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

/** What no node asked for: updates that wait for an answer. Those of nodes are told with them. */
function ownSteps({ since }: GraphRun): ReturnType<typeof stepsOf> {
  return stepsOf(since).filter(({ kind, command }) => kind !== "node" && nodeOf(command) === undefined);
}

/** How it ended, and what somebody did to it since the last step. */
function endLines({ createdAt }: RunRecord, { since }: GraphRun): string[] {
  const reader = new TimelineReader();
  const told = since.filter(
    ({ type, command }) =>
      (command === undefined && type.startsWith("Run")) || type === "CancelRequested" || type === "DeadlineExceeded",
  );
  const lines = told
    .filter(({ type }) => type !== "RunStarted")
    .map((entry) => ({ at: entry.at.getTime() - createdAt, line: reader.read(entry) }));
  return renderEvents(lines, { width: lineWidth(), paint });
}

/** Every entry of the steps that are shown; after the last step, also what came since. */
async function timelineLines(store: Store, record: RunRecord, { steps, last }: GraphRun): Promise<string[]> {
  const [first] = steps;
  const final = steps.at(-1);
  if (first === undefined || final === undefined) return [];
  const before = first.step === 0 ? undefined : await store.findCheckpoint(record.run, first.step - 1, false);
  const end = final.step === last ? record.head : final.seq;
  const reader = new TimelineReader(record.createdAt);
  const lines: TimelineEntry[] = [];
  await eachEntry(store, record, before?.seq ?? 0, end, (entry) => {
    lines.push({ at: entry.at - record.createdAt, line: reader.read(journalEntryOf(entry)) });
  });
  return renderEvents(lines, { width: lineWidth(), paint });
}

/** `3`, `10..20`, `..5`, `90..` */
export function stepRangeOf(text: string): StepRange {
  const [, first, dots, last] = /^(\d*)(?:(\.\.)(\d*))?$/.exec(text) ?? [];
  const from = Number(first ?? Number.NaN);
  const open = last === "" && first !== "" ? Number.MAX_SAFE_INTEGER : Number(last || Number.NaN);
  const to = dots === undefined ? from : open;
  if (text !== "" && Number.isSafeInteger(from) && Number.isSafeInteger(to) && from <= to) return { from, to };
  throw new RepriseError("USAGE", `--steps: expected a step or a range such as 10..20, got ${JSON.stringify(text)}.`);
}
