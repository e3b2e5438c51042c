// CrashableStore: a store and timers that stop when their process crashes.
//
// crashable-store.M1. After `crash` nothing is written, no timer fires, and no call settles: what a crash looks like from inside.
//   The underlying store stays open for the next process.

import type { Timers } from "../base/index.ts";
import type { OutcomeOf, Store, TransactOutcome, Write } from "../kernel/index.ts";

/** Called for each batch of writes; returns the outcomes of `apply`, or never resolves. */
export type WriteInterceptor = (apply: () => Promise<readonly unknown[]>) => Promise<readonly unknown[]>;

/** The methods that answer with a promise and write nothing. */
type AsyncMethod = Exclude<
  keyof Store,
  "kind" | "now" | "write" | "transact" | "pollChanges" | "takeNotice" | "onNotice" | "pollsSeparately" | "pipeline"
>;

export interface CrashableStore {
  readonly store: Store;
  readonly timers: Timers;
  /** Whether calls of the store are pending. */
  readonly hasPendingCalls: boolean;
  /** Resolves when no call of the store is pending. */
  settled(): Promise<void>;
  crash(): void;
}

/** crashable-store.M1 */
export function createCrashableStore(
  store: Store,
  timers: Timers,
  intercept: WriteInterceptor = (apply) => apply(),
): CrashableStore {
  let hasCrashed = false;
  const running = new Set<() => void>();
  const never = new Promise<never>(() => {});
  let pending = 0;
  let waiters: (() => void)[] = [];
  const settleCall = (): void => {
    pending -= 1;
    if (pending > 0) return;
    for (const resolve of waiters) resolve();
    waiters = [];
  };
  const guard =
    <A extends readonly unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (hasCrashed) return never;
      pending += 1;
      try {
        const answer = await call(...args);
        return hasCrashed ? await never : answer;
      } catch (error) {
        if (hasCrashed) return never;
        throw error;
      } finally {
        settleCall();
      }
    };
  const pass = <K extends AsyncMethod>(key: K): Store[K] =>
    guard((...args: readonly unknown[]) =>
      (store[key] as (...args: readonly unknown[]) => Promise<unknown>)(...args),
    ) as Store[K];
  const write = guard((writes: readonly Write[]) => intercept(() => store.write(writes)));
  const transact = guard(async (...args: Parameters<Store["transact"]>) => {
    const [outcome] = await intercept(async () => [await store.transact(...args)]);
    return outcome as TransactOutcome;
  });
  return {
    store: {
      kind: store.kind,
      pollsSeparately: store.pollsSeparately === true,
      transact,
      now: () => store.now(),
      announce: (subscriptions) => store.announce(subscriptions),
      write: write as <const W extends readonly Write[]>(writes: W) => Promise<{ [K in keyof W]: OutcomeOf<W[K]> }>,
      registerWorker: pass("registerWorker"),
      renewLease: pass("renewLease"),
      listWorkers: pass("listWorkers"),
      readHeld: pass("readHeld"),
      releaseWorker: pass("releaseWorker"),
      reap: pass("reap"),
      readInputs: pass("readInputs"),
      readReadiness: pass("readReadiness"),
      findRun: pass("findRun"),
      countVersions: pass("countVersions"),
      listRuns: pass("listRuns"),
      countStatuses: pass("countStatuses"),
      readRunTimes: pass("readRunTimes"),
      listPromises: pass("listPromises"),
      readBudget: pass("readBudget"),
      readJournal: pass("readJournal"),
      readCheckpoints: pass("readCheckpoints"),
      findCheckpoint: pass("findCheckpoint"),
      findLabeledCheckpoint: pass("findLabeledCheckpoint"),
      readSteps: pass("readSteps"),
      readAttempts: pass("readAttempts"),
      readMemos: pass("readMemos"),
      openMemoKeys: pass("openMemoKeys"),
      listMemos: pass("listMemos"),
      clearMemos: pass("clearMemos"),
      isFederated: pass("isFederated"),
      setFederated: pass("setFederated"),
      readLog: pass("readLog"),
      logSize: pass("logSize"),
      listEnded: pass("listEnded"),
      noteEnded: pass("noteEnded"),
      readRuns: pass("readRuns"),
      readInbox: pass("readInbox"),
      readStream: pass("readStream"),
      readEmitted: pass("readEmitted"),
      readProgress: pass("readProgress"),
      readEnd: pass("readEnd"),
      readItemTokens: pass("readItemTokens"),
      readItems: pass("readItems"),
      readHolders: pass("readHolders"),
      readRunWork: pass("readRunWork"),
      countChildren: pass("countChildren"),
      readQueueUse: pass("readQueueUse"),
      ...(store.readDiskSpace !== undefined && { readDiskSpace: () => store.readDiskSpace!() }),
      readHistory: pass("readHistory"),
      listQueues: pass("listQueues"),
      readBacklog: pass("readBacklog"),
      pollChanges: () => !hasCrashed && store.pollChanges(),
      ...(store.takeNotice !== undefined && { takeNotice: () => store.takeNotice!() }),
      ...(store.onNotice !== undefined && {
        onNotice: (call: () => void) => store.onNotice!(() => hasCrashed || call()),
      }),
      ...(store.pipeline !== undefined && { pipeline: store.pipeline }),
      findSchedule: pass("findSchedule"),
      listSchedules: pass("listSchedules"),
      dueSchedules: pass("dueSchedules"),
      prune: pass("prune"),
      deleteRun: pass("deleteRun"),
      forget: pass("forget"),
      expire: pass("expire"),
      deleteUnusedKeys: pass("deleteUnusedKeys"),
      reserveKey: pass("reserveKey"),
      recordAnswer: pass("recordAnswer"),
      releaseKey: pass("releaseKey"),
      deleteOldAnswers: pass("deleteOldAnswers"),
      backup: pass("backup"),
      rekey: pass("rekey"),
      info: pass("info"),
      check: pass("check"),
      close: pass("close"),
    },
    timers: {
      set(ms, fn, options) {
        if (hasCrashed) return () => {};
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
      soon: (fn) => timers.soon(() => hasCrashed || fn()),
    },
    get hasPendingCalls() {
      return pending > 0;
    },
    settled: () => (pending === 0 ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve))),
    crash() {
      hasCrashed = true;
      for (const cancel of running) cancel();
      running.clear();
    },
  };
}
