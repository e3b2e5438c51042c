// Client: asks processes for things until one answers, as a program outside does: it cannot know why one does not.
//
// CL1. After history went back the client repeats every request that was acknowledged before, run by run, in the order it
//      was acknowledged. What was acknowledged afterwards it never repeats: that must not be lost.

import type { EngineCore } from "../../src/engine/index.ts";
import type { Chance } from "../replay/seeded.ts";
import type { SimProcess } from "./process.ts";
import type { Lane } from "./scheduler.ts";

/** An answer that says nothing about what was asked: ask again. */
const ASK_AGAIN = /^(?:ENGINE_CLOSED|STORE_|RESULT_TIMEOUT)/;
/** It is over, or it is as it was told to be: `USAGE` is what retrying a run that has not failed gives. */
const TOLD_BEFORE = /^(?:RUN_ENDED|PROMISE_ALREADY_RESOLVED|USAGE)$/;
const PATIENCE_MS = 4_000;

type Call = (core: EngineCore) => Promise<unknown>;

interface Request {
  /** Its last word is the run's id. */
  readonly what: string;
  readonly call: Call;
  /** Whether the run may be gone with the history it was in. */
  readonly mayBeGone: boolean;
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
  readonly #lane: Lane;
  readonly #chance: Chance;
  readonly #processes: readonly SimProcess[];
  /** The ids of runs that were asked for. */
  readonly asked = new Set<string>();
  /** How often history went back. */
  epoch = 0;
  /** When runs that had been there were gone, by id. */
  readonly vanished = new Map<string, number>();
  readonly #acknowledged: Request[] = [];
  #repeating: Promise<unknown> = Promise.resolve();

  constructor(lane: Lane, chance: Chance, processes: readonly SimProcess[]) {
    this.#lane = lane;
    this.#chance = chance;
    this.#processes = processes;
  }

  async sleep(ms: number): Promise<void> {
    await this.#lane.sleep(ms);
  }

  /** Tells a run something; whether it is over by now, or was told before, is not for whoever tells it to know. */
  async tell(what: string, call: (core: EngineCore) => Promise<void>, mayBeGone = false): Promise<void> {
    await this.request(what, async (core) => (await call(core), true), mayBeGone).catch((error: { code?: string }) => {
      if (!TOLD_BEFORE.test(error.code ?? "")) throw error;
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
    for (;;) {
      const { epoch } = this;
      try {
        const answer = await this.ask(what, call);
        if (epoch !== this.epoch) continue;
        this.#acknowledged.push({ what, call, mayBeGone });
        return answer;
      } catch (error) {
        const { code = "" } = error as { code?: string };
        if (code === "RUN_NOT_FOUND" && mayBeGone) return undefined;
        // It is gone, and will be started again.
        if (code === "RUN_NOT_FOUND" && this.epoch > 0) await this.#lane.sleep(100);
        else {
          if (epoch !== this.epoch) continue;
          // Refused for what the run is: history may take that back.
          if (TOLD_BEFORE.test(code)) this.#acknowledged.push({ what, call, mayBeGone });
          throw error;
        }
      }
    }
  }

  /** CL1. Called in the moment in which history went back. */
  rolledBack(gone: ReadonlySet<string>): void {
    this.epoch += 1;
    for (const id of gone) this.vanished.set(id, this.#now());
    const lost = this.#acknowledged.splice(0);
    const byRun = Map.groupBy(lost, ({ what }) => what.slice(what.lastIndexOf(" ") + 1));
    const repeating = [...byRun.values()].map((requests) => this.#repeat(requests));
    this.#repeating = Promise.all([this.#repeating, ...repeating]);
    this.#repeating.catch(() => {});
  }

  async #repeat(requests: readonly Request[]): Promise<void> {
    await this.#lane.sleep(this.#chance.below(500));
    for (const { what, call, mayBeGone } of requests)
      await this.tell(`again: ${what}`, async (core) => void (await call(core)), mayBeGone);
  }

  /** Resolves when everything was repeated that had to be. */
  async repeated(): Promise<void> {
    for (let epoch = -1; epoch !== this.epoch;) {
      epoch = this.epoch;
      await this.#repeating;
    }
  }

  /** Waits for the end of a run in one process after the other. */
  async watch(definition: string, id: string): Promise<Watched> {
    for (;;) {
      const process = this.#anyProcess();
      if (process?.core !== undefined) {
        const sinceMs = this.#now();
        try {
          return { value: await process.answer(process.core.run(definition as never, id).result()), sinceMs };
        } catch (error) {
          const { code = "", message } = error as { code?: string; message: string };
          this.#lane.tell(`wait for ${id}: ${code || message} from ${process.name}`);
          if (code === "STORE_ROLLED_BACK" || !ASK_AGAIN.test(code)) return { code, message, sinceMs };
        }
      }
      await this.#lane.sleep(20 + this.#chance.below(200));
    }
  }

  /** The answer, or an error that is one. */
  async ask<T>(what: string, call: (core: EngineCore) => Promise<T>): Promise<T> {
    for (;;) {
      const process = this.#anyProcess();
      if (process?.core !== undefined) {
        try {
          const answered = await this.#patiently(process.answer(call(process.core)));
          if (answered !== undefined) {
            this.#lane.tell(`${what}: answered by ${process.name}`);
            return answered.answer;
          }
        } catch (error) {
          const { code = "" } = error as { code?: string };
          this.#lane.tell(`${what}: ${code || String(error)} from ${process.name}`);
          if (!ASK_AGAIN.test(code)) throw error;
        }
      }
      await this.#lane.sleep(20 + this.#chance.below(200));
    }
  }

  #anyProcess(): SimProcess | undefined {
    const able = this.#processes.filter((process) => process.core !== undefined);
    return able.length === 0 ? undefined : this.#chance.pick(able);
  }

  #now(): number {
    return this.#lane.clock.monotonic();
  }

  async #patiently<T>(asked: Promise<T>): Promise<{ readonly answer: T } | undefined> {
    let cancel = (): void => {};
    const late = new Promise<undefined>((resolve) => {
      cancel = this.#lane.timers.set(PATIENCE_MS, () => resolve(undefined));
    });
    try {
      return await Promise.race([asked.then((answer) => ({ answer })), late]);
    } finally {
      cancel();
    }
  }
}
