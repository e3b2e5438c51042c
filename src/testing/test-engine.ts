// TestEngine: the engine itself under virtual time, on a store of its own, with a plug that can be pulled.
//
// G1. Time moves only by `clock.advance` and `crash`; thirty days take milliseconds.
// G2. Handles and awaited results outlive a crash: they go on with the next process on the same store.

import { checkCodec, RepriseError, systemRandom, systemTimers, toMs, type Duration } from "../base/index.ts";
import {
  AbortableGenerator,
  checkOutbox,
  checkLimits,
  DEFAULT_CONCURRENCY,
  guardMode,
  onAbort,
  unlessAborted,
  type Client,
  type DefinitionsIn,
  type Engine,
  type EngineOptions,
  type RunFilter,
  type QueueHandle,
  type QueueInfo,
  type ResultOptions,
  type Run,
  type RunInfo,
  type ScheduleHandle,
  type ScheduleInfo,
  type StreamChunk,
  type WorkerSettings,
} from "../engine/index.ts";
import {
  checkRedact,
  Labels,
  type AnyTask,
  type Definition,
  type JournalEntry,
  type Logger,
  type Queue,
  type Store,
} from "../kernel/index.ts";
import { storeOf } from "../stores/index.ts";
import type { Replay } from "../workflow/index.ts";
import { Crashed, TestProcess, type TestWorld } from "./test-process.ts";
import type { WriteInterceptor } from "./crashable-store.ts";
import type { Stub } from "./stub.ts";
import { createVirtualTime, type VirtualTime } from "./virtual-clock.ts";

/** Options of `createTestEngine`. */
export interface TestEngineOptions<Defs> extends Partial<Omit<EngineOptions<Defs>, "definitions" | "worker">> {
  definitions: readonly Defs[];
  /** How the worker executes runs; `false` executes none, as a client does. */
  worker?: false | WorkerSettings;
  /** Called instead of tasks and operations. */
  stubs?: readonly Stub[];
  /** Where virtual time begins. */
  now?: Date;
}

/** An engine whose time stands still until the test moves it. */
export interface TestEngine<Defs extends Definition = Definition> extends Engine<Defs> {
  readonly clock: {
    now(): Date;
    /** Moves time from one due timer to the next; everything each of them causes has happened when this resolves. */
    advance(by: Duration): Promise<void>;
  };
  /** Kills the process as `kill -9` does and starts another on the same store, after the lease has run out. */
  crash(): Promise<void>;
}

const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
const DEFAULT_LEASE_MS = 1_000;
const GRACE_MS = 10_000;

async function createWorld(options: TestEngineOptions<Definition | AnyTask>): Promise<TestWorld> {
  const settings = options.worker === false ? {} : (options.worker ?? {});
  const time = createVirtualTime(options.now?.getTime());
  const store = await openStore(time, options);
  return {
    time,
    store,
    definitions: options.definitions,
    stubs: options.stubs ?? [],
    logger: options.logger ?? silent,
    redaction: checkRedact(options.redact),
    ...checkLimits(options.limits),
    salted: options.codec !== undefined,
    works: options.worker !== false,
    concurrency: settings.concurrency ?? DEFAULT_CONCURRENCY,
    guard: guardMode(options.guard),
    queues: settings.queues,
    labels: Labels.of(settings.labels ?? "any"),
    outbox: checkOutbox(options.outbox),
    leaseMs: settings.lease === undefined ? DEFAULT_LEASE_MS : toMs(settings.lease, "worker.lease"),
  };
}

/** Its clock is virtual; waiting for another connection's lock is not. */
function openStore(
  time: VirtualTime,
  options: Pick<EngineOptions<never>, "codec" | "durability"> & { store?: unknown },
): Promise<Store> {
  return storeOf(options.store ?? "sqlite::memory:")["~open"]({
    clock: time.clock,
    timers: systemTimers,
    random: systemRandom,
    durability: options.durability ?? "full",
    codec: checkCodec(options.codec),
    time: "given",
  });
}

/**
 * Makes an engine for tests: virtual time, an in-memory store, stubs, and `crash()`.
 *
 * @example
 * ```ts
 * import { task, workflow } from "reprise";
 * import { createTestEngine, stub } from "reprise/testing";
 * const remind = task("remind", async (_ctx, to: string) => ({ sent: to }));
 * const trial = workflow("trial", async (ctx, user: string) => {
 *   await ctx.sleep("30 days");
 *   return ctx.task(remind, user);
 * });
 * await using engine = await createTestEngine({
 *   definitions: [trial, remind],
 *   stubs: [stub(remind, (to) => ({ sent: to.toUpperCase() }))],
 * });
 * const run = await engine.start(trial, "ann");
 * await engine.clock.advance("30 days");
 * console.log((await run.result()).sent);
 * ```
 */
export async function createTestEngine<const Defs extends Definition | AnyTask>(
  options: TestEngineOptions<Defs>,
): Promise<TestEngine<DefinitionsIn<Defs>>> {
  const world = await createWorld(options as TestEngineOptions<Definition | AnyTask>);
  try {
    const engine = await TestEngineFacade.on(world);
    return engine as unknown as TestEngine<DefinitionsIn<Defs>>;
  } catch (error) {
    await world.store.close();
    throw error;
  }
}

export class TestEngineFacade implements TestEngine {
  readonly #world: TestWorld;
  #life: TestProcess;
  /** The life after this one, once it has begun. */
  #nextLife = Promise.withResolvers<void>();
  /** Time is moved by one caller at a time. */
  #moving: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;
  /** In a life after a crash, what was said before may have been heard. */
  readonly #forgiving: boolean;

  private constructor(world: TestWorld, life: TestProcess, forgiving: boolean) {
    this.#world = world;
    this.#life = life;
    this.#forgiving = forgiving;
  }

  static async on(
    world: TestWorld,
    options: { cut?: WriteInterceptor; forgiving?: boolean } = {},
  ): Promise<TestEngineFacade> {
    return new TestEngineFacade(world, await TestProcess.begin(world, options.cut), options.forgiving ?? false);
  }

  get "~store"(): Store {
    return this.#world.store;
  }

  get life(): TestProcess {
    return this.#life;
  }

  readonly clock = {
    now: (): Date => new Date(this.#world.time.now()),
    advance: (by: Duration): Promise<void> => {
      const ms = toMs(by, "clock.advance");
      return this.#move((life) => life.advanceTo(this.#world.time.now() + ms));
    },
  };

  #move(how: (life: TestProcess) => Promise<void>): Promise<void> {
    const moved = this.#moving.then(() => how(this.#life));
    this.#moving = moved.catch(() => {});
    return moved;
  }

  crash(): Promise<void> {
    const { time, leaseMs } = this.#world;
    // At once, not when it is its turn: an advance under way must not outlive the process.
    this.#life.crash();
    return this.#move(async () => {
      time.advanceTo(time.now() + leaseMs);
      this.#life = await TestProcess.begin(this.#world);
      this.#nextLife.resolve();
      this.#nextLife = Promise.withResolvers();
      await this.#life.settle();
    });
  }

  start: Client["start"] = async (what: Definition | string, ...args: readonly unknown[]): Promise<any> => {
    const run = await this.#ask((life) => (life.core.start as AnyStart)(what, ...args));
    return this.#handle(what, run.id);
  };

  get: Client["get"] = (what: Definition | string, id: string): any => {
    this.#life.core.get(what, id);
    return this.#handle(what, id);
  };

  #ask<T>(ask: (life: TestProcess) => Promise<T>): Promise<T> {
    return this.#life.answer(ask(this.#life));
  }

  find(id: string): Promise<RunInfo | undefined> {
    return this.#ask((life) => life.core.find(id));
  }

  bulk: Client["bulk"] = (action, filter, options) => this.#ask((life) => life.core.bulk(action, filter, options));

  list(filter?: RunFilter): AsyncIterable<RunInfo> {
    return this.#life.core.list(filter);
  }

  schedule: Client["schedule"] = async (...args: Parameters<Client["schedule"]>): Promise<ScheduleHandle> => {
    const { name } = await this.#ask((life) => life.core.schedule(...args));
    return this.#scheduleHandle(name);
  };

  getSchedule(name: string): ScheduleHandle {
    return this.#scheduleHandle(this.#life.core.getSchedule(name).name);
  }

  findSchedule(name: string): Promise<ScheduleInfo | undefined> {
    return this.#ask((life) => life.core.findSchedule(name));
  }

  listSchedules(): AsyncIterable<ScheduleInfo> {
    return this.#life.core.listSchedules();
  }

  /** G2 */
  #scheduleHandle(name: string): ScheduleHandle {
    const on = <T>(ask: (schedule: ScheduleHandle) => Promise<T>): Promise<T> =>
      this.#ask((life) => ask(life.core.getSchedule(name)));
    return {
      name,
      info: () => on((schedule) => schedule.info()),
      pause: () => on((schedule) => schedule.pause()),
      resume: () => on((schedule) => schedule.resume()),
      trigger: () => on((schedule) => schedule.trigger()),
      backfill: (from, to) => on((schedule) => schedule.backfill(from, to)),
      remove: () => on((schedule) => schedule.remove()),
    };
  }

  findQueue(queue: Queue | string): Promise<QueueInfo | undefined> {
    return this.#ask((life) => life.core.findQueue(queue));
  }

  listQueues(): AsyncIterable<QueueInfo> {
    return this.#life.core.listQueues();
  }

  getQueue(queue: Queue | string): QueueHandle {
    const handle = (life: TestProcess): QueueHandle => life.core.getQueue(queue);
    return {
      name: handle(this.#life).name,
      pause: () => this.#ask((life) => handle(life).pause()),
      resume: () => this.#ask((life) => handle(life).resume()),
      limit: (limits) => this.#ask((life) => handle(life).limit(limits)),
    };
  }

  drain(options: { grace?: Duration } = {}): Promise<void> {
    const graceMs = graceOf(options);
    return this.#life.end(this.#life.core.drain({ grace: graceMs }), graceMs);
  }

  close(options: { grace?: Duration } = {}): Promise<void> {
    const graceMs = graceOf(options);
    this.#closing ??= this.#moving.then(() => this.#life.end(this.#life.core.close({ grace: graceMs }), graceMs));
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #handle(what: Definition | string, id: string): Run<any> {
    const handle = (life: TestProcess): Run<any> => life.core.get(what, id);
    const tell = (ask: (run: Run<any>) => Promise<void>): Promise<void> =>
      this.#ask((life) => ask(handle(life))).catch((error: unknown) => {
        if (!this.#forgiving || !isHeardBefore(error)) throw error;
      });
    return {
      id,
      result: (options) => this.#result(handle, options),
      info: () => this.#ask((life) => handle(life).info()),
      signal: (name: string, ...value: readonly unknown[]) => tell((run) => (run.signal as AnyTell)(name, ...value)),
      resolve: (name: string, ...value: readonly unknown[]) => tell((run) => (run.resolve as AnyTell)(name, ...value)),
      reject: (name: never, error: Error, options) => tell((run) => run.reject(name, error, options)),
      query: (name: string, ...args: readonly unknown[]) =>
        this.#ask((life) => (handle(life).query as AnyAsk)(name, ...args)),
      update: (name: string, ...args: readonly unknown[]) =>
        this.#ask((life) => (handle(life).update as AnyAsk)(name, ...args)),
      cancel: (reason) => tell((run) => run.cancel(reason)),
      terminate: (reason) => tell((run) => run.terminate(reason)),
      pause: () => tell((run) => run.pause()),
      retry: () => tell((run) => run.retry()),
      resume: () => tell((run) => run.resume()),
      stream: (name: never, options) => {
        // Checks the arguments now, as every engine does.
        handle(this.#life).stream(name, options);
        return new AbortableGenerator(options?.signal, (left) => this.#stream(handle, name, options?.after, left));
      },
      scheduler: () => this.#ask((life) => handle(life).scheduler()),
      journal: (options): AsyncIterable<JournalEntry> => handle(this.#life).journal(options),
      checkpoints: (options) => handle(this.#life).checkpoints(options),
      checkpoint: (at) => this.#ask((life) => handle(life).checkpoint(at)),
      stateAt: (at) => this.#ask((life) => handle(life).stateAt(at)),
      fork: async (options) => this.#handle(what, (await this.#ask((life) => handle(life).fork(options))).id),
      diff: (other, options) => this.#ask((life) => handle(life).diff(other, options)),
      ...{ "~handle": () => handle(this.#life) },
      replay: (options): Promise<Replay> => this.#ask((life) => handle(life).replay(options)),
      verify: (options): Promise<Replay> => this.#ask((life) => handle(life).verify(options)),
    };
  }

  /** G2 */
  async *#stream(
    handle: (life: TestProcess) => Run<any>,
    name: never,
    from: number | undefined,
    left: AbortSignal,
  ): AsyncGenerator<StreamChunk<never>, void, undefined> {
    for (let after = from; !left.aborted;) {
      const life = this.#life;
      const next = this.#nextLife.promise;
      const chunks = handle(life).stream(name, after === undefined ? {} : { after });
      const removeAbort = onAbort(left, () => void chunks.return());
      try {
        for (;;) {
          const { done, value } = await life.answer(chunks.next());
          if (done === true) return;
          yield value;
          after = value.offset;
        }
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
      } finally {
        removeAbort();
        // A crashed process never answers.
        void chunks.return();
      }
      await unlessAborted(left, next).catch(() => {});
    }
  }

  /** G2 */
  async #result(handle: (life: TestProcess) => Run<any>, options: ResultOptions = {}): Promise<any> {
    const { time } = this.#world;
    const { signal } = options;
    const until = options.timeout === undefined ? undefined : time.now() + toMs(options.timeout, "result: timeout");
    for (;;) {
      const life = this.#life;
      const next = this.#nextLife.promise;
      const timeout = until === undefined ? {} : { timeout: Math.max(0, until - time.now()) };
      try {
        return await life.answer(handle(life).result({ ...timeout, ...(signal && { signal }) }));
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
      }
      await unlessAborted(signal, next);
    }
  }
}

type AnyAsk = (name: string, ...args: readonly unknown[]) => Promise<never>;
type AnyTell = (name: string, ...value: readonly unknown[]) => Promise<void>;
type AnyStart = (what: Definition | string, ...args: readonly unknown[]) => Promise<Run<any>>;

function graceOf(options: { grace?: Duration }): number {
  return options.grace === undefined ? GRACE_MS : toMs(options.grace, "grace");
}

function isHeardBefore(error: unknown): boolean {
  return error instanceof RepriseError && (error.code === "PROMISE_ALREADY_RESOLVED" || error.code === "RUN_ENDED");
}
