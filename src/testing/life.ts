// Life: one process of the engine under test, from its start to its crash or its end.
//
// F1. Everything that can happen without time passing happens before time moves.
// F2. A function that has not answered after a little real time waits for virtual time itself: an attempt's timeout, or
//     something the test does later. Time goes on without it. The engine itself is given longer: on a busy machine it may
//     need more, and time must not run away from it.

import { RepriseError, systemRandom, systemTimers, type Timers } from "../base/index.ts";
import { EngineCore, queueNames, registryOf, runtimeText, type checkOutbox, type Redaction } from "../engine/index.ts";
import type { AnyTask, Definition, Logger, Queue, Store } from "../kernel/index.ts";
import type { GuardMode } from "../workflow/index.ts";
import { createMortal, type Cut } from "./mortal.ts";
import { operationStubs, withStubs, type Stub } from "./stub.ts";
import type { VirtualTime } from "./virtual-clock.ts";

/** What outlives a crash. */
export interface World {
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
  readonly leaseMs: number;
  readonly guard: GuardMode;
  readonly outbox: ReturnType<typeof checkOutbox>;
}

/** F2. Real milliseconds. */
const PATIENCE_MS = 100;
/** F2. How often the engine is waited for when no function is at work. */
const MAX_WAITS = 50;

export class Life {
  readonly core: EngineCore;
  readonly #time: VirtualTime;
  readonly #kill: () => void;
  readonly #crashed: Promise<never>;
  #tellCrashed!: (error: Error) => void;
  #isOver = false;

  private constructor(world: World, cut: Cut | undefined) {
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
    const mortal = createMortal(store, time.timers, cut);
    this.#time = time;
    this.#kill = () => mortal.kill();
    this.#crashed = new Promise((_resolve, reject) => (this.#tellCrashed = reject));
    this.#crashed.catch(() => {});
    this.core = new EngineCore({
      store: mortal.store,
      timers: mortal.timers,
      random: systemRandom,
      registry,
      logger,
      redaction,
      payloadLimit,
      entryLimit,
      name: "test",
      runtime: runtimeText(),
      newSalt: salted ? () => systemRandom.token() : undefined,
      works,
      concurrency,
      queues: queueNames(registry, world.queues),
      leaseMs,
      guardMode: guard,
      heartbeats: false,
      polls: false,
      determinism: "strict",
      outbox,
      stubOperation: operationStubs(stubs),
    });
  }

  static async begin(world: World, cut?: Cut): Promise<Life> {
    const life = new Life(world, cut);
    await life.answer(life.core.begin());
    return life;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** What is asked of a process that crashes is never answered; here the one who asked is told so. */
  answer<T>(asked: Promise<T>): Promise<T> {
    return Promise.race([asked, this.#crashed]);
  }

  /** Pulls the plug. */
  crash(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.core.crash();
    this.#kill();
    this.#tellCrashed(new Crashed());
  }

  /** F1. False when a function is still at work (F2). */
  async settle(): Promise<boolean> {
    const { worker } = this.core;
    for (let quiet = 0, waits = 0; quiet < 2;) {
      if (this.#isOver) return true;
      if (!(await withPatience(this.answer(worker.settled())))) {
        if (worker.atWork > 0 || ++waits === MAX_WAITS) return false;
        continue;
      }
      // What somebody does with what it was told, such as the test itself.
      await macrotask(this.#time.timers);
      quiet = worker.pump.isQuiet ? quiet + 1 : 0;
    }
    return true;
  }

  /** Moves time from one due timer to the next, and everything in between settles. */
  async advanceTo(until: number): Promise<void> {
    for (;;) {
      await this.settle();
      if (this.#isOver) return;
      const next = this.#time.nextAt();
      if (next === undefined || next > until) break;
      this.#time.advanceTo(Math.max(next, this.#time.now()));
    }
    if (this.#time.now() < until) this.#time.advanceTo(until);
    await this.settle();
  }

  /** Ends in good order; virtual time moves only when a function does not let go. */
  async end(ending: Promise<void>, graceMs: number): Promise<void> {
    if (!(await withPatience(ending))) this.#time.advanceTo(this.#time.now() + graceMs);
    await ending;
  }
}

/** The engine crashed before it answered: what was asked may or may not have happened. */
export class Crashed extends RepriseError {
  constructor() {
    super("ENGINE_CLOSED", "The engine crashed before it answered; what was asked may or may not have happened.");
  }
}

function macrotask(timers: Timers): Promise<void> {
  return new Promise((resolve) => timers.soon(resolve));
}

/** Whether it settled within F2's patience. */
async function withPatience(waited: Promise<unknown>): Promise<boolean> {
  let cancel = (): void => {};
  const tooLong = new Promise<boolean>((resolve) => {
    cancel = systemTimers.set(PATIENCE_MS, () => resolve(false));
  });
  try {
    return await Promise.race([
      waited.then(
        () => true,
        () => true,
      ),
      tooLong,
    ]);
  } finally {
    cancel();
  }
}
