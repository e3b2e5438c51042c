// reprise show --watch: follows a run until it ends or is stopped.
//
// What happened is appended line by line and stays. On a terminal the last lines say how the run stands and are drawn
// anew; elsewhere there are only the lines that stay.

import { systemTimers } from "../base/index.ts";
import {
  hasEnded,
  journalEntryOf,
  type Entry,
  type JournalEntry,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { FlowReader, isQuietItem, readFlowRun, rowsOf } from "./flow-run.ts";
import { flowJson, flowWaits, standingLines } from "./flow-view.ts";
import type { GlobalOptions } from "./global-options.ts";
import { eachEntry, standingOf, type StepData } from "./graph-run.ts";
import { graphJson, nowLines } from "./graph-view.ts";
import { holdingOf, type Holding } from "./holding.ts";
import { getRun } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson, type Paint } from "./output.ts";
import { headLines, statusOf, titleOf, troubleLines, waitLines } from "./run-view.ts";
import { unservedOf, unservedText } from "./serving.ts";
import { middleLeftOut, showJson } from "./show.ts";
import { entryJson, troubleOf } from "./shown-run.ts";
import { DEFAULT_NODES, endsOf, flowTrouble } from "./show-flow.ts";
import { readLastSteps } from "./show-graph.ts";
import { nodeOf, stepsOf } from "./steps.ts";
import { clip } from "./text.ts";
import { nameWidthOf, offsetOf, renderLine, TimelineReader } from "./timeline.ts";

const LOOK_MS = 50;
/** Waits count down on a terminal, also when nothing happens. */
const DRAW_MS = 1_000;
const MAX_WAITS = 6;
const MIN_NAME_WIDTH = 14;

export async function watchRun(store: Store, id: string, options: GlobalOptions): Promise<number> {
  let record = await getRun(store, id);
  const screen = new Screen(!options.json && process.stdout.isTTY);
  for (;;) {
    const followed = new Followed(record);
    if (!options.json) await screen.append(headLines(record, store.now()));
    for (;;) {
      // Read before the look at the store, so that what comes in between is seen by the next look.
      store.hasChanged();
      record = await getRun(store, id);
      // The same id in its next generation: this one has ended, perhaps with entries that were not read.
      const isOld = record.run !== followed.run;
      const fresh = await followed.read(store, isOld ? undefined : record.head);
      if (options.json) for (const entry of fresh.raw) await printJson({ entry: entryJson(entry) });
      else await screen.append(middleLeftOut(fresh.lines));
      if (isOld) break;
      if (isOver(record)) return finish(store, record, followed, screen, options);
      if (screen.isLive) screen.draw(await statusLines(store, record, followed));
      await untilChanged(store, screen.isLive ? DRAW_MS : Number.POSITIVE_INFINITY);
    }
  }
}

function isOver({ status }: RunRecord): boolean {
  return status === "blocked" || status === "determinism_violation" || (hasEnded(status) && status !== "continued");
}

async function untilChanged(store: Store, patienceMs: number): Promise<void> {
  for (let waited = 0; waited < patienceMs; waited += LOOK_MS) {
    await new Promise<void>((resolve) => void systemTimers.set(LOOK_MS, resolve));
    if (store.hasChanged()) return;
  }
}

async function finish(
  store: Store,
  record: RunRecord,
  followed: Followed,
  screen: Screen,
  options: GlobalOptions,
): Promise<number> {
  const raw = await endsOf(store, record);
  const graph = record.kind === "graph" && options.json ? graphJson(await readLastSteps(store, record)) : undefined;
  const flow = record.kind === "flow" ? await readFlowRun(store, record, DEFAULT_NODES) : undefined;
  const trouble = flow === undefined ? troubleOf(record, raw.at(-1)) : flowTrouble(record, raw.at(-1), flow);
  if (options.json) {
    const more = { graph, flow: flow && flowJson(flow, DEFAULT_NODES) };
    await printJson({ run: showJson(record, raw, stepsOf(followed.entries), { trouble, ...more }) });
  } else
    await screen.append([
      "",
      ...(trouble === undefined ? [titleOf(record, store.now())] : troubleLines(record, trouble)),
    ]);
  if (record.status === "completed") return EXIT.ok;
  return hasEnded(record.status) ? EXIT.problem : EXIT.determinism;
}

async function statusLines(store: Store, record: RunRecord, followed: Followed): Promise<string[]> {
  const now = store.now();
  const bare = (_style: unknown, text: string): string => text;
  const holding = await holdingOf(store, record);
  const waits =
    record.kind === "flow"
      ? await followed.flowLines(store, record, holding)
      : followed.waits(record, now, bare, holding);
  const more = waits.length - MAX_WAITS;
  const unserved = await unservedOf(store, record, stepsOf(followed.entries));
  return [
    "",
    statusOf(record, now, bare, record.status),
    ...waits.slice(0, MAX_WAITS).map((line) => `  ${line}`),
    ...(more > 0 ? [`  … and ${more} more`] : []),
    ...unserved.map(unservedText),
  ];
}

/** The journal of one run as far as it was read. Of a graph only what came since its last step is kept, of a flow counts. */
class Followed {
  readonly run: number;
  entries: JournalEntry[] = [];
  #after = 0;
  #startedAt = 0;
  #step: StepData | undefined;
  #flow: FlowReader | undefined;
  readonly #reader = new TimelineReader();
  #nameWidth = MIN_NAME_WIDTH;

  constructor({ run, kind }: RunRecord) {
    this.run = run;
    if (kind === "flow") this.#flow = new FlowReader();
  }

  /** What is new, up to `head` where it is given. */
  async read(store: Store, head?: number) {
    const raw = await store.readJournal(this.run, this.#after, ...(head === undefined ? [] : [head - this.#after]));
    const lines = raw.flatMap((stored) => {
      const entry = journalEntryOf(stored);
      if (entry.seq === 1) this.#startedAt = entry.at.getTime();
      this.#after = entry.seq;
      this.#keep(stored, entry);
      const line = this.#reader.read(entry);
      if (this.#flow !== undefined && isQuietItem(stored)) return [];
      this.#nameWidth = Math.max(this.#nameWidth, nameWidthOf(line));
      const options = { width: lineWidth(), paint };
      return renderLine(line, offsetOf(entry.at.getTime() - this.#startedAt), this.#nameWidth, options);
    });
    return { raw, lines };
  }

  #keep(stored: Entry, entry: JournalEntry): void {
    if (this.#flow !== undefined) this.#flow.see(stored);
    else if (entry.type === "StepCommitted") {
      this.#step = entry.data as StepData;
      this.entries = [];
    } else this.entries.push(entry);
  }

  waits(record: RunRecord, now: number, painted: Paint, holding: Holding | undefined): readonly string[] {
    const nodes =
      this.#step === undefined ? [] : nowLines(record, standingOf(record, this.#step, this.entries), now, painted);
    const own = stepsOf(this.entries).filter(({ kind, command }) => kind !== "node" && nodeOf(command) === undefined);
    return [...waitLines(record, own, now, { painted, isTold: nodes.length > 0, holding }), ...nodes];
  }

  /** What the nodes of a flow do, in counts. */
  async flowLines(store: Store, record: RunRecord, holding: Holding | undefined): Promise<readonly string[]> {
    const reader = (this.#flow = await this.#counting(store, record));
    const rows = await rowsOf(store, record, reader, await store.readReadiness(record.run));
    return [...flowWaits(record, rows, store.now(), holding), ...standingLines({ record, rows })];
  }

  /** Read again where a retry made something void. */
  async #counting(store: Store, record: RunRecord): Promise<FlowReader> {
    const reader = this.#flow ?? new FlowReader();
    if (reader.voids.length === reader.skips) return reader;
    const again = new FlowReader(reader.voids);
    await eachEntry(store, record, 0, this.#after, (entry) => again.see(entry));
    return again;
  }
}

/** Lines that stay, and below them some that are drawn anew. */
class Screen {
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
    // A line that wraps would be erased only in part.
    process.stdout.write(lines.map((line) => `${paint("cyan", clip(line, width - 1))}\n`).join(""));
    this.#drawn = lines.length;
  }

  #erase(): void {
    if (this.#drawn > 0) process.stdout.write(`\u001b[${this.#drawn}A\u001b[J`);
    this.#drawn = 0;
  }
}
