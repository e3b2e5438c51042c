// RunSubscriptions: the subscribers of this process, by the id of the run they wait for.

import type { RunNumber, RunRecord } from "../kernel/index.ts";

interface Subscription<S> {
  readonly subscribers: S[];
  /** The number of the run with this id; undefined until a read has found it. */
  run: RunNumber | undefined;
  /** Counts reads, so that an answer that comes late is not taken for the newest. */
  reads: number;
  /** The run as it was first seen. */
  seen: SeenRun | undefined;
}

/** A run that the store had when it was read. */
export type SeenRun = Pick<RunRecord, "run" | "generation">;

export class RunSubscriptions<S> {
  readonly #byId = new Map<string, Subscription<S>>();

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  get ids(): readonly string[] {
    return [...this.#byId.keys()];
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  subscribersOf(id: string): readonly S[] {
    return [...(this.#byId.get(id)?.subscribers ?? [])];
  }

  add(id: string, subscriber: S): void {
    const subscribers = this.#byId.get(id)?.subscribers;
    if (subscribers !== undefined) subscribers.push(subscriber);
    else this.#byId.set(id, { subscribers: [subscriber], run: undefined, reads: 0, seen: undefined });
  }

  /** Has no effect if the subscriber was removed before. */
  remove(id: string, subscriber: S): void {
    const { subscribers = [] } = this.#byId.get(id) ?? {};
    const index = subscribers.indexOf(subscriber);
    if (index >= 0) subscribers.splice(index, 1);
    if (subscribers.length === 0) this.#byId.delete(id);
  }

  /** The number of the run with this id, if a read has found it. */
  numberOf(id: string): RunNumber | undefined {
    return this.#byId.get(id)?.run;
  }

  /**
   * A read of the run with this id begins. Until its number is known, every change may be about this run. Returns a
   * function that notes the number; it has no effect once a later read has begun.
   */
  beginRead(id: string): (run: RunNumber) => void {
    const subscription = this.#byId.get(id);
    if (subscription === undefined) return () => undefined;
    subscription.run = undefined;
    const read = (subscription.reads += 1);
    return (run) => {
      if (subscription.reads === read) subscription.run = run;
    };
  }

  noteSeen(id: string, run: SeenRun): void {
    const subscription = this.#byId.get(id);
    if (subscription !== undefined) subscription.seen ??= run;
  }

  /**
   * Whether the run that subscribers wait for no longer exists: the store has no run with its id, or one that was started
   * later. Live runs are never removed, so the database went back to a state before the start.
   */
  isLost(id: string, found: RunRecord | undefined): boolean {
    const seen = this.#byId.get(id)?.seen;
    if (seen === undefined) return false;
    if (found === undefined || found.generation < seen.generation) return true;
    return found.generation === seen.generation && found.run !== seen.run;
  }

  /** The ids that a change of these runs may concern. */
  idsAffectedBy(runs: ReadonlySet<RunNumber>): readonly string[] {
    return this.ids.filter((id) => {
      const run = this.#byId.get(id)?.run;
      return run === undefined || runs.has(run);
    });
  }

  /** Removes all subscribers of a run and returns them. */
  take(id: string): readonly S[] {
    if (!this.#byId.has(id)) return [];
    const subscribers = this.subscribersOf(id);
    this.#byId.delete(id);
    return subscribers;
  }
}
