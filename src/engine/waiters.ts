// Waiters: who waits for the end of which run. News comes from this process's worker, or from a look at the store.

import type { Entry, RunRecord } from "../kernel/index.ts";

/** How a run stands, with the entry that ended it. */
export interface Ending {
  readonly record: RunRecord;
  readonly last: Entry | undefined;
}

export class Waiters {
  readonly #byId = new Map<string, Set<(ending: Ending | undefined) => void>>();

  get ids(): readonly string[] {
    return [...this.#byId.keys()];
  }

  /** Answers how to stop waiting. Told `undefined` when no news will ever come. */
  add(id: string, tell: (ending: Ending | undefined) => void): () => void {
    let waiting = this.#byId.get(id);
    if (waiting === undefined) this.#byId.set(id, (waiting = new Set()));
    const all = waiting;
    all.add(tell);
    return () => {
      all.delete(tell);
      if (all.size === 0 && this.#byId.get(id) === all) this.#byId.delete(id);
    };
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  tell(id: string, ending: Ending | undefined): void {
    const waiting = this.#byId.get(id);
    if (waiting === undefined) return;
    this.#byId.delete(id);
    for (const tell of waiting) tell(ending);
  }

  close(): void {
    for (const id of this.ids) this.tell(id, undefined);
  }
}
