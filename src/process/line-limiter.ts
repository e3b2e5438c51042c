// LineLimiter: admits the first log lines of a group, and counts the others.
//
// line-limiter.L1. A group logs at most `LINES` lines in `WINDOW_MS`. The lines that were held back become one line with their number,
//   at the end of that time or when the process stops.
// line-limiter.L2. There are at most `GROUPS` groups at a time; the lines of further ones share a group.

import type { EpochMs, Timers } from "../base/index.ts";

const LINES = 5;
const WINDOW_MS = 1_000;
const GROUPS = 100;
const OTHERS = "";

/** Logs one line about the lines that were held back. */
type Summary = (count: number) => void;

interface Window {
  readonly key: string;
  readonly until: EpochMs;
  readonly summarize: Summary;
  lines: number;
  heldBack: number;
}

export class LineLimiter {
  readonly #timers: Timers;
  readonly #now: () => EpochMs;
  readonly #summarizeOthers: Summary;
  readonly #windows = new Map<string, Window>();

  constructor(timers: Timers, now: () => EpochMs, summarizeOthers: Summary) {
    this.#timers = timers;
    this.#now = now;
    this.#summarizeOthers = summarizeOthers;
  }

  /** Whether the caller may log a line of this group. */
  admit(group: string, summarize: Summary): boolean {
    const now = this.#now();
    const window = this.#windowOf(group, summarize, now);
    if (window.lines < LINES) {
      window.lines += 1;
      return true;
    }
    window.heldBack += 1;
    // Not referenced: the summary must not keep a process alive. `flush` logs it when the process stops.
    if (window.heldBack === 1) this.#timers.set(window.until - now, () => this.#close(window), { ref: false });
    return false;
  }

  /** Logs what was held back. */
  flush(): void {
    for (const window of [...this.#windows.values()]) this.#close(window);
  }

  #windowOf(key: string, summarize: Summary, now: EpochMs): Window {
    const known = this.#windows.get(key);
    if (known !== undefined && now < known.until) return known;
    if (known !== undefined) this.#close(known);
    if (this.#windows.size >= GROUPS)
      for (const window of [...this.#windows.values()]) if (window.until <= now) this.#close(window);
    // line-limiter.L2
    if (this.#windows.size >= GROUPS && key !== OTHERS) return this.#windowOf(OTHERS, this.#summarizeOthers, now);
    const window: Window = { key, until: now + WINDOW_MS, summarize, lines: 0, heldBack: 0 };
    this.#windows.set(key, window);
    return window;
  }

  #close(window: Window): void {
    if (this.#windows.get(window.key) !== window) return;
    this.#windows.delete(window.key);
    if (window.heldBack > 0) window.summarize(window.heldBack);
  }
}
