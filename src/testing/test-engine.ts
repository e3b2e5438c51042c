// TestEngine: the real engine with virtual time, on its own store, with simulated crashes.
//
// test-engine.G1. Only `clock.advance` and `crash` move time; thirty days take milliseconds.
// test-engine.G2. Handles and pending results survive a crash: they continue with the next process on the same store.
// test-engine.G3. A result that cannot come without the test is rejected with what the run waits for (stuck-watch.ts).

import {
  checkOptionNames,
  checkCodec,
  RepriseError,
  requireRealTime,
  systemRandom,
  systemTimers,
  toMs,
  type Duration,
} from "../base/index.ts";
import {
  abortable,
  AbortableGenerator,
  checkLogger,
  checkMemory,
  checkOutbox,
  checkTelemetry,
  checkLimits,
  DEFAULT_CONCURRENCY,
  guardMode,
  checkSignal,
  onAbort,
  openUnlessAborted,
  runAccessOf,
  unlessAborted,
  waitFor,
  type Client,
  type CloseOptions,
  type DefinitionsIn,
  type Engine,
  type EngineOptions,
  type OpenPromiseFilter,
  type OpenPromiseInfo,
  type RunFilter,
  type QueueHandle,
  type QueueInfo,
  type ResultOptions,
  type Run,
  type RunAccess,
  type RunInfo,
  type ScheduleHandle,
  type ScheduleInfo,
  type StreamChunk,
  type WaitOptions,
  type WorkerSettings,
} from "../engine/index.ts";
import {
  checkRedact,
  checkRetention,
  Labels,
  type AnyTask,
  type Definition,
  type JournalEntry,
  type Queue,
  type Store,
} from "../kernel/index.ts";
import { storeOf } from "../stores/index.ts";
import type { Replay } from "../workflow/index.ts";
import { CrashedError, TestProcess, type TestWorld } from "./test-process.ts";
import { nameWaits } from "./name-waits.ts";
import { StuckWatch } from "./stuck-watch.ts";
import type { WriteInterceptor } from "./crashable-store.ts";
import type { Stub } from "./stub.ts";
import { createVirtualTime, type VirtualTime } from "./virtual-clock.ts";

/** Options of `createTestEngine`. */
export interface TestEngineOptions<Defs> extends Partial<Omit<EngineOptions<Defs>, "definitions" | "worker">> {
  definitions: readonly Defs[];
  /** How the worker executes runs; `false` executes none, as a client does. */
  worker?: false | WorkerSettings;
  /** Functions that replace tasks and operations. */
  stubs?: readonly Stub[];
  /** The initial virtual time. */
  now?: Date;
}

/** An engine whose clock moves only when the test advances it. */
export interface TestEngine<Defs extends Definition = Definition> extends Engine<Defs> {
  readonly clock: {
    now(): Date;
    /** Moves time from one due timer to the next; when it resolves, all resulting work is done. */
    advance(by: Duration, options?: WaitOptions): Promise<void>;
  };
  /** Crashes the engine as `kill -9` does, lets the lease expire, and starts the next process on the same store. */
  crash(): Promise<void>;
}

const DEFAULT_LEASE_MS = 1_000;
const GRACE_MS = 10_000;

async function createWorld(options: TestEngineOptions<Definition | AnyTask>): Promise<TestWorld> {
  requireRealTime("createTestEngine");
  const settings = options.worker === false ? {} : (options.worker ?? {});
  const time = createVirtualTime(options.now?.getTime());
  const store = await openStore(time, options);
  return {
    time,
    store,
    definitions: options.definitions,
    stubs: options.stubs ?? [],
    logger: checkLogger(options.logger ?? false),
    redaction: checkRedact(options.redact),
    ...checkLimits(options.limits),
    salted: options.codec !== undefined,
    works: options.worker !== false,
    concurrency: settings.concurrency ?? DEFAULT_CONCURRENCY,
    guard: guardMode(options.guard),
    queues: settings.queues,
    labels: Labels.of(settings.labels ?? "any"),
    outbox: checkOutbox(options.outbox),
    telemetry: checkTelemetry(options.telemetry),
    retention: options.retention === undefined ? undefined : checkRetention(options.retention, "createTestEngine"),
    memory: checkMemory(settings.memory),
    leaseMs: settings.lease === undefined ? DEFAULT_LEASE_MS : toMs(settings.lease, "worker.lease"),
  };
}

/** The store's clock is virtual; its timers are real, because it waits for locks in real time. */
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
 * Creates an engine for tests, with virtual time, an in-memory store, stubs, and `crash()`.
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
  const open = async (): Promise<CrashableTestEngine> => {
    const world = await createWorld(options as TestEngineOptions<Definition | AnyTask>);
    try {
      return await CrashableTestEngine.on(world);
    } catch (error) {
      await world.store.close();
      throw error;
    }
  };
  const signal = checkSignal(options.signal, "createTestEngine");
  return (await openUnlessAborted(signal, open)) as unknown as TestEngine<DefinitionsIn<Defs>>;
}

export class CrashableTestEngine implements TestEngine {
  readonly #world: TestWorld;
  #process: TestProcess;
  /** Resolves when the next process has started. */
  #nextProcess = Promise.withResolvers<void>();
  /** Only one call at a time moves the clock. */
  #moving: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;
  /** After a crash, a repeated message may have been delivered before: its error is ignored. */
  readonly #ignoresRepeats: boolean;
  /** Calls of the test that have not settled, other than for results. */
  #openCalls = 0;
  readonly #stuck = new StuckWatch(
    () => this.#openCalls > 0 || !this.#process.isIdle,
    () => this.#process.isHeldUp,
    (id) => stuckError(this.#world, id),
  );

  private constructor(world: TestWorld, process: TestProcess, ignoresRepeats: boolean) {
    this.#world = world;
    this.#process = process;
    this.#ignoresRepeats = ignoresRepeats;
  }

  static async on(
    world: TestWorld,
    options: { intercept?: WriteInterceptor; ignoresRepeats?: boolean } = {},
  ): Promise<CrashableTestEngine> {
    return new CrashableTestEngine(
      world,
      await TestProcess.start(world, options.intercept),
      options.ignoresRepeats ?? false,
    );
  }

  get "~store"(): Store {
    return this.#world.store;
  }

  get "~access"(): RunAccess | undefined {
    return runAccessOf(this.#process.core);
  }

  get process(): TestProcess {
    return this.#process;
  }

  readonly clock = {
    now: (): Date => new Date(this.#world.time.now()),
    advance: (by: Duration, options?: WaitOptions): Promise<void> => {
      const ms = toMs(by, "clock.advance");
      return waitFor(options, "clock.advance", () =>
        this.#move((process) => process.advanceTo(this.#world.time.now() + ms)),
      );
    },
  };

  #move(how: (process: TestProcess) => Promise<void>): Promise<void> {
    const moved = this.#counted(this.#moving.then(() => how(this.#process)));
    this.#moving = moved.catch(() => {});
    return moved;
  }

  crash(): Promise<void> {
    const { time, leaseMs } = this.#world;
    // Immediately, not after pending advances: they must not outlive the process.
    this.#process.crash();
    return this.#move(async () => {
      time.advanceTo(time.now() + leaseMs);
      this.#process = await TestProcess.start(this.#world);
      this.#nextProcess.resolve();
      this.#nextProcess = Promise.withResolvers();
      await this.#process.settle();
    });
  }

  start: Client["start"] = async (what: Definition | string, ...args: readonly unknown[]): Promise<any> => {
    const run = await this.#call((process) => (process.core.start as AnyStart)(what, ...args));
    return this.#handle(what, run.id);
  };

  get: Client["get"] = (what: Definition | string, id: string): any => {
    this.#process.core.get(what, id);
    return this.#handle(what, id);
  };

  #call<T>(call: (process: TestProcess) => Promise<T>): Promise<T> {
    return this.#counted(this.#process.orCrash(call(this.#process)));
  }

  async #counted<T>(call: Promise<T>): Promise<T> {
    this.#stuck.noteCall();
    this.#openCalls += 1;
    try {
      return await call;
    } finally {
      this.#openCalls -= 1;
    }
  }

  find(id: string, options?: WaitOptions): Promise<RunInfo | undefined> {
    return this.#call((process) => process.core.find(id, options));
  }

  evaluate: Engine["evaluate"] = (what: any, options: any): Promise<any> =>
    this.#call((process) => process.core.evaluate(what, options));

  bulk: Client["bulk"] = (action, filter, options) =>
    this.#call((process) => process.core.bulk(action, filter, options));

  prune: Client["prune"] = (options) => this.#call((process) => process.core.prune(options));

  list(filter?: RunFilter, options?: WaitOptions): AsyncIterable<RunInfo> {
    return this.#process.core.list(filter, options);
  }

  promises(filter?: OpenPromiseFilter): AsyncIterable<OpenPromiseInfo> {
    return this.#process.core.promises(filter);
  }

  schedule: Client["schedule"] = async (...args: Parameters<Client["schedule"]>): Promise<ScheduleHandle> => {
    const { name } = await this.#call((process) => process.core.schedule(...args));
    return this.#scheduleHandle(name);
  };

  getSchedule(name: string): ScheduleHandle {
    return this.#scheduleHandle(this.#process.core.getSchedule(name).name);
  }

  findSchedule(name: string, options?: WaitOptions): Promise<ScheduleInfo | undefined> {
    return this.#call((process) => process.core.findSchedule(name, options));
  }

  listSchedules(options?: WaitOptions): AsyncIterable<ScheduleInfo> {
    return this.#process.core.listSchedules(options);
  }

  /** test-engine.G2 */
  #scheduleHandle(name: string): ScheduleHandle {
    const on = <T>(call: (schedule: ScheduleHandle) => Promise<T>): Promise<T> =>
      this.#call((process) => call(process.core.getSchedule(name)));
    return {
      name,
      info: (options) => on((schedule) => schedule.info(options)),
      pause: (options) => on((schedule) => schedule.pause(options)),
      resume: (options) => on((schedule) => schedule.resume(options)),
      trigger: (options) => on((schedule) => schedule.trigger(options)),
      backfill: (from, to, options) => on((schedule) => schedule.backfill(from, to, options)),
      remove: (options) => on((schedule) => schedule.remove(options)),
    };
  }

  findQueue(queue: Queue | string, options?: WaitOptions): Promise<QueueInfo | undefined> {
    return this.#call((process) => process.core.findQueue(queue, options));
  }

  listQueues(options?: WaitOptions): AsyncIterable<QueueInfo> {
    return this.#process.core.listQueues(options);
  }

  getQueue(queue: Queue | string): QueueHandle {
    const handle = (process: TestProcess): QueueHandle => process.core.getQueue(queue);
    return {
      name: handle(this.#process).name,
      pause: (options) => this.#call((process) => handle(process).pause(options)),
      resume: (options) => this.#call((process) => handle(process).resume(options)),
      limit: (limits, options) => this.#call((process) => handle(process).limit(limits, options)),
    };
  }

  drain(options: CloseOptions = {}): Promise<void> {
    const graceMs = graceOf(options);
    return abortable(checkSignal(options.signal, "drain"), () =>
      this.#process.end(this.#process.core.drain({ grace: graceMs }), graceMs),
    );
  }

  close(options: CloseOptions = {}): Promise<void> {
    const graceMs = graceOf(options);
    const signal = checkSignal(options.signal, "close");
    this.#closing ??= this.#moving
      .then(() => this.#process.end(this.#process.core.close({ grace: graceMs }), graceMs))
      .finally(() => this.#stuck.close());
    return unlessAborted(signal, this.#closing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #handle(what: Definition | string, id: string): Run<any> {
    const handle = (process: TestProcess): Run<any> => process.core.get(what, id);
    const command = (call: (run: Run<any>) => Promise<void>): Promise<void> =>
      this.#call((process) => call(handle(process))).catch((error: unknown) => {
        if (!this.#ignoresRepeats || !isAlreadyApplied(error)) throw error;
      });
    return {
      id,
      result: (options) => this.#stuck.watch(id, this.#result(handle, options)),
      info: (options) => this.#call((process) => handle(process).info(options)),
      signal: (name: string, ...value: readonly unknown[]) =>
        command((run) => (run.signal as AnyCommand)(name, ...value)),
      resolve: (name: string, ...value: readonly unknown[]) =>
        command((run) => (run.resolve as AnyCommand)(name, ...value)),
      reject: (name: never, error: Error, options) => command((run) => run.reject(name, error, options)),
      query: (name: string, ...args: readonly unknown[]) =>
        this.#call((process) => (handle(process).query as AnyRequest)(name, ...args)),
      update: (name: string, ...args: readonly unknown[]) =>
        this.#call((process) => (handle(process).update as AnyRequest)(name, ...args)),
      cancel: (reason, options) => command((run) => run.cancel(reason, options)),
      terminate: (reason, options) => command((run) => run.terminate(reason, options)),
      budget: (options) => this.#call((process) => handle(process).budget(options)),
      raise: (add, options) => command((run) => run.raise(add, options)),
      declineBudget: (options) => command((run) => run.declineBudget(options)),
      pause: (options) => command((run) => run.pause(options)),
      retry: (options) => command((run) => run.retry(options)),
      resume: (options) => command((run) => run.resume(options)),
      migrate: (options) => command((run) => run.migrate(options)),
      delete: (options) => this.#call((process) => handle(process).delete(options)),
      stream: (name: never, options) => {
        // Checks the arguments now, as every engine does.
        handle(this.#process).stream(name, options);
        return new AbortableGenerator(options?.signal, (left) => this.#stream(handle, name, options?.after, left));
      },
      scheduler: (options) => this.#call((process) => handle(process).scheduler(options)),
      attempts: (options) => handle(this.#process).attempts(options),
      journal: (options): AsyncIterable<JournalEntry> => handle(this.#process).journal(options),
      checkpoints: (options) => handle(this.#process).checkpoints(options),
      checkpoint: (at, options) => this.#call((process) => handle(process).checkpoint(at, options)),
      stateAt: (at, options) => this.#call((process) => handle(process).stateAt(at, options)),
      fork: async (options) => this.#handle(what, (await this.#call((process) => handle(process).fork(options))).id),
      diff: (other, options) => this.#call((process) => handle(process).diff(other, options)),
      ...{ "~handle": () => handle(this.#process) },
      replay: (options): Promise<Replay> => this.#call((process) => handle(process).replay(options)),
      verify: (options): Promise<Replay> => this.#call((process) => handle(process).verify(options)),
    };
  }

  /** test-engine.G2 */
  async *#stream(
    handle: (process: TestProcess) => Run<any>,
    name: never,
    from: number | undefined,
    left: AbortSignal,
  ): AsyncGenerator<StreamChunk<never>, void, undefined> {
    for (let after = from; !left.aborted;) {
      const process = this.#process;
      const next = this.#nextProcess.promise;
      const chunks = handle(process).stream(name, after === undefined ? {} : { after });
      const removeAbort = onAbort(left, () => void chunks.return());
      try {
        for (;;) {
          const { done, value } = await process.orCrash(chunks.next());
          if (done === true) return;
          yield value;
          after = value.offset;
        }
      } catch (error) {
        if (!(error instanceof CrashedError)) throw error;
      } finally {
        removeAbort();
        // A crashed process never answers.
        void chunks.return();
      }
      await unlessAborted(left, next).catch(() => {});
    }
  }

  /** test-engine.G2 */
  async #result(handle: (process: TestProcess) => Run<any>, options: ResultOptions = {}): Promise<any> {
    checkOptionNames(options, ["signal", "timeout"], "result");
    const { time } = this.#world;
    const { signal } = options;
    const until = options.timeout === undefined ? undefined : time.now() + toMs(options.timeout, "result: timeout");
    for (;;) {
      const process = this.#process;
      const next = this.#nextProcess.promise;
      const timeout = until === undefined ? {} : { timeout: Math.max(0, until - time.now()) };
      try {
        return await process.orCrash(handle(process).result({ ...timeout, ...(signal && { signal }) }));
      } catch (error) {
        if (!(error instanceof CrashedError)) throw error;
      }
      await unlessAborted(signal, next);
    }
  }
}

/** test-engine.G3 */
async function stuckError({ store, works }: TestWorld, id: string): Promise<RepriseError> {
  const waits = works ? await nameWaits(store, id) : ["This test engine was created with worker: false."];
  return new RepriseError(
    "RESULT_STUCK",
    `The result of run ${id} cannot come: nothing is running, and time stands still. ${waits.join(" ")}`,
    { details: { run: id, waits } },
  );
}

type AnyRequest = (name: string, ...args: readonly unknown[]) => Promise<never>;
type AnyCommand = (name: string, ...value: readonly unknown[]) => Promise<void>;
type AnyStart = (what: Definition | string, ...args: readonly unknown[]) => Promise<Run<any>>;

function graceOf(options: { grace?: Duration }): number {
  return options.grace === undefined ? GRACE_MS : toMs(options.grace, "grace");
}

function isAlreadyApplied(error: unknown): boolean {
  return error instanceof RepriseError && (error.code === "PROMISE_ALREADY_RESOLVED" || error.code === "RUN_ENDED");
}
