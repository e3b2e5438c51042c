// Named values the journal keeps. Held as text, so that nobody can change one but through `set`.

import { decode } from "../base/index.ts";

export class StateValues {
  /** Most runs have none. */
  #texts: Map<string, string> | undefined;

  get(key: string): unknown {
    const text = this.#texts?.get(key);
    return text === undefined ? undefined : decode(text);
  }
  keys(): string[] {
    return [...(this.#texts?.keys() ?? [])];
  }
  set(key: string, text: string): void {
    (this.#texts ??= new Map()).set(key, text);
  }
  /** Everything, without a key. */
  clear(key: string | undefined): void {
    if (key === undefined) this.#texts?.clear();
    else this.#texts?.delete(key);
  }
}
