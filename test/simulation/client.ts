// Client: asks processes for things until one answers, as a program outside does: it cannot know why one does not.
//
// CL1. After history went back the client repeats every request that was acknowledged before, run by run, in the order in
//      which it was first made. What was acknowledged afterwards it never repeats: that must not be lost.

import type { EngineCore } from "../../src/engine/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import type { SimProcess } from "./process.ts";
import type { EventLoop } from "./scheduler.ts";

/** An answer that says nothing about what was asked: ask again. */
const RETRYABLE = /^(?:ENGINE_CLOSED|STORE_|RESULT_TIMEOUT)/;
/** It is over, or it is as it was told to be: `USAGE` is what retrying a run that has not failed gives. */
const ALREADY_APPLIED = /^(?:RUN_ENDED|PROMISE_ALREADY_RESOLVED|USAGE)$/;
const ANSWER_MS = 4_000;

type Call = (core: EngineCore) => Promise<unknown>;

interface Request {
  /** Its last word is the run's id. */
  readonly what: string;
  readonly call: Call;
  /** Whether the run may be gone with the history it was in. */
  readonly mayBeGone: boolean;
  readonly order: number;
}

/** How waiting for a run ended. */
export interface Watched {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
  /** When the last try began. */
  readonly sinceMs: number;
}

export class Client {
  readonly #loop: EventLoop;
  readonly #chance: RandomSource;
  readonly #processes: readonly SimProcess[];
  /** The ids of runs that were asked for. */
  readonly asked = new Set<string>();
  /** History does not go back any more. */
  isSettled = true;
  /** How often history went back. */
  epoch = 0;
  /** When runs that had been there were gone, by id. */
  readonly vanished = new Map<string, number>();
  /** What was asked while history went back: it may have come before what was repeated. */
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

  /** Tells a run something; whether it is over by now, or was told before, is not for whoever tells it to know. */
  async tell(what: string, call: (core: EngineCore) => Promise<void>, mayBeGone = false): Promise<void> {
    await this.request(what, async (core) => (await call(core), true), mayBeGone).catch((error: { code?: string }) => {
      if (!ALREADY_APPLIED.test(error.code ?? "")) throw error;
    });
  }

  /** Starts a run; answers when that is acknowledged. */
  async start(definition: string, input: unknown, id: string): Promise<void> {
    this.asked.add(id);
    await this.request(`start ${id}`, (core) => core.start(definition, input as never, { id }));
  }

  /** Starts a run and never does so again; answers whether it was there afterwards, as far as anybody can say. */
  async startOnce(definition: string, input: unknown, id: string): Promise<boolean> {
    this.asked.add(id);
    const { epoch } = this;
    await this.ask(`start ${id}`, (core) => core.start(definition, input as never, { id }));
    return epoch === this.epoch;
  }

  /** CL1. Something that must be so, whatever becomes of history. */
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
          // Refused for what the run is: history may take that back.
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

  /** CL1. Called in the moment in which history went back. */
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
        // Another cut: all of it is repeated from the beginning.
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

  /** Resolves when everything was repeated that had to be, of one run or of all. */
  async #repeated(run: string): Promise<void> {
    for (let repeating: Promise<void> | undefined; repeating !== this.#repeating.get(run);) {
      repeating = this.#repeating.get(run);
      await repeating;
    }
  }

  async repeated(): Promise<void> {
    for (const run of this.#repeating.keys()) await this.#repeated(run);
  }

  /** Waits for the end of a run in one process after the other. */
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

  /** The answer, or an error that is one. */
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
