// Mortal: a store and timers that die with the process they stand for.
//
// M1. After `kill` nothing more is written, nothing more fires, and nobody gets an answer: what a crash looks like from
//     inside. The store underneath stays open for the next process.

import type { Timers } from "../base/index.ts";
import type { OutcomeOf, Store, Write } from "../kernel/index.ts";

/** Stands between a process and its store; answers what `apply` answers, or never. */
export type Cut = (apply: () => Promise<readonly unknown[]>) => Promise<readonly unknown[]>;

export interface Mortal {
  readonly store: Store;
  readonly timers: Timers;
  kill(): void;
}

/** M1 */
export function createMortal(store: Store, timers: Timers, cut: Cut = (apply) => apply()): Mortal {
  let dead = false;
  const running = new Set<() => void>();
  const never = new Promise<never>(() => {});
  const mortal =
    <A extends readonly unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (dead) return never;
      try {
        const answer = await call.apply(store, args as unknown as [...A]);
        return dead ? await never : answer;
      } catch (error) {
        if (dead) return never;
        throw error;
      }
    };
  const write = mortal((writes: readonly Write[]) => cut(() => store.write(writes)));
  return {
    store: {
      now: () => store.now(),
      write: write as <const W extends readonly Write[]>(writes: W) => Promise<{ [K in keyof W]: OutcomeOf<W[K]> }>,
      registerWorker: mortal(store.registerWorker),
      renewLease: mortal(store.renewLease),
      releaseWorker: mortal(store.releaseWorker),
      reap: mortal(store.reap),
      findRun: mortal(store.findRun),
      listRuns: mortal(store.listRuns),
      readJournal: mortal(store.readJournal),
      readInbox: mortal(store.readInbox),
      pulse: mortal(store.pulse),
      hasChanged: () => !dead && store.hasChanged(),
      prune: mortal(store.prune),
      backup: mortal(store.backup),
      info: mortal(store.info),
      check: mortal(store.check),
      close: mortal(store.close),
    },
    timers: {
      set(ms, fn, options) {
        if (dead) return () => {};
        const cancel = timers.set(
          ms,
          () => {
            running.delete(cancel);
            fn();
          },
          options,
        );
        running.add(cancel);
        return () => {
          running.delete(cancel);
          cancel();
        };
      },
      soon: (fn) => timers.soon(() => dead || fn()),
    },
    kill() {
      dead = true;
      for (const cancel of running) cancel();
      running.clear();
    },
  };
}
