// LiveReads: what a room above the engine follows as it happens: the streams of any run, also of one whose code this process does not
// have, and the changes that this process makes or notices.
//
// live-reads.L1. A listener hears of every write of this process after it is durable, and of writes of other processes when the store
//   is polled. It learns which runs may have changed, not how: it reads the store.
// live-reads.L2. Without a listener a commit costs one comparison.

import type { Chunk, RunNumber, RunRecord } from "../kernel/index.ts";
import type { StreamOptions } from "./api.ts";

export interface ChangeListener {
  /** This process committed something about the run. `isOver`: it ended, was stopped, or left this process. */
  onRun(run: RunNumber, isOver: boolean): void;
  /** This process wrote something else, such as the limits of a queue. */
  onWritten(): void;
  /** Another process changed these runs, or anything. */
  onOthers(runs: ReadonlySet<RunNumber> | undefined): void;
}

export interface LiveReads {
  /** Throws RUN_NOT_FOUND, and UNKNOWN_PORT if this process has the run's code and it declares no such stream. */
  findStream(id: string, name: string): Promise<RunRecord>;
  /** The chunks behind `after`, page by page, including those to come; ends with the run. */
  readStream(
    id: string,
    name: string,
    options: StreamOptions & { readonly pageSize?: number },
  ): AsyncGenerator<readonly Chunk[], void, undefined>;
  /** Returns a function that removes the listener. */
  listen(listener: ChangeListener): () => void;
}

/** The listeners of a process. */
export class ChangeListeners {
  readonly #all = new Set<ChangeListener>();

  /** live-reads.L2 */
  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  add(listener: ChangeListener): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  run(run: RunNumber, isOver: boolean): void {
    for (const listener of this.#all) listener.onRun(run, isOver);
  }

  /** The outcome of a write says which run it was about, if it was about one. */
  written(outcome: unknown): void {
    if (this.isEmpty) return;
    const { run, record } = outcome as { readonly run?: unknown; readonly record?: Partial<RunRecord> };
    const changed = typeof run === "number" ? run : record?.run;
    if (changed !== undefined) return this.run(changed, false);
    for (const listener of this.#all) listener.onWritten();
  }

  others(runs: ReadonlySet<RunNumber> | undefined): void {
    for (const listener of this.#all) listener.onOthers(runs);
  }
}

/** The live reads of a client or an engine; undefined for anything else. */
export function liveReadsOf(engine: unknown): LiveReads | undefined {
  const hasReads = typeof engine === "object" && engine !== null && "~live" in engine;
  return hasReads ? (engine["~live"] as LiveReads) : undefined;
}
