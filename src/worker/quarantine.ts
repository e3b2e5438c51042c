// Quarantine: while a group of suspects (S5) has not shown that it can commit, this worker claims nothing else (SU2).
//
// If the worker dies now, one of the group killed it. The window bounds that in time: a suspect whose honest work takes long
// must not stop a worker.

import type { Timers } from "../base/index.ts";
import { quarantineMs } from "../kernel/index.ts";

export class Quarantine {
  readonly #timers: Timers;
  readonly #over: () => void;
  readonly #members = new Set<string>();
  #window: { readonly ms: number; readonly cancel: () => void } | undefined;

  constructor(timers: Timers, over: () => void) {
    this.#timers = timers;
    this.#over = over;
  }

  get isKept(): boolean {
    return this.#members.size > 0;
  }

  /** One more member. The window is that of the highest level among them. */
  add(member: string, level: number): void {
    this.#members.add(member);
    const ms = quarantineMs(level);
    if (this.#window !== undefined && this.#window.ms >= ms) return;
    this.#window?.cancel();
    this.#window = { ms, cancel: this.#timers.set(ms, () => this.#end(), { ref: false }) };
  }

  /** The member has committed. */
  proved(member: string): void {
    if (this.#members.delete(member) && this.#members.size === 0) this.#end();
  }

  #end(): void {
    this.#members.clear();
    this.#window?.cancel();
    this.#window = undefined;
    this.#over();
  }
}
