// Watchers: who wants to look at a run whenever it may have moved. News comes from commits of this process at once, and
// from other processes by the look-out; a watcher reads the store to see whether there is anything for it.

export class Watchers {
  readonly #byId = new Map<string, Set<() => void>>();

  /** Answers how to stop watching. */
  add(id: string, look: () => void): () => void {
    let watching = this.#byId.get(id);
    if (watching === undefined) this.#byId.set(id, (watching = new Set()));
    const all = watching;
    all.add(look);
    return () => {
      all.delete(look);
      if (all.size === 0 && this.#byId.get(id) === all) this.#byId.delete(id);
    };
  }

  /** The run moved. Costs nothing while nobody watches anything. */
  moved(id: string): void {
    if (this.#byId.size === 0) return;
    for (const look of [...(this.#byId.get(id) ?? [])]) look();
  }

  /** Anything may have moved, or will never move again. */
  allMoved(): void {
    for (const id of [...this.#byId.keys()]) this.moved(id);
  }
}
