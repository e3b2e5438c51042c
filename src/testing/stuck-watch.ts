// Stuck watch: rejects a result that a test awaits and that cannot come without the test.
//
// stuck-watch.K1. A result is rejected only if nothing is left that could continue by itself: the engine is settled, no user
//   function runs, no other call of the test is open, and the process waits for nothing outside: no timer, file or socket.
// stuck-watch.K2. The test may be about to act, so its thread must have been idle for a while. As in test-process.F2, the wall clock
//   does not count.
// stuck-watch.K3. Only a result that the test awaits is rejected. In doubt it stays pending: a result that is rejected too early is
//   worse than a test that times out.

import { activeResources, idleMs, systemTimers } from "../base/index.ts";

/** stuck-watch.K2. The idle time in milliseconds, and the turns of the event loop it must span. */
const IDLE_MS = 100;
const IDLE_TURNS = 20;
/** The longest pause after a check that found something moving. */
const MAX_PAUSE_MS = 100;

/** What every process of a test runner has open: its output, and the channel to its parent. */
const ALWAYS_OPEN: ReadonlySet<string> = new Set(["MessagePort", "PipeWrap", "SignalWrap", "TTYWrap"]);

interface AwaitedResult {
  readonly id: string;
  readonly reject: (error: Error) => void;
}

/** The pending timers of all watches in this process. */
let ownTimers = 0;

export class StuckWatch {
  readonly #isBusy: () => boolean;
  readonly #isHeldUp: () => boolean;
  readonly #explain: (id: string) => Promise<Error>;
  readonly #waiting = new Set<AwaitedResult>();
  #isWatching = false;
  /** Changes with every call of the test. */
  #activity = 0;

  /**
   * `isHeldUp`: the engine has crashed, or a user function has not returned. `explain` says why the result of a run cannot come.
   */
  constructor(isBusy: () => boolean, isHeldUp: () => boolean, explain: (id: string) => Promise<Error>) {
    this.#isBusy = isBusy;
    this.#isHeldUp = isHeldUp;
    this.#explain = explain;
  }

  /** The test has called the engine. */
  noteCall(): void {
    this.#activity += 1;
  }

  /** The engine is closed: nothing is rejected any more. */
  close(): void {
    this.#waiting.clear();
  }

  /** The same result. Once the test awaits it, it is rejected if it cannot come. */
  watch<T>(id: string, result: Promise<T>): Promise<T> {
    const stuck = Promise.withResolvers<never>();
    const waiting = { id, reject: stuck.reject };
    let isSettled = false;
    const settled = Promise.race([result, stuck.promise]).finally(() => {
      isSettled = true;
      this.#waiting.delete(waiting);
    });
    return new AwaitedPromise(settled, () => {
      this.noteCall();
      if (isSettled) return;
      this.#waiting.add(waiting);
      void this.#watch();
    });
  }

  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    try {
      let tries = 0;
      while (this.#waiting.size > 0) {
        if (!(await this.#isQuiet())) {
          // A result may stay pending for as long as the process lives: the checks must not cost more than now and then.
          tries = Math.min(MAX_PAUSE_MS, tries + 1);
          await nextTurn(!this.#isHeldUp() || waitsForOutside(), tries);
          continue;
        }
        const activity = this.#activity;
        for (const waiting of [...this.#waiting]) {
          // Without an explanation the error says why: the store may have been closed meanwhile, and then nothing waits.
          const error = await this.#explain(waiting.id).catch((failed: Error) => failed);
          if (activity === this.#activity && this.#waiting.has(waiting)) waiting.reject(error);
        }
      }
    } finally {
      this.#isWatching = false;
    }
  }

  /** stuck-watch.K1, stuck-watch.K2. False as soon as anything moves. */
  async #isQuiet(): Promise<boolean> {
    const before = idleMs();
    const activity = this.#activity;
    for (let turn = 0; turn < IDLE_TURNS || idleMs() - before < IDLE_MS; turn += 1) {
      await nextTurn(!this.#isHeldUp() || waitsForOutside());
      if (this.#waiting.size === 0 || activity !== this.#activity || this.#isBusy() || waitsForOutside()) return false;
    }
    return true;
  }
}

/** stuck-watch.K3. Says when it is awaited: until then the test does something else, and nothing may be rejected. */
class AwaitedPromise<T> extends Promise<T> {
  readonly #onAwait: () => void;

  constructor(promise: Promise<T>, onAwait: () => void) {
    super((resolve) => resolve(promise));
    this.#onAwait = onAwait;
  }

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // `await` calls it, too, because the constructor of this promise is not Promise.
  override then<A = T, B = never>(
    onResolved?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#onAwait();
    return super.then(onResolved, onRejected);
  }
}

function waitsForOutside(): boolean {
  const timers = activeResources().filter((name) => name === "Timeout").length;
  return timers > ownTimers || activeResources().some((name) => name !== "Timeout" && !ALWAYS_OPEN.has(name));
}

/**
 * Keeps the process alive on the way to a verdict: without a parent, Node would end it before. A result that a crashed engine or
 * a function that never returns leaves pending must not keep it alive.
 */
function nextTurn(keepAlive: boolean, ms = IDLE_MS / IDLE_TURNS): Promise<void> {
  const own = keepAlive ? 1 : 0;
  ownTimers += own;
  return new Promise((resolve) => {
    const turn = (): void => {
      ownTimers -= own;
      resolve();
    };
    systemTimers.set(ms, turn, { ref: keepAlive });
  });
}
