// Client: asks processes for things until one answers, as a program outside does: it cannot know why one does not.

import type { EngineCore } from "../../src/engine/index.ts";
import type { Chance } from "../replay/seeded.ts";
import type { SimProcess } from "./process.ts";
import type { Lane } from "./scheduler.ts";

/** An answer that says nothing about what was asked: ask again. */
const ASK_AGAIN = /^(?:ENGINE_CLOSED|STORE_|RESULT_TIMEOUT)/;
/** It is over, or it is as it was told to be: `USAGE` is what retrying a run that has not failed gives. */
const TOLD_BEFORE = /^(?:RUN_ENDED|PROMISE_ALREADY_RESOLVED|USAGE)$/;
const PATIENCE_MS = 4_000;

export class Client {
  readonly #lane: Lane;
  readonly #chance: Chance;
  readonly #processes: readonly SimProcess[];
  /** The ids of runs that were asked for. */
  readonly asked = new Set<string>();

  constructor(lane: Lane, chance: Chance, processes: readonly SimProcess[]) {
    this.#lane = lane;
    this.#chance = chance;
    this.#processes = processes;
  }

  async sleep(ms: number): Promise<void> {
    await this.#lane.sleep(ms);
  }

  /** Tells a run something; whether it is over by now, or was told before, is not for whoever tells it to know. */
  async tell(what: string, call: (core: EngineCore) => Promise<void>): Promise<void> {
    await this.ask(what, async (core) => (await call(core), true)).catch((error: { code?: string }) => {
      if (!TOLD_BEFORE.test(error.code ?? "")) throw error;
    });
  }

  /** Starts a run; answers when that is acknowledged. */
  async start(definition: string, input: unknown, id: string): Promise<void> {
    this.asked.add(id);
    await this.ask(`start ${id}`, (core) => core.start(definition, input as never, { id }));
  }

  /** The answer, or an error that is one. */
  async ask<T>(what: string, call: (core: EngineCore) => Promise<T>): Promise<T> {
    for (;;) {
      const able = this.#processes.filter((process) => process.core !== undefined);
      const process = able.length === 0 ? undefined : this.#chance.pick(able);
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
