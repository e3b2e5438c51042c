// News as a commit makes them, and as text on their way to others.
//
// N1. What a process does with the turns it holds is nobody else's business.
// N2. A text that is too long, or not understood, means that anything may have changed.

import { DEADLINE_ITEM, WORK_KINDS, type ChangeNotice, type RunNumber, type WorkKind } from "../../kernel/index.ts";
import type { Change, WireRow } from "./backend.ts";

/** What PostgreSQL takes along with a notification is 8,000 bytes, less what comes before. */
const MAX_CHARACTERS = 7_500;
const ANYTHING = "*";

export class Gathered implements ChangeNotice {
  readonly work = new Set<WorkKind>();
  readonly runs = new Set<RunNumber>();

  /** Whether there was any. */
  add(changes: readonly Change[]): boolean {
    let isNews = false;
    for (const change of changes) if (this.#addChange(change)) isNews = true;
    if (isNews && changes.some(isDeadline)) this.#wanted("due");
    return isNews;
  }

  #addChange(change: Change): boolean {
    if (change.change === "delete") return change.table === "queue" && change.rows.some(isInLine);
    switch (change.table) {
      case "runs":
        if (change.change === "update" && !change.columns.some((column) => RUN_NEWS.has(column))) return false;
        return change.rows.filter((row) => this.#addRun(row, change.change)).length > 0;
      case "queue":
        if (change.change === "update" && !change.columns.includes("state")) return false;
        if (change.rows.some((row) => row["state"] === 1 || row["state"] === 4)) return this.#wanted("items");
        return change.rows.some((row) => isInLine(row) && (row["state"] === 0 || row["state"] === 3));
      case "outbox":
        return this.#wanted("messages");
      case "schedules":
        return this.#wanted("schedules");
      case "queues":
        return this.#wanted("starts", "items");
      case "chunks":
        return true;
      case "journal":
        return change.rows.some((row) => ANSWERS.has(row["type"]));
      default:
        return false;
    }
  }

  /** N1. Not one that was only claimed. */
  #addRun(row: WireRow, change: "insert" | "update"): boolean {
    const isDue = DUE.has(row["turn_due"]) && (row["turn_token"] ?? null) === null;
    if (change === "insert") {
      if (row["turn_token"] !== null) return false;
      return isDue ? this.#wanted("turns") : this.#wanted("starts", "due");
    }
    if (row["status"] === "running" && row["turn_due"] !== 1) return false;
    if (isDue) this.#wanted("turns");
    this.runs.add(row["run"] as RunNumber);
    return true;
  }

  #wanted(...kinds: readonly WorkKind[]): true {
    for (const kind of kinds) this.work.add(kind);
    return true;
  }

  merge({ work, runs }: ChangeNotice): void {
    for (const kind of work) this.work.add(kind);
    for (const run of runs) this.runs.add(run);
  }
}

const RUN_NEWS: ReadonlySet<string> = new Set(["status", "turn_due", "arrivals"]);
/** Of suspects as well. */
const DUE: ReadonlySet<unknown> = new Set([1, 2]);
/** Entries somebody outside waits for, whatever becomes of the run. */
const ANSWERS: ReadonlySet<unknown> = new Set(["UpdateCompleted", "UpdateFailed"]);

/** Whoever works on a run that others started has to know when its time is up. */
function isDeadline({ change, table, rows }: Change): boolean {
  return change === "insert" && table === "queue" && rows.some((row) => row["item"] === DEADLINE_ITEM);
}

/** Others may be in line behind it, for a place it leaves. */
function isInLine(row: WireRow): boolean {
  return typeof row["queue"] === "string";
}

export function textOf({ work, runs }: ChangeNotice): string {
  const text = `${[...work].join()} ${[...runs].join()}`;
  return text.length > MAX_CHARACTERS ? ANYTHING : text;
}

/** N2 */
export function newsIn(text: string): ChangeNotice | undefined {
  const parts = /^([a-z,]*) ([\d,]*)$/.exec(text);
  if (parts === null) return undefined;
  const [work, runs] = [listIn(parts[1]!), listIn(parts[2]!)];
  if (!work.every(isWorkKind)) return undefined;
  return { work: new Set(work), runs: new Set(runs.map(Number)) };
}

function listIn(text: string): readonly string[] {
  return text === "" ? [] : text.split(",");
}

function isWorkKind(text: string): text is WorkKind {
  return (WORK_KINDS as readonly string[]).includes(text);
}
