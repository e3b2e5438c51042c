// RunTail: what happens to the runs of this process, as readable lines while it happens.
//
// The engine's events say which runs move; their journals say how. So a line says the same as `reprise show` does.

import { subscribe } from "node:diagnostics_channel";
import { journalEntryOf, type JournalEntry, type RepriseEvent, type Store } from "../kernel/index.ts";
import { timeOfDay } from "./log-lines.ts";
import { lineWidth, paint } from "./output.ts";
import { troubleLines } from "./run-view.ts";
import { entryJson, troubleOf } from "./shown-run.ts";
import { countOf, jsonText, plain } from "./text.ts";
import { nameWidthOf, renderLine, TimelineReader, type Line } from "./timeline.ts";

interface Tailed {
  readonly run: number;
  readonly reader: TimelineReader;
  after: number;
  /** Entries up to this one were written before this process took the run up. */
  readonly old: number;
}

const PAGE = 500;
const MIN_ID_WIDTH = 10;
const MAX_ID_WIDTH = 36;
const MIN_NAME_WIDTH = 12;

export class RunTail {
  readonly #store: Store;
  readonly #json: boolean;
  readonly #runs = new Map<string, Tailed>();
  /** Runs that moved since they were last looked at. */
  #moved = new Set<string>();
  readonly #live = new Set<string>();
  readonly #old = new Map<string, number>();
  #looking: Promise<void> | undefined;
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
      this.#moved.add(event.run);
      this.#live.delete(event.run);
    } else if (event.event !== "commit") return;
    for (const run of this.#live) this.#moved.add(run);
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
  }

  /** Resolves when everything that moved so far has been said. */
  async settled(): Promise<void> {
    while (this.#looking !== undefined) await this.#looking;
  }

  async #look(): Promise<void> {
    while (this.#moved.size > 0) {
      const moved = this.#moved;
      this.#moved = new Set();
      for (const id of moved) await this.#say(id).catch(() => {});
    }
  }

  async #say(id: string): Promise<void> {
    // Asked before anything is read: who ends while we read is read once more.
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
    this.#moved.delete(id);
    const trouble = record.status === "failed" ? undefined : troubleOf(record, undefined);
    if (trouble !== undefined && !this.#json) process.stdout.write(`${troubleLines(record, trouble).join("\n")}\n`);
  }

  #write(id: string, { reader, old }: Tailed, entry: JournalEntry): void {
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
  return { tone: "quiet", name: "taken up", text: `after ${countOf(entries, "entry", "entries")}`, under: [] };
}
