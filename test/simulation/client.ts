// Client: sends requests to processes until one responds, as an outside program does: it cannot know why a process does not.
//
// client.C1. After a rollback of history the client repeats every request that was acknowledged before, run by run, in the order in
//   which it was first made. It never repeats requests that were acknowledged afterwards: those must not be lost.

import type { EngineCore } from "../../src/engine/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import type { SimProcess } from "./process.ts";
import type { EventLoop } from "./scheduler.ts";

/** Errors that say nothing about the request: send it again. */
const RETRYABLE = /^(?:ENGINE_CLOSED|STORE_|RESULT_TIMEOUT)/;
/** The run has ended, or the request was applied already: retrying a run that has not failed gives `USAGE`. */
const ALREADY_APPLIED = /^(?:RUN_ENDED|PROMISE_ALREADY_RESOLVED|USAGE)$/;
const ANSWER_MS = 4_000;

type Call = (core: EngineCore) => Promise<unknown>;

interface Request {
  /** Its last word is the run's id. */
  readonly what: string;
  readonly call: Call;
  /** Whether the run may have been lost with its history. */
  readonly mayBeGone: boolean;
  readonly order: number;
}

/** The result of waiting for a run. */
export interface Watched {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
  /** When the last attempt began. */
  readonly sinceMs: number;
}

export class Client {
  readonly #loop: EventLoop;
  readonly #chance: RandomSource;
  readonly #processes: readonly SimProcess[];
  /** The ids of the requested runs. */
  readonly asked = new Set<string>();
  /** No more rollbacks of history. */
  isSettled = true;
  /** The number of rollbacks of history. */
  epoch = 0;
  /** When runs were lost, by id. */
  readonly vanished = new Map<string, number>();
  /** Requests during a rollback: they may have been applied before the repeated ones. */
  readonly crossed = new Set<string>();
  /** By run. */
  readonly #acknowledged = new Map<string, Request[]>();
  readonly #repeating = new Map<string, Promise<void>>();
  #order = 0;

  constructor(loop: EventLoop, chance: RandomSource, processes: readonly SimProcess[]) {
    this.#loop = loop;
    this.#chance = chance;
    this.#processes = processes;
  }

  async sleep(ms: number): Promise<void> {
    await this.#loop.sleep(ms);
  }

  /** Sends a run a message; errors because the run has ended, or got the message before, are ignored. */
  async tell(what: string, call: (core: EngineCore) => Promise<void>, mayBeGone = false): Promise<void> {
    await this.request(what, async (core) => (await call(core), true), mayBeGone).catch((error: { code?: string }) => {
      if (!ALREADY_APPLIED.test(error.code ?? "")) throw error;
    });
  }

  /** Starts a run; resolves when that is acknowledged. */
  async start(definition: string, input: unknown, id: string): Promise<void> {
    this.asked.add(id);
    await this.request(`start ${id}`, (core) => core.start(definition, input as never, { id }));
  }

  /** Starts a run once and never again; returns whether it certainly existed afterwards. */
  async startOnce(definition: string, input: unknown, id: string): Promise<boolean> {
    this.asked.add(id);
    const { epoch } = this;
    await this.ask(`start ${id}`, (core) => core.start(definition, input as never, { id }));
    return epoch === this.epoch;
  }

  /** client.C1. A request that must be applied, whatever happens to history. */
  async request<T>(what: string, call: (core: EngineCore) => Promise<T>, mayBeGone = false): Promise<T | undefined> {
    const run = what.slice(what.lastIndexOf(" ") + 1);
    const request: Request = { what, call, mayBeGone, order: (this.#order += 1) };
    for (;;) {
      await this.#repeated(run);
      const { epoch } = this;
      try {
        const answer = await this.ask(what, call);
        if (epoch === this.epoch) {
          this.#acknowledge(run, request);
          return answer;
        }
      } catch (error) {
        const { code = "" } = error as { code?: string };
        if (code === "RUN_NOT_FOUND" && mayBeGone) return undefined;
        if (code === "RUN_NOT_FOUND" && this.epoch > 0) await this.#loop.sleep(100);
        else if (epoch === this.epoch) {
          // Refused because of the run's state, which a rollback may undo.
          if (ALREADY_APPLIED.test(code)) this.#acknowledge(run, request);
          throw error;
        }
      }
      if (epoch !== this.epoch) this.crossed.add(what);
    }
  }

  #acknowledge(run: string, request: Request): void {
    const requests = this.#acknowledged.get(run) ?? [];
    this.#acknowledged.set(run, requests);
    requests.push(request);
  }

  /** client.C1. Called at the moment of a rollback. */
  rolledBack(gone: ReadonlySet<string>): void {
    this.epoch += 1;
    for (const id of gone) this.vanished.set(id, this.#now());
    for (const [run, requests] of this.#acknowledged) {
      const repeating = this.#repeat(requests.toSorted((a, b) => a.order - b.order));
      repeating.catch(() => {});
      this.#repeating.set(run, repeating);
    }
  }

  async #repeat(requests: readonly Request[]): Promise<void> {
    const { epoch } = this;
    await this.#loop.sleep(this.#chance.below(500));
    for (const { what, call, mayBeGone } of requests) {
      for (;;) {
        // Another rollback: repeat all requests from the first.
        if (epoch !== this.epoch) return;
        try {
          await this.ask(`again: ${what}`, async (core) => (await call(core), true));
          break;
        } catch (error) {
          const { code = "" } = error as { code?: string };
          if (ALREADY_APPLIED.test(code) || (code === "RUN_NOT_FOUND" && mayBeGone)) break;
          if (code !== "RUN_NOT_FOUND") throw error;
          await this.#loop.sleep(100);
        }
      }
    }
  }

  /** Resolves when all requests of one run, or of all runs, are repeated. */
  async #repeated(run: string): Promise<void> {
    for (let repeating: Promise<void> | undefined; repeating !== this.#repeating.get(run);) {
      repeating = this.#repeating.get(run);
      await repeating;
    }
  }

  async repeated(): Promise<void> {
    for (const run of this.#repeating.keys()) await this.#repeated(run);
  }

  /** Waits for the end of a run, in one process after the other. */
  async watch(definition: string, id: string): Promise<Watched> {
    for (;;) {
      const process = this.#anyProcess();
      if (process?.core !== undefined) {
        const sinceMs = this.#now();
        try {
          return { value: await process.answer(process.core.get(definition as never, id).result()), sinceMs };
        } catch (error) {
          const { code = "", message } = error as { code?: string; message: string };
          this.#loop.log(`wait for ${id}: ${code || message} from ${process.name}`);
          if (code === "STORE_ROLLED_BACK" || !RETRYABLE.test(code)) return { code, message, sinceMs };
        }
      }
      await this.#loop.sleep(20 + this.#chance.below(200));
    }
  }

  /** The result, or an error that is one. */
  async ask<T>(what: string, call: (core: EngineCore) => Promise<T>): Promise<T> {
    for (;;) {
      const process = this.#anyProcess();
      if (process?.core !== undefined) {
        try {
          const answered = await this.#withTimeout(process.answer(call(process.core)));
          if (answered !== undefined) {
            this.#loop.log(`${what}: answered by ${process.name}`);
            return answered.answer;
          }
        } catch (error) {
          const { code = "" } = error as { code?: string };
          this.#loop.log(`${what}: ${code || String(error)} from ${process.name}`);
          if (!RETRYABLE.test(code)) throw error;
        }
      }
      await this.#loop.sleep(20 + this.#chance.below(200));
    }
  }

  #anyProcess(): SimProcess | undefined {
    const able = this.#processes.filter((process) => process.core !== undefined);
    return able.length === 0 ? undefined : this.#chance.pick(able);
  }

  #now(): number {
    return this.#loop.clock.monotonic();
  }

  async #withTimeout<T>(asked: Promise<T>): Promise<{ readonly answer: T } | undefined> {
    let cancel = (): void => {};
    const late = new Promise<undefined>((resolve) => {
      cancel = this.#loop.timers.set(ANSWER_MS, () => resolve(undefined));
    });
    try {
      return await Promise.race([asked.then((answer) => ({ answer })), late]);
    } finally {
      cancel();
    }
  }
}
