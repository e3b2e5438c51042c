// Listeners: who listens for which run.

export class Listeners<L> {
  readonly #byId = new Map<string, Set<L>>();

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
    return [...(this.#byId.get(id) ?? [])];
  }

  /** Answers how to stop listening. */
  add(id: string, listener: L): () => void {
    let listening = this.#byId.get(id);
    if (listening === undefined) this.#byId.set(id, (listening = new Set()));
    const all = listening;
    all.add(listener);
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#byId.get(id) === all) this.#byId.delete(id);
    };
  }

  /** Those who listened; from now on nobody does. */
  take(id: string): readonly L[] {
    if (!this.#byId.has(id)) return [];
    const all = this.of(id);
    this.#byId.delete(id);
    return all;
  }
}
