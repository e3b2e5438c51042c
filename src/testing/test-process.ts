// Life: one process of the engine under test, from its start to its crash or its end.
//
// F1. Everything that can happen without time passing happens before time moves.
// F2. A function that has not answered although this thread has long had nothing to do waits for virtual time itself: an
//     attempt's timeout, or something the test does later. Time goes on without it. The time on the wall says nothing: on a
//     busy machine it passes while nobody could work.
// F3. The engine itself is waited for without a limit: it knows what it still has to do.

import { idleMs, RepriseError, systemRandom, systemTimers, type Timers } from "../base/index.ts";
import {
  loadEngineCore,
  queueNames,
  registryOf,
  runtimeText,
  type checkOutbox,
  type EngineCore,
} from "../engine/index.ts";
import type { AnyTask, Definition, Labels, Logger, Queue, Redaction, Store } from "../kernel/index.ts";
import type { GuardMode } from "../workflow/index.ts";
import { createCrashableStore, type WriteInterceptor, type CrashableStore } from "./crashable-store.ts";
import { operationStubs, withStubs, type Stub } from "./stub.ts";
import type { VirtualTime } from "./virtual-clock.ts";

/** What outlives a crash. */
export interface TestWorld {
  readonly time: VirtualTime;
  readonly store: Store;
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly stubs: readonly Stub[];
  readonly logger: Logger;
  readonly redaction: Redaction;
  readonly payloadLimit: number | undefined;
  readonly entryLimit: number | undefined;
  /** Whether runs are salted, as with a codec. */
  readonly salted: boolean;
  readonly works: boolean;
  readonly concurrency: number;
  readonly queues: readonly Queue[] | undefined;
  readonly labels: Labels;
  readonly leaseMs: number;
  readonly guard: GuardMode;
  readonly outbox: ReturnType<typeof checkOutbox>;
}

/** F2. Milliseconds without anything to do, and turns of the event loop they must be spread over at least. */
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
      guardMode: guard,
      heartbeats: false,
      polls: false,
      determinism: "strict",
      outbox,
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

  /** What is asked of a process that crashes is never answered; here the one who asked is told so. */
  orCrash<T>(asked: Promise<T>): Promise<T> {
    return Promise.race([asked, this.#crashed]);
  }

  /** Pulls the plug. */
  crash(): void {
    if (this.#hasCrashed) return;
    this.#hasCrashed = true;
    this.core.crash();
    this.#crashable.crash();
    this.#rejectCrashed(new CrashedError());
  }

  /** F1. False when a function is still at work (F2). */
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
      // What somebody does with what it was told, such as the test itself.
      await macrotask(this.#time.timers);
      quiet = this.#isSettled && worker.runningCount === 0 ? quiet + 1 : 0;
    }
    return true;
  }

  get #isSettled(): boolean {
    return this.core.worker.isSettled && !this.#crashable.hasPendingCalls;
  }

  /** F3 */
  async #engineSettled(): Promise<void> {
    while (!this.#isSettled) {
      await this.core.worker.settled();
      await this.#crashable.settled();
    }
  }

  /** Moves time from one due timer to the next, and everything in between settles. */
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

  /** Ends in good order; virtual time moves only when a function does not let go. */
  async end(ending: Promise<void>, graceMs: number): Promise<void> {
    if (!(await isPrompt(ending))) this.#time.advanceTo(this.#time.now() + graceMs);
    await ending;
  }
}

/** The engine crashed before it answered: what was asked may or may not have happened. */
export class CrashedError extends RepriseError {
  constructor() {
    super("ENGINE_CLOSED", "The engine crashed before it answered; what was asked may or may not have happened.");
  }
}

function macrotask(timers: Timers): Promise<void> {
  return new Promise((resolve) => timers.soon(resolve));
}

/** F2. Whether it settles before this thread has had nothing to do for long. */
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
