// WakeUps: how processes notice each other's commits.
//
// U1. Polling is the truth: `look` says from time to time that something may have changed, whatever was heard.
// U2. A commit that may be of interest to others is told, some milliseconds' worth at once and never in its transaction, with
//     what it was (news.ts): nobody looks at what others did not touch.
// U3. While nothing happens looks become rare: an idle engine costs a few questions a second.

import type { ChangeNotice } from "../../kernel/index.ts";
import type { Backend, Change } from "./backend.ts";
import type { Links } from "./links.ts";
import { Gathered, newsIn, textOf } from "./news.ts";
import type { Waiting } from "./patience.ts";

/** U2 */
const TELL_MS = 20;
/** U1. Between looks, while something happens and when nothing does; further apart where others can be heard. */
const BUSY_LOOK_MS = 100;
const IDLE_LOOK_MS = 500;
const HEARD_LOOK_MS = 2_000;
/** Where time stands still (tests), looks are counted. */
const MAX_QUIET_LOOKS = 50;
/** How long something that happened makes looks frequent. */
const BUSY_MS = 5_000;

export class WakeUps {
  readonly #backend: Backend;
  readonly #links: Links;
  readonly #waiting: Waiting;
  /** What was heard since the last look; undefined: anything. */
  #heard: Gathered | undefined;
  #hasHeard = true;
  #news: ChangeNotice | undefined;
  #toTell = new Gathered();
  #onHeard: (() => void) | undefined;
  #quietLooks = 0;
  #seenAt: number | undefined;
  #isListening = false;
  #lookedAt: number;
  #newsAt = Number.NEGATIVE_INFINITY;
  #telling: Promise<void> | undefined;
  #hasMoreToTell = false;
  /** Ends the pause between two tellings. */
  #hurry: (() => void) | undefined;
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
      const heard = await this.#backend.listen((text) => this.#hear(text));
      this.#stopListening = () => heard.close();
      this.#isListening = true;
    } catch {
      this.#isListening = false;
    }
  }

  /** Calls back when something is heard. */
  onHeard(call: () => void): void {
    this.#onHeard = call;
  }

  #hear(text: string): void {
    const news = newsIn(text);
    if (news === undefined) this.#heard = undefined;
    else if (this.#hasHeard) this.#heard?.merge(news);
    else (this.#heard = new Gathered()).merge(news);
    this.#hasHeard = true;
    this.#newsAt = this.#waiting.clock.monotonic();
    this.#onHeard?.();
  }

  /** U1 */
  look(): boolean {
    const now = this.#waiting.clock.monotonic();
    const isBusy = now - this.#newsAt < BUSY_MS;
    const pause = this.#isListening ? HEARD_LOOK_MS : isBusy ? BUSY_LOOK_MS : IDLE_LOOK_MS;
    if (now === this.#seenAt) this.#quietLooks += 1;
    this.#seenAt = now;
    const isTime = now - this.#lookedAt >= pause || this.#quietLooks >= MAX_QUIET_LOOKS;
    if (!this.#hasHeard && !isTime) return false;
    this.#news = isTime ? undefined : this.#heard;
    this.#hasHeard = false;
    this.#heard = undefined;
    if (isTime) {
      this.#quietLooks = 0;
      this.#lookedAt = now;
    }
    return true;
  }

  /** What the last look was for. */
  takeNews(): ChangeNotice | undefined {
    return this.#news;
  }

  /** U2 */
  committed(changes: readonly Change[]): void {
    if (!this.#toTell.add(changes)) return;
    this.#newsAt = this.#waiting.clock.monotonic();
    // Where nobody can be told, nothing is kept to be told.
    if (this.#backend.notify === undefined) this.#toTell = new Gathered();
    else this.#hasMoreToTell = true;
    if (this.#hasMoreToTell && !this.#closed) this.#telling ??= this.#tell();
  }

  async #tell(): Promise<void> {
    while (this.#hasMoreToTell) {
      this.#hasMoreToTell = false;
      const text = textOf(this.#toTell);
      this.#toTell = new Gathered();
      await this.#links.use("small", ({ link }) => this.#backend.notify!(link, text)).catch(() => undefined);
      if (!this.#closed) await this.#pause();
    }
    this.#telling = undefined;
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#waiting.timers.set(TELL_MS, resolve, { ref: false });
      this.#hurry = () => {
        cancel();
        resolve();
      };
    });
  }

  /** U2. What this process did last is what others most need to hear of: it does not go on with it. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#hurry?.();
    await this.#telling;
    await this.#stopListening?.().catch(() => undefined);
  }
}
