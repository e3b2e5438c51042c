// SimProcess: one process with the real engine, which the simulation kills, pauses and restarts.
//
// process.P1. A killed process does nothing more: its event loop is dead, and its store calls never settle.
// process.P2. A paused process stops wherever it is; when it resumes it does not know that time has passed.

import { RepriseError, type Random } from "../../src/base/index.ts";
import { EngineCore } from "../../src/engine/engine.ts";
import { registryOf } from "../../src/engine/index.ts";
import { Labels, Redaction, type AnyTask, type Definition, type Store } from "../../src/kernel/index.ts";
import type { OutboxHandler } from "../../src/worker/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import { stream } from "./random.ts";
import type { EventLoop, Scheduler } from "./scheduler.ts";

/** What user code of one process can use. */
export interface Machine {
  /** Takes a random time; never resolves in a process that is killed meanwhile. */
  work(name: string): Promise<void>;
  readonly chance: RandomSource;
}

/** What a process runs. */
export interface Program {
  definitions(machine: Machine): readonly (Definition | AnyTask)[];
  outbox(machine: Machine): Readonly<Record<string, OutboxHandler>>;
}

export interface OpenedStore {
  readonly store: Store;
  /** The process is gone. */
  kill(): void;
}

/** The environment of a process. */
export interface ProcessHost {
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly program: Program;
  readonly leaseMs: number;
  readonly concurrency: number;
  readonly workMs: (chance: RandomSource) => number;
  open(instance: ProcessInstance): Promise<OpenedStore>;
  warned(process: string, message: string): void;
}

/** One execution of a process, from its start to its end. */
export interface ProcessInstance {
  readonly name: string;
  readonly loop: EventLoop;
  readonly random: Random;
  /** Kills it where it is. */
  die(why: string): void;
}

export class Died extends RepriseError {
  constructor() {
    super("ENGINE_CLOSED", "The process died before it answered.");
  }
}

export class SimProcess {
  readonly name: string;
  readonly #host: ProcessHost;
  #starts = 0;
  /** The error of its machine's wall clock, which survives a restart. */
  #skewMs = 0;
  #loop: EventLoop | undefined;
  #core: EngineCore | undefined;
  #opened: OpenedStore | undefined;
  #tellDied: (() => void) | undefined;
  #died: Promise<never> = never;

  constructor(host: ProcessHost, name: string) {
    this.#host = host;
    this.name = name;
  }

  /** The engine, while it accepts calls. */
  get core(): EngineCore | undefined {
    return this.#core;
  }

  get isAlive(): boolean {
    return this.#loop !== undefined;
  }

  get loop(): EventLoop | undefined {
    return this.#loop;
  }

  /** Waits for a result, or for the end of the process. */
  answer<T>(asked: Promise<T>): Promise<T> {
    return Promise.race([asked, this.#died]);
  }

  /** Resolves when the process has ended. */
  async gone(): Promise<void> {
    await this.#died.catch(() => {});
  }

  async start(): Promise<void> {
    this.#starts += 1;
    const { scheduler, seed } = this.#host;
    const loop = (this.#loop = scheduler.createLoop(this.name));
    loop.skewMs = this.#skewMs;
    this.#died = new Promise((_resolve, reject) => (this.#tellDied = () => reject(new Died())));
    this.#died.catch(() => {});
    loop.log(`starts, life ${this.#starts}`);
    const random = randomOf(stream(seed, `ids ${this.name} ${this.#starts}`), loop);
    const instance: ProcessInstance = {
      name: this.name,
      loop,
      random,
      die: (why) => this.#loop === loop && this.kill(why),
    };
    try {
      const opened = await this.answer(this.#host.open(instance));
      this.#opened = opened;
      const core = this.#newCore(opened.store, instance);
      await this.answer(core.begin());
      this.#core = core;
      loop.log("works");
    } catch (error) {
      if (error instanceof Died) return;
      // A supervisor sees a process that could not start.
      this.kill(`could not start: ${String(error)}`);
    }
  }

  setClock(byMs: number): void {
    this.#skewMs += byMs;
    if (this.#loop === undefined) return;
    this.#loop.skewMs = this.#skewMs;
    this.#loop.log(`clock jumps by ${byMs}`);
  }

  kill(why: string): void {
    const loop = this.#loop;
    if (loop === undefined) return;
    loop.log(`dies: ${why}`);
    this.#host.scheduler.kill(loop);
    this.#core?.crash();
    this.#opened?.kill();
    this.#loop = this.#core = this.#opened = undefined;
    this.#tellDied?.();
  }

  /** Closes it cleanly: running steps finish, the rest is returned. */
  async close(): Promise<void> {
    const [core, loop] = [this.#core, this.#loop];
    if (core === undefined) return;
    this.#core = undefined;
    loop?.log("closes");
    await this.answer(core.close({ grace: "1s" })).catch(() => {});
    if (this.#loop === loop) this.kill("closed");
  }

  #newCore(store: Store, { loop, random }: ProcessInstance): EngineCore {
    const { program, leaseMs, concurrency, warned, seed, workMs } = this.#host;
    const chance = stream(seed, `work ${this.name} ${this.#starts}`);
    const machine: Machine = { chance, work: () => loop.sleep(workMs(chance)) };
    const log = (message: string): void => warned(this.name, message);
    return new EngineCore({
      store,
      timers: loop.timers,
      random,
      registry: registryOf(program.definitions(machine)),
      logger: { info: () => {}, warn: log, error: log },
      redaction: new Redaction(),
      payloadLimit: undefined,
      entryLimit: undefined,
      name: `${this.name}.${this.#starts}`,
      host: "simulated",
      pid: this.#starts,
      runtime: "{}",
      newSalt: undefined,
      works: true,
      concurrency,
      queues: undefined,
      labels: Labels.any,
      leaseMs,
      guardMode: "off",
      heartbeats: true,
      polls: true,
      determinism: "strict",
      outbox: new Map(Object.entries(program.outbox(machine))),
    });
  }
}

const never = new Promise<never>(() => {});

function randomOf(chance: RandomSource, loop: EventLoop): Random {
  const hex = (digits: number): string => Array.from({ length: digits }, () => chance.below(16).toString(16)).join("");
  return {
    bytes: (count) => Uint8Array.from({ length: count }, () => chance.below(256)),
    id: () => {
      const time = loop.clock.now().toString(16).padStart(12, "0");
      return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`;
    },
    token: () => hex(32),
  };
}
