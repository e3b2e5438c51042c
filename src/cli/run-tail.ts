// Run tail: prints the journal entries of this process's runs as they are committed, for `reprise dev`.
//
// The engine's events name the runs that changed; the lines come from the journals, so they match `reprise show`.

import { subscribe } from "node:diagnostics_channel";
import { journalEntryOf, type JournalEntry, type RepriseEvent, type Store } from "../kernel/index.ts";
import { timeOfDay } from "./log-lines.ts";
import { lineWidth, paint } from "./output.ts";
import { errorLines } from "./run-view.ts";
import { entryJson, findRunError } from "./run-format.ts";
import { pluralize, jsonText, plain } from "./text.ts";
import { nameWidthOf, renderLine, TimelineReader, type Line } from "./timeline.ts";

interface TailedRun {
  readonly run: number;
  readonly reader: TimelineReader;
  after: number;
  /** Entries up to this one were written before this process resumed the run. */
  readonly old: number;
}

const PAGE = 500;
const MIN_ID_WIDTH = 10;
const MAX_ID_WIDTH = 36;
const MIN_NAME_WIDTH = 12;

export class RunTail {
  readonly #store: Store;
  readonly #json: boolean;
  readonly #runs = new Map<string, TailedRun>();
  /** Runs that changed since they were last read. */
  #changed = new Set<string>();
  readonly #live = new Set<string>();
  readonly #old = new Map<string, number>();
  #reading: Promise<void> | undefined;
  #idWidth = MIN_ID_WIDTH;
  #nameWidth = MIN_NAME_WIDTH;

  constructor(store: Store, json: boolean) {
    this.#store = store;
    this.#json = json;
    subscribe("reprise", (message) => this.#onEvent(message as RepriseEvent));
  }

  #onEvent(event: RepriseEvent): void {
    if (event.event === "run.started" || event.event === "run.resumed") {
      this.#live.add(event.run);
      if (event.event === "run.resumed") this.#old.set(event.run, event.entries);
    } else if (event.event === "run.ended" || event.event === "run.stopped") {
      this.#changed.add(event.run);
      this.#live.delete(event.run);
    } else if (event.event !== "commit") return;
    for (const run of this.#live) this.#changed.add(run);
    this.#reading ??= this.#readChanged().finally(() => (this.#reading = undefined));
  }

  /** Resolves when all changes so far have been printed. */
  async settled(): Promise<void> {
    while (this.#reading !== undefined) await this.#reading;
  }

  async #readChanged(): Promise<void> {
    while (this.#changed.size > 0) {
      const changed = this.#changed;
      this.#changed = new Set();
      for (const id of changed) await this.#printNew(id).catch(() => {});
    }
  }

  async #printNew(id: string): Promise<void> {
    // Checked before reading: a run that ends while it is read is read once more.
    const isLast = !this.#live.has(id);
    const record = await this.#store.findRun(id);
    if (record === undefined) return;
    let tailed = this.#runs.get(id);
    if (tailed?.run !== record.run) {
      tailed = { run: record.run, reader: new TimelineReader(), after: 0, old: this.#old.get(id) ?? 0 };
      this.#runs.set(id, tailed);
    }
    this.#old.delete(id);
    for (;;) {
      const page = await this.#store.readJournal(record.run, tailed.after, PAGE);
      for (const entry of page) {
        tailed.after = entry.seq;
        if (this.#json && entry.seq <= tailed.old) continue;
        if (this.#json) process.stdout.write(`${jsonText({ run: id, entry: entryJson(entry) })}\n`);
        else this.#write(id, tailed, journalEntryOf(entry));
      }
      if (page.length < PAGE) break;
    }
    if (!isLast) return;
    this.#runs.delete(id);
    this.#changed.delete(id);
    const runError = record.status === "failed" ? undefined : findRunError(record, undefined);
    if (runError !== undefined && !this.#json) process.stdout.write(`${errorLines(record, runError).join("\n")}\n`);
  }

  #write(id: string, { reader, old }: TailedRun, entry: JournalEntry): void {
    const line = reader.read(entry);
    if (entry.seq < old) return;
    if (entry.seq === old) return this.#writeLine(id, resumedLine(old), this.#store.now());
    this.#writeLine(id, line, entry.at.getTime());
  }

  #writeLine(id: string, line: Line, at: number): void {
    this.#idWidth = Math.min(MAX_ID_WIDTH, Math.max(this.#idWidth, id.length));
    this.#nameWidth = Math.max(this.#nameWidth, nameWidthOf(line));
    const before = `${timeOfDay(at)} ${plain(id).padEnd(this.#idWidth)}`;
    const lines = renderLine(line, before, this.#nameWidth, { width: lineWidth(), paint });
    process.stdout.write(`${lines.join("\n")}\n`);
  }
}

function resumedLine(entries: number): Line {
  return { tone: "quiet", name: "resumed", text: `after ${pluralize(entries, "entry", "entries")}`, under: [] };
}
