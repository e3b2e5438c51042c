// Change notice: which changes of a commit other processes must know of, and their text in a notification.
//
// change-notice.N1. Commits of a turn that a worker of this process holds are not announced, unless the run's status changes.
// change-notice.N2. A text that is too long or cannot be parsed means that anything may have changed.

import {
  DEADLINE_ITEM,
  isTurnClaimable,
  WORK_KINDS,
  type ChangeNotice,
  type RunNumber,
  type WorkKind,
  QueueItemState,
  TurnDue,
} from "../../kernel/index.ts";
import type { Change, WireRow } from "./backend.ts";

/** PostgreSQL limits a notification to 8,000 bytes, including a prefix. */
const MAX_CHARACTERS = 7_500;
const ANYTHING = "*";

export class PendingNotice implements ChangeNotice {
  readonly work = new Set<WorkKind>();
  readonly runs = new Set<RunNumber>();

  /** Adds the changes of a commit; returns whether other processes must know of any. */
  add(changes: readonly Change[]): boolean {
    let isRelevant = false;
    for (const change of changes) if (this.#addChange(change)) isRelevant = true;
    if (isRelevant && changes.some(isDeadline)) this.#addWork("due");
    return isRelevant;
  }

  #addChange(change: Change): boolean {
    if (change.change === "delete") return change.rows.some((row) => freesSlots(change.table, row));
    switch (change.table) {
      case "runs":
        if (change.change === "update" && !change.columns.some((column) => RELEVANT_COLUMNS.has(column))) return false;
        return change.rows.filter((row) => this.#addRun(row, change.change)).length > 0;
      case "queue":
        if (change.change === "update" && !change.columns.includes("state")) return false;
        if (change.rows.some((row) => row["state"] === QueueItemState.ready || row["state"] === QueueItemState.suspect))
          return this.#addWork("items");
        return change.rows.some(
          (row) =>
            isQueued(row) && (row["state"] === QueueItemState.delayed || row["state"] === QueueItemState.stopped),
        );
      case "outbox":
        return this.#addWork("messages");
      case "schedules":
        return this.#addWork("schedules");
      case "queues":
        return this.#addWork("starts", "items");
      case "chunks":
        return true;
      case "journal":
        return change.rows.some((row) => ANSWERS.has(row["type"]));
      default:
        return false;
    }
  }

  /** change-notice.N1. A run that was only claimed is not announced. */
  #addRun(row: WireRow, change: "insert" | "update"): boolean {
    const isDue = isTurnClaimable(row["turn_due"] as number, row["turn_token"] as string | null | undefined);
    if (change === "insert") {
      if (row["turn_token"] !== null) return false;
      return isDue ? this.#addWork("turns") : this.#addWork("starts", "due");
    }
    if (row["status"] === "running" && row["turn_due"] !== TurnDue.yes) return false;
    if (isDue) this.#addWork("turns");
    this.runs.add(row["run"] as RunNumber);
    return true;
  }

  #addWork(...kinds: readonly WorkKind[]): true {
    for (const kind of kinds) this.work.add(kind);
    return true;
  }

  merge({ work, runs }: ChangeNotice): void {
    for (const kind of work) this.work.add(kind);
    for (const run of runs) this.runs.add(run);
  }
}

const RELEVANT_COLUMNS: ReadonlySet<string> = new Set(["status", "turn_due", "arrivals"]);
/** Entries that clients wait for, whatever the run's status. */
const ANSWERS: ReadonlySet<unknown> = new Set(["UpdateCompleted", "UpdateFailed"]);

/** The worker that claims a run must know its deadline. */
function isDeadline({ change, table, rows }: Change): boolean {
  return change === "insert" && table === "queue" && rows.some((row) => row["item"] === DEADLINE_ITEM);
}

/** Whether other items may wait for the slots of a deleted row. */
function freesSlots(table: string, row: WireRow): boolean {
  return (table === "queue" && isQueued(row)) || (table === "begun" && row["kind"] === "slots");
}

/** Whether the item has a named queue: other items may wait for its slot. */
function isQueued(row: WireRow): boolean {
  return typeof row["queue"] === "string";
}

export function encodeNotice({ work, runs }: ChangeNotice): string {
  const text = `${[...work].join()} ${[...runs].join()}`;
  return text.length > MAX_CHARACTERS ? ANYTHING : text;
}

/** change-notice.N2 */
export function decodeNotice(text: string): ChangeNotice | undefined {
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
