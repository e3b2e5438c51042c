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
import type { GlobalOptions } from "./global-options.ts";
import { standingOf, type StepData } from "./graph-run.ts";
import { graphJson, nowLines } from "./graph-view.ts";
import { getRun } from "./open-store.ts";
import { EXIT, lineWidth, paint, print, printJson, type Paint } from "./output.ts";
import { headLines, statusOf, titleOf, troubleLines, waitLines } from "./run-view.ts";
import { middleLeftOut, showJson } from "./show.ts";
import { entryJson, troubleOf } from "./shown-run.ts";
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
      if (!options.json) screen.draw(statusLines(record, followed, store.now()));
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
  const trouble = troubleOf(record, raw.at(-1));
  if (options.json) await printJson({ run: showJson(record, raw, stepsOf(followed.entries), trouble, graph) });
  else
    await screen.append([
      "",
      ...(trouble === undefined ? [titleOf(record, store.now())] : troubleLines(record, trouble)),
    ]);
  if (record.status === "completed") return EXIT.ok;
  return hasEnded(record.status) ? EXIT.problem : EXIT.determinism;
}

/** The first entry and the last: those with its input and its outcome. */
async function endsOf(store: Store, { run, head }: RunRecord): Promise<readonly Entry[]> {
  const [first] = await store.readJournal(run, 0, 1);
  const [last] = await store.readJournal(run, Math.max(0, head - 1), 1);
  return [first, last].filter((entry) => entry !== undefined);
}

function statusLines(record: RunRecord, followed: Followed, now: number): string[] {
  const bare = (_style: unknown, text: string): string => text;
  const nodes = followed.nodeLines(record, now, bare);
  const own = stepsOf(followed.entries).filter(({ kind, command }) => kind !== "node" && nodeOf(command) === undefined);
  const waits = [...waitLines(record, own, now, bare, nodes.length > 0), ...nodes];
  const more = waits.length - MAX_WAITS;
  return [
    "",
    statusOf(record, now, bare, record.status),
    ...waits.slice(0, MAX_WAITS).map((line) => `  ${line}`),
    ...(more > 0 ? [`  … and ${more} more`] : []),
  ];
}

/** The journal of one run as far as it was read. Of a graph only what came since its last step is kept. */
class Followed {
  readonly run: number;
  entries: JournalEntry[] = [];
  #after = 0;
  #startedAt = 0;
  #step: StepData | undefined;
  readonly #reader = new TimelineReader();
  #nameWidth = MIN_NAME_WIDTH;

  constructor({ run }: RunRecord) {
    this.run = run;
  }

  /** What is new, up to `head` where it is given. */
  async read(store: Store, head?: number) {
    const raw = await store.readJournal(this.run, this.#after, ...(head === undefined ? [] : [head - this.#after]));
    const lines = raw.flatMap((stored) => {
      const entry = journalEntryOf(stored);
      if (entry.seq === 1) this.#startedAt = entry.at.getTime();
      this.#after = entry.seq;
      if (entry.type === "StepCommitted") {
        this.#step = entry.data as StepData;
        this.entries = [];
      } else this.entries.push(entry);
      const line = this.#reader.read(entry);
      this.#nameWidth = Math.max(this.#nameWidth, nameWidthOf(line));
      const options = { width: lineWidth(), paint };
      return renderLine(line, offsetOf(entry.at.getTime() - this.#startedAt), this.#nameWidth, options);
    });
    return { raw, lines };
  }

  /** What the nodes of a graph do. */
  nodeLines(record: RunRecord, now: number, painted: Paint): readonly string[] {
    if (this.#step === undefined) return [];
    return nowLines(record, standingOf(record, this.#step, this.entries), now, painted);
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
