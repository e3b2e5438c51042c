// Progress: one line on standard error that overwrites itself while a long command runs, on terminals only.

const EVERY_MS = 80;
/** Work that takes less than this prints no progress. */
const QUIET_MS = 300;

export interface Progress {
  at(done: number, total: number): void;
  /** Clears the line. */
  end(): void;
}

const CLEAR = "\r\u001b[K";

/** Prints `checking … 200 of 1000 runs`; `nowMs` is any monotonic clock. */
export function createProgress(verb: string, unit: string, nowMs: () => number): Progress {
  if (!process.stderr.isTTY) return { at: () => {}, end: () => {} };
  let nextAt = nowMs() + QUIET_MS;
  let isDrawn = false;
  return {
    at(done, total) {
      const now = nowMs();
      if (now < nextAt) return;
      nextAt = now + EVERY_MS;
      isDrawn = true;
      const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
      process.stderr.write(`${CLEAR}${verb} … ${done} of ${total} ${unit} (${percent} %)`);
    },
    end() {
      if (isDrawn) process.stderr.write(CLEAR);
    },
  };
}
