// WakeUps: how processes notice each other's commits.
//
// U1. Polling is the truth: `look` says from time to time that something may have changed, whatever was heard.
// U2. A commit that may be of interest to others is told, some milliseconds' worth at once and never in its transaction. What
//     a process does with the turns it holds is nobody else's business.
// U3. While nothing happens looks become rare: an idle engine costs a few questions a second.

import type { Waiting } from "./patience.ts";
import type { Backend, Change, WireRow } from "./backend.ts";
import type { Links } from "./links.ts";

/** U2 */
const TELL_MS = 20;
/** U1. Between looks, while something happens and when nothing does; further apart where others can be heard. */
const BUSY_LOOK_MS = 100;
const IDLE_LOOK_MS = 1_000;
const HEARD_LOOK_MS = 2_000;
/** Where time stands still (tests), looks are counted. */
const MAX_QUIET_LOOKS = 50;
/** How long something that happened makes looks frequent. */
const BUSY_MS = 5_000;

export class WakeUps {
  readonly #backend: Backend;
  readonly #links: Links;
  readonly #waiting: Waiting;
  #heard = true;
  #quietLooks = 0;
  #isListening = false;
  #lookedAt: number;
  #newsAt = Number.NEGATIVE_INFINITY;
  #isTelling = false;
  #hasMoreToTell = false;
  #closed = false;
  #stopListening: (() => Promise<void>) | undefined;

  constructor(backend: Backend, links: Links, waiting: Waiting) {
    this.#backend = backend;
    this.#links = links;
    this.#waiting = waiting;
    this.#lookedAt = waiting.clock.monotonic();
  }

  /** Without it everything works, a little later. */
  async listen(): Promise<void> {
    if (this.#backend.listen === undefined) return;
    try {
      const heard = await this.#backend.listen(() => this.#hear());
      this.#stopListening = () => heard.close();
      this.#isListening = true;
    } catch {
      this.#isListening = false;
    }
  }

  #hear(): void {
    this.#heard = true;
    this.#newsAt = this.#waiting.clock.monotonic();
  }

  /** U1 */
  look(): boolean {
    const now = this.#waiting.clock.monotonic();
    const isBusy = now - this.#newsAt < BUSY_MS;
    const pause = this.#isListening ? HEARD_LOOK_MS : isBusy ? BUSY_LOOK_MS : IDLE_LOOK_MS;
    this.#quietLooks += 1;
    if (!this.#heard && now - this.#lookedAt < pause && this.#quietLooks < MAX_QUIET_LOOKS) return false;
    this.#heard = false;
    this.#quietLooks = 0;
    this.#lookedAt = now;
    return true;
  }

  /** U2 */
  committed(changes: readonly Change[]): void {
    if (!changes.some(isNews)) return;
    this.#newsAt = this.#waiting.clock.monotonic();
    if (this.#backend.notify === undefined || this.#closed) return;
    this.#hasMoreToTell = true;
    if (!this.#isTelling) void this.#tell();
  }

  async #tell(): Promise<void> {
    this.#isTelling = true;
    while (this.#hasMoreToTell && !this.#closed) {
      this.#hasMoreToTell = false;
      await this.#links.use("small", ({ link }) => this.#backend.notify!(link)).catch(() => undefined);
      await new Promise<void>((resolve) => void this.#waiting.timers.set(TELL_MS, resolve, { ref: false }));
    }
    this.#isTelling = false;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#stopListening?.().catch(() => undefined);
  }
}

/** U2. A run that begins or ends, a message, an item anybody may take. */
function isNews(change: Change): boolean {
  if (change.change === "delete") return false;
  switch (change.table) {
    case "runs":
      if (change.change === "insert") return change.rows.some((row) => row["turn_token"] === null);
      return change.columns.some((column) => RUN_NEWS.has(column)) && change.rows.some(isRunNews);
    case "queue":
      if (change.change === "update" && !change.columns.includes("state")) return false;
      return change.rows.some((row) => row["state"] === 1 || row["state"] === 4);
    case "outbox":
    case "schedules":
    case "queues":
    case "chunks":
      return true;
    default:
      return false;
  }
}

const RUN_NEWS: ReadonlySet<string> = new Set(["status", "turn_due", "arrivals"]);

/** Not one that was only claimed. */
function isRunNews(row: WireRow): boolean {
  return row["status"] !== "running" || row["turn_due"] === 1;
}
