// Listeners: who listens for which run.

import type { RunNumber, RunRecord } from "../kernel/index.ts";

interface Listening<L> {
  readonly all: Set<L>;
  /** The run of that id, once somebody has looked. */
  run: RunNumber | undefined;
  /** How often somebody has looked. */
  looks: number;
  /** The run that is waited for, as it was first seen. */
  seen: SeenRun | undefined;
}

/** A run that was in the store. */
export type SeenRun = Pick<RunRecord, "run" | "generation">;

export class Listeners<L> {
  readonly #byId = new Map<string, Listening<L>>();

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  get ids(): readonly string[] {
    return [...this.#byId.keys()];
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  of(id: string): readonly L[] {
    return [...(this.#byId.get(id)?.all ?? [])];
  }

  /** Answers how to stop listening. */
  add(id: string, listener: L): () => void {
    let listening = this.#byId.get(id);
    if (listening === undefined)
      this.#byId.set(id, (listening = { all: new Set(), run: undefined, looks: 0, seen: undefined }));
    const { all } = listening;
    all.add(listener);
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#byId.get(id)?.all === all) this.#byId.delete(id);
    };
  }

  /**
   * Somebody looks which run this id is, until it goes on as another: while that is not known, anything may be news. Answers
   * how to say it, which counts unless somebody has looked since.
   */
  look(id: string): (run: RunNumber) => void {
    const listening = this.#byId.get(id);
    if (listening === undefined) return () => undefined;
    listening.run = undefined;
    const look = (listening.looks += 1);
    return (run) => {
      if (listening.looks === look) listening.run = run;
    };
  }

  see(id: string, run: SeenRun): void {
    const listening = this.#byId.get(id);
    if (listening !== undefined) listening.seen ??= run;
  }

  /**
   * Whether the run that is waited for is gone: there is none of its id, or one that was started under it since. Runs that
   * have not ended are never removed, so the database went back to a state before its start.
   */
  isGone(id: string, found: RunRecord | undefined): boolean {
    const seen = this.#byId.get(id)?.seen;
    if (seen === undefined) return false;
    if (found === undefined || found.generation < seen.generation) return true;
    return found.generation === seen.generation && found.run !== seen.run;
  }

  /** Those for which something of these runs may be news. */
  idsAmong(runs: ReadonlySet<RunNumber>): readonly string[] {
    return this.ids.filter((id) => {
      const run = this.#byId.get(id)?.run;
      return run === undefined || runs.has(run);
    });
  }

  /** Those who listened; from now on nobody does. */
  take(id: string): readonly L[] {
    if (!this.#byId.has(id)) return [];
    const all = this.of(id);
    this.#byId.delete(id);
    return all;
  }
}
