import { describe, expect, test } from "vitest";
import type { Clock, Timers } from "../base/index.ts";
import { silentLogger, type Logger } from "../kernel/index.ts";
import { ExchangeLoop, type Exchange } from "./exchange-loop.ts";

/** Time that moves only when the test says so. */
class ManualTime implements Timers, Clock {
  #now = 0;
  #due: { readonly at: number; readonly fn: () => void }[] = [];

  now = (): number => this.#now;
  monotonic = (): number => this.#now;

  set(ms: number, fn: () => void): () => void {
    const timer = { at: this.#now + ms, fn };
    this.#due.push(timer);
    return () => (this.#due = this.#due.filter((one) => one !== timer));
  }

  soon(fn: () => void): void {
    setImmediate(fn);
  }

  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settled();
      const [next] = this.#due.filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#now = next.at;
      this.#due = this.#due.filter((one) => one !== next);
      next.fn();
    }
    this.#now = until;
    await settled();
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function loopOf(...exchanges: readonly Exchange[]): { loop: ExchangeLoop; time: ManualTime; lines: string[] } {
  const time = new ManualTime();
  const lines: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    info: (line) => void lines.push(line),
    warn: (line) => void lines.push(line),
  };
  return { loop: new ExchangeLoop(exchanges, { clock: time, timers: time, logger }), time, lines };
}

describe("the exchange loop", () => {
  test("runs one exchange at a time, and once more for all wake-ups meanwhile", async () => {
    const running: PromiseWithResolvers<void>[] = [];
    const run = (): Promise<void> => {
      const next = Promise.withResolvers<void>();
      running.push(next);
      return next.promise;
    };
    const { loop } = loopOf({ name: "push hub", everyMs: undefined, run });
    loop.start();
    loop.wake(() => true);
    loop.wake(() => true);
    expect(running).toHaveLength(1);
    running[0]!.resolve();
    await settled();
    expect(running).toHaveLength(2);
    running[1]!.resolve();
    await settled();
    expect(running).toHaveLength(2);
    await loop.close();
  });

  test("tries a peer that fails later each time, and does not hold up the others", async () => {
    const failedAt: number[] = [];
    let others = 0;
    const { loop, time } = loopOf(
      {
        name: "pull hub",
        everyMs: 50,
        run: async () => {
          failedAt.push(time.now());
          throw new Error("gone");
        },
      },
      { name: "pull disk", everyMs: 50, run: async () => void (others += 1) },
    );
    loop.start();
    await time.advance(10_000);
    expect(failedAt).toEqual([0, 500, 1_500, 3_500, 7_500]);
    // A wake-up does not shorten the pause of a peer that fails.
    loop.wake(() => true);
    await time.advance(0);
    expect(failedAt).toHaveLength(5);
    expect(others).toBeGreaterThan(150);
    await time.advance(3_600_000);
    expect(failedAt.at(-1)! - failedAt.at(-2)!).toBe(60_000);
    await loop.close();
  });

  test("logs a failure at most once a minute, and that it works again", async () => {
    let isGone = true;
    const { loop, time, lines } = loopOf({
      name: "pull hub",
      everyMs: 1_000,
      run: async () => {
        if (isGone) throw new Error("gone");
      },
    });
    loop.start();
    await time.advance(50_000);
    expect(lines).toEqual(["federation: pull hub failed, trying again"]);
    await time.advance(60_000);
    expect(lines).toHaveLength(2);
    isGone = false;
    await time.advance(120_000);
    expect(lines.slice(2)).toEqual(["federation: pull hub works again"]);
    await loop.close();
  });

  test("ends what waits when it is closed, and starts nothing more", async () => {
    let starts = 0;
    const { loop, time, lines } = loopOf({
      name: "pull hub",
      everyMs: 1,
      run: (signal) => {
        starts += 1;
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
      },
    });
    loop.start();
    await loop.close();
    loop.wake(() => true);
    await time.advance(60_000);
    expect([starts, lines]).toEqual([1, []]);
  });
});
