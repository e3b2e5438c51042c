// Quarantine: a worker that claimed a group of suspects (store.S5) claims nothing else until each has committed (suspects.S2).
//
// If the worker dies meanwhile, a member of the group killed it. A time window limits the quarantine, so that a suspect whose
// work takes long does not stop the worker.

import { ISOLATED_AFTER, quarantineMs } from "../kernel/index.ts";
import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<"claimer" | "timers">;

export class Quarantine {
  readonly #parts: UsedParts;
  readonly #members = new Set<string>();
  /** suspects.S3. Until they commit, the store gives this worker no other suspect, even after the window has ended. */
  readonly #isolated = new Set<string>();
  #window: { readonly ms: number; readonly cancel: () => void } | undefined;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  get isActive(): boolean {
    return this.#members.size > 0;
  }

  /** What this worker knows; the store decides. */
  get holdsIsolated(): boolean {
    return this.#isolated.size > 0;
  }

  /** The member with the highest level sets the window. */
  add(member: string, level: number): void {
    this.#members.add(member);
    if (level >= ISOLATED_AFTER) this.#isolated.add(member);
    const ms = quarantineMs(level);
    if (this.#window !== undefined && this.#window.ms >= ms) return;
    this.#window?.cancel();
    this.#window = { ms, cancel: this.#parts.timers.set(ms, () => this.#end(), { ref: false }) };
  }

  /** The member has committed, or is about to: it did not kill the worker. */
  clear(member: string): void {
    if (this.#members.size + this.#isolated.size === 0) return;
    const wasIsolated = this.#isolated.delete(member);
    if (this.#members.delete(member) && this.#members.size === 0) this.#end();
    else if (wasIsolated && this.#members.size === 0) this.#over();
  }

  /** The worker dropped everything it held. */
  reset(): void {
    this.#isolated.clear();
    if (this.#members.size > 0) this.#end();
  }

  #end(): void {
    this.#members.clear();
    this.#window?.cancel();
    this.#window = undefined;
    this.#over();
  }

  /** The worker may claim suspects again. */
  #over(): void {
    this.#parts.claimer.request("turns", "items");
  }
}
