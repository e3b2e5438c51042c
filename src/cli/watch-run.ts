// reprise show --watch: follows a run until it ends or stops.
//
// Each journal entry appends a line. On a terminal the last lines show the current status and are redrawn.

import { systemTimers } from "../base/index.ts";
import {
  hasEnded,
  journalEntryOf,
  type Entry,
  type JournalEntry,
  type RunRecord,
  type StepCommittedData,
  type Store,
} from "../kernel/index.ts";
import { FlowReader, isCompletedItem, readFlowRun, rowsOf } from "../explain/index.ts";
import { flowJson, openNodeLines } from "./flow-view.ts";
import type { GlobalOptions } from "./global-options.ts";
import { eachEntry, currentStateOf } from "../explain/index.ts";
import { graphJson, currentStepLines } from "./graph-view.ts";
import { getRun } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson, type Paint } from "./output.ts";
import { headLines, statusText, titleLine, errorLines } from "./run-view.ts";
import { explanationTexts } from "./explanation.ts";
import { omitMiddle, showJson } from "./show.ts";
import { entryJson, findRunError } from "./run-format.ts";
import { DEFAULT_NODES, endsOf, flowTrouble } from "./show-flow.ts";
import { readLastSteps } from "./show-graph.ts";
import { explain, stepsOf } from "../explain/index.ts";
import { clip } from "./text.ts";
import { nameWidthOf, offsetOf, renderLine, TimelineReader } from "./timeline.ts";

const POLL_MS = 50;
/** On a terminal, times count down even if nothing happens. */
const REDRAW_MS = 1_000;
const MAX_WAITS = 6;
const MIN_NAME_WIDTH = 14;

export async function watchRun(store: Store, id: string, options: GlobalOptions): Promise<number> {
  let record = await getRun(store, id);
  const output = new LiveLines(!options.json && process.stdout.isTTY);
  for (;;) {
    const follower = new RunFollower(record);
    if (!options.json) await output.append(headLines(record, store.now()));
    for (;;) {
      // Consumed before the store is read, so that the next poll reports changes that happen in between.
      store.pollChanges();
      record = await getRun(store, id);
      // The run continued as new: read the remaining entries of this generation first.
      const isOld = record.run !== follower.run;
      const fresh = await follower.read(store, isOld ? undefined : record.head);
      if (options.json) for (const entry of fresh.raw) await printJson({ entry: entryJson(entry) });
      else await output.append(omitMiddle(fresh.lines));
      if (isOld) break;
      if (isOver(record)) return finish(store, record, follower, output, options);
      if (output.isLive) output.draw(await statusLines(store, record, follower));
      await untilChanged(store, output.isLive ? REDRAW_MS : Number.POSITIVE_INFINITY);
    }
  }
}

function isOver({ status }: RunRecord): boolean {
  return status === "blocked" || status === "determinism_violation" || (hasEnded(status) && status !== "continued");
}

async function untilChanged(store: Store, timeoutMs: number): Promise<void> {
  for (let waited = 0; waited < timeoutMs; waited += POLL_MS) {
    await new Promise<void>((resolve) => void systemTimers.set(POLL_MS, resolve));
    if (store.pollChanges()) return;
  }
}

async function finish(
  store: Store,
  record: RunRecord,
  follower: RunFollower,
  output: LiveLines,
  options: GlobalOptions,
): Promise<number> {
  const raw = await endsOf(store, record);
  const graph = record.kind === "graph" && options.json ? graphJson(await readLastSteps(store, record)) : undefined;
  const flow = record.kind === "flow" ? await readFlowRun(store, record, DEFAULT_NODES) : undefined;
  const runError = flow === undefined ? findRunError(record, raw.at(-1)) : flowTrouble(record, raw.at(-1), flow);
  if (options.json) {
    const more = { graph, flow: flow && flowJson(flow, DEFAULT_NODES) };
    await printJson({ run: showJson(record, raw, stepsOf(follower.entries), { runError, ...more }) });
  } else
    await output.append([
      "",
      ...(runError === undefined ? [titleLine(record, store.now())] : errorLines(record, runError)),
    ]);
  if (record.status === "completed") return EXIT.ok;
  return hasEnded(record.status) ? EXIT.problem : EXIT.determinism;
}

async function statusLines(store: Store, record: RunRecord, follower: RunFollower): Promise<string[]> {
  const now = store.now();
  const bare = (_style: unknown, text: string): string => text;
  const nodes = record.kind === "flow" ? await follower.flowLines(store, record) : follower.nodeLines(record, bare);
  const waits = [...explanationTexts(await explain(store, record)), ...nodes];
  const more = waits.length - MAX_WAITS;
  return [
    "",
    statusText(record, now, bare, record.status),
    ...waits.slice(0, MAX_WAITS).map((line) => `  ${line}`),
    ...(more > 0 ? [`  … and ${more} more`] : []),
  ];
}

/** The journal of one run up to the last entry read. Keeps the entries since the last step of a graph, and counts of a flow. */
class RunFollower {
  readonly run: number;
  entries: JournalEntry[] = [];
  #after = 0;
  #startedAt = 0;
  #step: StepCommittedData | undefined;
  #flow: FlowReader | undefined;
  readonly #reader = new TimelineReader();
  #nameWidth = MIN_NAME_WIDTH;

  constructor({ run, kind }: RunRecord) {
    this.run = run;
    if (kind === "flow") this.#flow = new FlowReader();
  }

  /** Reads new entries, up to `head` if given. */
  async read(store: Store, head?: number) {
    const raw = await store.readJournal(this.run, this.#after, ...(head === undefined ? [] : [head - this.#after]));
    const lines = raw.flatMap((stored) => {
      const entry = journalEntryOf(stored);
      if (entry.seq === 1) this.#startedAt = entry.at.getTime();
      this.#after = entry.seq;
      this.#keep(stored, entry);
      const line = this.#reader.read(entry);
      if (this.#flow !== undefined && isCompletedItem(stored)) return [];
      this.#nameWidth = Math.max(this.#nameWidth, nameWidthOf(line));
      const options = { width: lineWidth(), paint };
      return renderLine(line, offsetOf(entry.at.getTime() - this.#startedAt), this.#nameWidth, options);
    });
    return { raw, lines };
  }

  #keep(stored: Entry, entry: JournalEntry): void {
    if (this.#flow !== undefined) this.#flow.read(stored);
    else if (entry.type === "StepCommitted") {
      this.#step = entry.data as StepCommittedData;
      this.entries = [];
    } else this.entries.push(entry);
  }

  nodeLines(record: RunRecord, painted: Paint): readonly string[] {
    return this.#step === undefined
      ? []
      : currentStepLines(record, currentStateOf(record, this.#step, this.entries), painted);
  }

  /** The open nodes of a flow, with counts. */
  async flowLines(store: Store, record: RunRecord): Promise<readonly string[]> {
    const reader = (this.#flow = await this.#effectiveReader(store, record));
    const rows = await rowsOf(store, record, reader, await store.readReadiness(record.run));
    return openNodeLines({ record, rows });
  }

  /** Reads the journal again after a retry made entries void. */
  async #effectiveReader(store: Store, record: RunRecord): Promise<FlowReader> {
    const reader = this.#flow ?? new FlowReader();
    if (!reader.isStale) return reader;
    const again = new FlowReader(reader.voids);
    await eachEntry(store, record, 0, this.#after, (entry) => again.read(entry));
    return again;
  }
}

/** Permanent lines, and below them status lines that are redrawn. */
class LiveLines {
  readonly isLive: boolean;
  #drawn = 0;

  constructor(isLive: boolean) {
    this.isLive = isLive;
  }

  async append(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    this.#erase();
    for (const line of lines) await print(line);
  }

  draw(lines: readonly string[]): void {
    if (!this.isLive) return;
    this.#erase();
    const width = process.stdout.columns ?? 80;
    // A wrapped line would be erased only partly.
    process.stdout.write(lines.map((line) => `${paint("cyan", clip(line, width - 1))}\n`).join(""));
    this.#drawn = lines.length;
  }

  #erase(): void {
    if (this.#drawn > 0) process.stdout.write(`\u001b[${this.#drawn}A\u001b[J`);
    this.#drawn = 0;
  }
}
