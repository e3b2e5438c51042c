// TestProcess: one process of the engine under test, from its start to its crash or its end.
//
// test-process.F1. All work that needs no time is done before time moves.
// test-process.F2. A user function that has not returned although this thread was idle for a while waits for virtual time (an attempt
//   timeout) or for a later action of the test: time moves without it. The wall clock does not count: on a busy machine it passes
//   while the thread had no chance to run.
// test-process.F3. The wait for the engine itself has no limit: the engine knows its pending work.

import { idleMs, RepriseError, systemRandom, systemTimers, type Timers } from "../base/index.ts";
import {
  loadEngineCore,
  queueNames,
  registryOf,
  runtimeText,
  type checkOutbox,
  type EngineCore,
} from "../engine/index.ts";
import type {
  AnyTask,
  Definition,
  Labels,
  Logger,
  Queue,
  Redaction,
  RetentionMs,
  Store,
  Telemetry,
} from "../kernel/index.ts";
import type { GuardMode } from "../workflow/index.ts";
import { createCrashableStore, type WriteInterceptor, type CrashableStore } from "./crashable-store.ts";
import { operationStubs, withStubs, type Stub } from "./stub.ts";
import type { VirtualTime } from "./virtual-clock.ts";

/** What survives a crash. */
export interface TestWorld {
  readonly time: VirtualTime;
  readonly store: Store;
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly stubs: readonly Stub[];
  readonly logger: Logger;
  readonly redaction: Redaction;
  readonly payloadLimit: number | undefined;
  readonly entryLimit: number | undefined;
  /** Whether runs get a salt, as with a codec. */
  readonly salted: boolean;
  readonly works: boolean;
  readonly concurrency: number;
  readonly queues: readonly Queue[] | undefined;
  readonly labels: Labels;
  readonly leaseMs: number;
  readonly memory?: number | undefined;
  readonly guard: GuardMode;
  readonly outbox: ReturnType<typeof checkOutbox>;
  readonly telemetry?: Telemetry | undefined;
  readonly retention: RetentionMs | undefined;
}

/** test-process.F2. The idle time in milliseconds, and the turns of the event loop it must span. */
const IDLE_MS = 100;
const IDLE_TURNS = 20;

export class TestProcess {
  readonly core: EngineCore;
  readonly #time: VirtualTime;
  readonly #crashable: CrashableStore;
  readonly #crashed: Promise<never>;
  #rejectCrashed!: (error: Error) => void;
  #hasCrashed = false;

  private constructor(Core: typeof EngineCore, world: TestWorld, intercept: WriteInterceptor | undefined) {
    const {
      time,
      store,
      definitions,
      stubs,
      logger,
      redaction,
      payloadLimit,
      entryLimit,
      salted,
      works,
      concurrency,
      leaseMs,
      guard,
      outbox,
      telemetry,
    } = world;
    const registry = registryOf(withStubs(definitions, stubs));
    const crashable = createCrashableStore(store, time.timers, intercept);
    this.#time = time;
    this.#crashable = crashable;
    this.#crashed = new Promise((_resolve, reject) => (this.#rejectCrashed = reject));
    this.#crashed.catch(() => {});
    this.core = new Core({
      store: crashable.store,
      timers: crashable.timers,
      random: systemRandom,
      registry,
      logger,
      redaction,
      payloadLimit,
      entryLimit,
      name: "test",
      host: "test",
      pid: 1,
      runtime: runtimeText(),
      newSalt: salted ? () => systemRandom.token() : undefined,
      works,
      concurrency,
      queues: queueNames(registry, world.queues),
      labels: world.labels,
      leaseMs,
      memory: world.memory,
      guardMode: guard,
      heartbeats: false,
      polls: false,
      determinism: "strict",
      outbox,
      telemetry,
      retention: world.retention,
      stubOperation: operationStubs(stubs),
    });
  }

  static async start(world: TestWorld, intercept?: WriteInterceptor): Promise<TestProcess> {
    const { EngineCore } = await loadEngineCore();
    const started = new TestProcess(EngineCore, world, intercept);
    await started.orCrash(started.core.begin());
    return started;
  }

  get hasCrashed(): boolean {
    return this.#hasCrashed;
  }

  /** Rejects with a CrashedError when the process crashes before the call settles. */
  orCrash<T>(asked: Promise<T>): Promise<T> {
    return Promise.race([asked, this.#crashed]);
  }

  /** Crashes the process. */
  crash(): void {
    if (this.#hasCrashed) return;
    this.#hasCrashed = true;
    this.core.crash();
    this.#crashable.crash();
    this.#rejectCrashed(new CrashedError());
  }

  /** test-process.F1. False when a user function is still running (test-process.F2). */
  async settle(): Promise<boolean> {
    const { worker } = this.core;
    for (let quiet = 0; quiet < 2;) {
      await this.orCrash(this.#engineSettled()).catch(() => {});
      if (this.#hasCrashed) return true;
      if (worker.runningCount > 0) {
        const isOver = await isPrompt(this.orCrash(worker.idle()));
        if (!isOver && this.#isSettled) return false;
        quiet = 0;
        continue;
      }
      // Callbacks of resolved promises, such as the test's own code.
      await macrotask(this.#time.timers);
      quiet = this.#isSettled && worker.runningCount === 0 ? quiet + 1 : 0;
    }
    return true;
  }

  /** Nothing of the engine is in progress, and no user function is running. */
  get isIdle(): boolean {
    return !this.#hasCrashed && this.#isSettled && this.core.worker.runningCount === 0;
  }

  /** The process has crashed, or a user function is running. */
  get isHeldUp(): boolean {
    return this.#hasCrashed || this.core.worker.runningCount > 0;
  }

  get #isSettled(): boolean {
    return this.core.worker.isSettled && !this.#crashable.hasPendingCalls;
  }

  /** test-process.F3 */
  async #engineSettled(): Promise<void> {
    while (!this.#isSettled) {
      await this.core.worker.settled();
      await this.#crashable.settled();
    }
  }

  /** Moves time from one due timer to the next, and lets all work settle in between. */
  async advanceTo(until: number): Promise<void> {
    for (;;) {
      await this.settle();
      if (this.#hasCrashed) return;
      const next = this.#time.nextAt();
      if (next === undefined || next > until) break;
      this.#time.advanceTo(Math.max(next, this.#time.now()));
    }
    if (this.#time.now() < until) this.#time.advanceTo(until);
    await this.settle();
  }

  /** Shuts down cleanly; virtual time moves only when a user function does not return. */
  async end(ending: Promise<void>, graceMs: number): Promise<void> {
    if (!(await isPrompt(ending))) this.#time.advanceTo(this.#time.now() + graceMs);
    await ending;
  }
}

/** The engine crashed before the call settled: its effects may or may not have been committed. */
export class CrashedError extends RepriseError {
  constructor() {
    super(
      "ENGINE_CLOSED",
      "The engine crashed before the call settled; its effects may or may not have been committed. Call again after `crash()` has resolved.",
    );
  }
}

function macrotask(timers: Timers): Promise<void> {
  return new Promise((resolve) => timers.soon(resolve));
}

/** test-process.F2. Whether the promise settles before this thread has been idle for a while. */
async function isPrompt(waited: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  const settled = waited.then(settle, settle);
  const before = idleMs();
  for (let turn = 0; !isSettled && (turn < IDLE_TURNS || idleMs() - before < IDLE_MS); turn += 1) {
    let cancel = (): void => {};
    const turned = new Promise<void>((resolve) => {
      cancel = systemTimers.set(IDLE_MS / IDLE_TURNS, resolve);
    });
    await Promise.race([settled, turned]);
    cancel();
  }
  return isSettled;
}
