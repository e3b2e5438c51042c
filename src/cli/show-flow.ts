// reprise show for the run of a flow: a table of its nodes, a spread as one row, what failed, how it ended.

import { decode } from "../base/index.ts";
import { journalEntryOf, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import { readFlowRun, type FlowRun } from "./flow-run.ts";
import { failedLines, flowJson, flowWaits, nodeLines } from "./flow-view.ts";
import { EXIT } from "./exit-codes.ts";
import { holdingOf, type Holding } from "./holding.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { headLines, troubleLines } from "./run-view.ts";
import { unservedOf } from "./serving.ts";
import { leftOutNote, SHOWN_AT_EACH_END, showJson, unservedLines, waitsTitle, type ShowOptions } from "./show.ts";
import { troubleOf, type Trouble } from "./shown-run.ts";
import { plain } from "./text.ts";
import { renderEvents, TimelineReader, type TimelineEntry } from "./timeline.ts";

export const DEFAULT_NODES = 50;

export async function showFlow(store: Store, given: RunRecord, options: ShowOptions): Promise<number> {
  const limit = options.limit ?? DEFAULT_NODES;
  const flow = await readFlowRun(store, given, limit);
  const { record } = flow;
  const ends = await endsOf(store, record);
  const failedAt = failedNodeOf(record, ends.at(-1));
  const trouble = flowTrouble(record, ends.at(-1), flow);
  const unserved = await unservedOf(store, record, []);
  const holding = await holdingOf(store, record);
  if (options.json) {
    await printJson(showJson(record, ends, [], { trouble, unserved, holding, flow: flowJson(flow, limit) }));
    return EXIT.ok;
  }
  const sections = [
    headLines(record, store.now()),
    options.timeline === true ? await timelineLines(store, record) : nodeLines(flow, limit),
    options.timeline === true ? [] : eventLines(flow),
    failedLines(flow, limit, failedAt),
    waitLines(flow, holding, store.now()),
    trouble === undefined ? [] : troubleLines(record, trouble),
  ];
  const shown = sections.filter((lines) => lines.length > 0);
  for (const [index, lines] of shown.entries()) await print(`${index === 0 ? "" : "\n"}${lines.join("\n")}`);
  for (const line of unservedLines(unserved)) await print(line);
  return EXIT.ok;
}

/** The first entry and the last: those with its input and its outcome. */
export async function endsOf(store: Store, { run, head }: RunRecord): Promise<readonly Entry[]> {
  const [first] = await store.readJournal(run, 0, 1);
  const [last] = await store.readJournal(run, Math.max(0, head - 1), 1);
  return [first, last].filter((entry) => entry !== undefined);
}

/** The node or item whose failure is the run's. */
function failedNodeOf({ status }: RunRecord, last: Entry | undefined): string | undefined {
  return status === "failed" && last !== undefined ? (decode(last.data) as { at?: string }).at : undefined;
}

/** Where it failed is said by the node, and a retry goes on from there. */
export function flowTrouble(
  record: RunRecord,
  last: Entry | undefined,
  { rows }: Pick<FlowRun, "rows">,
): Trouble | undefined {
  const trouble = troubleOf(record, last);
  const at = failedNodeOf(record, last);
  if (trouble === undefined || record.status !== "failed") return trouble;
  const next = `Read the cause and repair it; then \`reprise retry ${plain(record.id)}\`: what has a value keeps it.`;
  if (at === undefined) return { ...trouble, next };
  const failures = rows.flatMap(({ node, attempts: own, items }): readonly { item: string; attempts: number }[] =>
    items === undefined ? [{ item: node, attempts: own }] : items.failures,
  );
  const attempts = failures.find(({ item }) => item === at)?.attempts ?? 1;
  return { ...trouble, next, where: `node ${at}${attempts > 1 ? `, attempt ${attempts}` : ""}` };
}

function waitLines({ record, rows }: FlowRun, holding: Holding | undefined, now: number): string[] {
  const waits = flowWaits(record, rows, now, holding);
  return waits.length === 0 ? [] : [paint("bold", waitsTitle(record, holding)), ...waits.map((line) => `  ${line}`)];
}

function eventLines({ record, events }: FlowRun): string[] {
  const reader = new TimelineReader(record.createdAt);
  const lines = events.map((entry) => ({ at: entry.at.getTime() - record.createdAt, line: reader.read(entry) }));
  return renderEvents(lines, { width: lineWidth(), paint });
}

/** The beginning and the end; what is between is not read. */
async function timelineLines(store: Store, record: RunRecord): Promise<string[]> {
  const { run, head, createdAt } = record;
  const reader = new TimelineReader(createdAt);
  const read = async (after: number, limit: number): Promise<TimelineEntry[]> =>
    (await store.readJournal(run, after, limit)).map((entry) => ({
      at: entry.at - createdAt,
      line: reader.read(journalEntryOf(entry)),
    }));
  const first = await read(0, Math.min(head, SHOWN_AT_EACH_END));
  const after = Math.max(first.length, head - SHOWN_AT_EACH_END);
  const last = await read(after, head - after);
  const options = { width: lineWidth(), paint };
  const left = after - first.length;
  if (left === 0) return renderEvents([...first, ...last], options);
  return [...renderEvents(first, options), leftOutNote(left, "entries"), ...renderEvents(last, options)];
}
