// Quarantine: while a group of suspects (S5) has not shown that it can commit, this worker claims nothing else (SU2).
//
// If the worker dies now, one of the group killed it. The window bounds that in time: a suspect whose honest work takes long
// must not stop a worker.

import type { Timers } from "../base/index.ts";
import { ISOLATED_AFTER, quarantineMs } from "../kernel/index.ts";

export class Quarantine {
  readonly #timers: Timers;
  readonly #over: () => void;
  readonly #members = new Set<string>();
  /** SU3. The store gives this worker no other suspect before they have committed, however long ago the window was. */
  readonly #isolated = new Set<string>();
  #window: { readonly ms: number; readonly cancel: () => void } | undefined;

  /** `over`: suspects may be claimed again. */
  constructor(timers: Timers, over: () => void) {
    this.#timers = timers;
    this.#over = over;
  }

  get isKept(): boolean {
    return this.#members.size > 0;
  }

  /** As far as this worker knows; the store knows better. */
  get holdsIsolated(): boolean {
    return this.#isolated.size > 0;
  }

  /** One more member. The window is that of the highest level among them. */
  add(member: string, level: number): void {
    this.#members.add(member);
    if (level >= ISOLATED_AFTER) this.#isolated.add(member);
    const ms = quarantineMs(level);
    if (this.#window !== undefined && this.#window.ms >= ms) return;
    this.#window?.cancel();
    this.#window = { ms, cancel: this.#timers.set(ms, () => this.#end(), { ref: false }) };
  }

  /** The member has committed, or is about to. */
  proved(member: string): void {
    if (this.#members.size + this.#isolated.size === 0) return;
    const wasIsolated = this.#isolated.delete(member);
    if (this.#members.delete(member) && this.#members.size === 0) this.#end();
    else if (wasIsolated && this.#members.size === 0) this.#over();
  }

  /** Everything held was given up. */
  clear(): void {
    this.#isolated.clear();
    if (this.#members.size > 0) this.#end();
  }

  #end(): void {
    this.#members.clear();
    this.#window?.cancel();
    this.#window = undefined;
    this.#over();
  }
}
