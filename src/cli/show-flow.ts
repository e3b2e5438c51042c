// Show flow: `reprise show` for a flow: a table of nodes, one row for a spread, then failures and the end of the run.

import {
  decodeData,
  journalEntryOf,
  type AttemptRecord,
  type Entry,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { readFlowRun, type FlowRun } from "../explain/index.ts";
import { failedLines, flowJson, flowNodeLines } from "./flow-view.ts";
import { EXIT } from "./exit-codes.ts";
import { readRunLeases } from "./run-leases.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { headLines, errorLines } from "./run-view.ts";
import { explain } from "../explain/index.ts";
import { explanationLines } from "./explanation.ts";
import { omittedNote, EDGE_LINES, showJson, takeoverLines, timelineJson, type ShowOptions } from "./show.ts";
import { findRunError, wasUndone, type RunErrorInfo } from "./run-format.ts";
import { markEntries, renderEvents, timelineEntries, TimelineReader, type TimelineEntry } from "./timeline.ts";

export const DEFAULT_NODES = 50;

export async function showFlow(store: Store, given: RunRecord, options: ShowOptions): Promise<number> {
  const limit = options.limit ?? DEFAULT_NODES;
  const flow = await readFlowRun(store, given, limit);
  const { record } = flow;
  const ends = await endsOf(store, record);
  const failedAt = failedNodeOf(record, ends.at(-1));
  const runError = flowTrouble(record, ends.at(-1), flow);
  const waitsFor = await explain(store, record);
  const leases = await readRunLeases(store, record);
  const attempts = await store.readAttempts(record.run);
  if (options.json) {
    const timeline = await timelineJson(store, record, options);
    await printJson(
      showJson(record, ends, [], { runError, waitsFor, leases, attempts, timeline, flow: flowJson(flow, limit) }),
    );
    return EXIT.ok;
  }
  const sections = [
    headLines(record, store.now()),
    options.timeline === true ? await timelineLines(store, record, attempts) : flowNodeLines(flow, limit),
    options.timeline === true ? [] : takeoverLines(attempts, record),
    options.timeline === true ? [] : eventLines(flow),
    failedLines(flow, limit, failedAt),
    explanationLines(waitsFor),
    runError === undefined ? [] : errorLines(record, runError),
  ];
  const shown = sections.filter((lines) => lines.length > 0);
  for (const [index, lines] of shown.entries()) await print(`${index === 0 ? "" : "\n"}${lines.join("\n")}`);
  return EXIT.ok;
}

/** The first and the last entry, which have the input and the outcome. */
export async function endsOf(store: Store, { run, head }: RunRecord): Promise<readonly Entry[]> {
  const [first] = await store.readJournal(run, 0, 1);
  const [last] = await store.readJournal(run, Math.max(0, head - 1), 1);
  return [first, last].filter((entry) => entry !== undefined);
}

/** The node or item whose failure failed the run. */
function failedNodeOf({ status }: RunRecord, last: Entry | undefined): string | undefined {
  return status === "failed" && last !== undefined ? decodeData("RunFailed", last.data).at : undefined;
}

/** The run error with the failed node; a retry continues from that node. */
export function flowTrouble(
  record: RunRecord,
  last: Entry | undefined,
  { rows }: Pick<FlowRun, "rows">,
): RunErrorInfo | undefined {
  const runError = findRunError(record, last);
  const at = failedNodeOf(record, last);
  if (runError === undefined || record.status !== "failed") return runError;
  const next = wasUndone(last)
    ? runError.next
    : withStoreOption(`fix the cause, then: reprise retry ${shellWord(record.id)}`);
  if (at === undefined) return { ...runError, next };
  const failures = rows.flatMap(({ node, attempts: own, items }): readonly { item: string; attempts: number }[] =>
    items === undefined ? [{ item: node, attempts: own }] : items.failures,
  );
  const attempts = failures.find(({ item }) => item === at)?.attempts ?? 1;
  return { ...runError, next, where: `node ${at}${attempts > 1 ? `, attempt ${attempts}` : ""}` };
}

function eventLines({ record, events }: FlowRun): string[] {
  const reader = new TimelineReader(record.createdAt);
  const lines = events.map((entry) => ({ at: entry.at.getTime() - record.createdAt, line: reader.read(entry) }));
  return renderEvents(lines, { width: lineWidth(), paint });
}

/** The first and the last entries; the entries between them are not read. */
async function timelineLines(store: Store, record: RunRecord, attempts: readonly AttemptRecord[]): Promise<string[]> {
  const { run, head, createdAt } = record;
  const reader = new TimelineReader(createdAt, attempts);
  const read = async (after: number, limit: number): Promise<TimelineEntry[]> =>
    (await store.readJournal(run, after, limit)).flatMap((entry) =>
      timelineEntries(reader, journalEntryOf(entry), createdAt),
    );
  const first = await read(0, Math.min(head, EDGE_LINES));
  const after = Math.max(Math.min(head, EDGE_LINES), head - EDGE_LINES);
  const last = await read(after, head - after);
  last.push(...markEntries(reader.takeMarks(true), createdAt));
  const options = { width: lineWidth(), paint };
  const left = after - Math.min(head, EDGE_LINES);
  if (left === 0) return renderEvents([...first, ...last], options);
  return [...renderEvents(first, options), omittedNote(left, "entries"), ...renderEvents(last, options)];
}
