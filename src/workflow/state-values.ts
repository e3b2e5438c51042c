// State values: the named values of a run. Kept as text, so only `set` can change one.

import { decode } from "../base/index.ts";

export class StateValues {
  /** Undefined in most runs. */
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
  /** Without a key: everything. */
  clear(key: string | undefined): void {
    if (key === undefined) this.#texts?.clear();
    else this.#texts?.delete(key);
  }
}
