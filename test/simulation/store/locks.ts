// Locks: row locks. Waiters are resolved in turn; none of them polls.
//
// locks.R1. First come, first served: no request overtakes a waiter, so that no waiter starves.
// locks.R2. A request that would complete a cycle of waiters is refused at once (`deadlock`).

/** The holder of locks: a transaction. */
export type Owner = object;
export type LockMode = "share" | "update";

interface Waiter {
  readonly owner: Owner;
  readonly mode: LockMode;
  readonly done: (got: Got) => void;
}
interface HeldLock {
  readonly holders: Map<Owner, LockMode>;
  readonly waiters: Waiter[];
}
/** The result of a wait. `ended`: its owner released everything meanwhile. */
export type Got = "got" | "deadlock" | "ended";

export class Locks {
  readonly #held = new Map<string, HeldLock>();
  readonly #byOwner = new Map<Owner, Set<string>>();
  readonly #waiting = new Map<Owner, string>();

  /** Whether another owner holds, or waits for, a lock that conflicts with this mode. */
  isTaken(name: string, owner: Owner, mode: LockMode): boolean {
    const held = this.#held.get(name);
    return held !== undefined && (isExcluded(held, owner, mode) || held.waiters.length > 0);
  }

  holds(name: string, owner: Owner): boolean {
    return this.#held.get(name)?.holders.has(owner) ?? false;
  }

  /** Synchronous when there is no conflict: then nothing is awaited. */
  take(name: string, owner: Owner, mode: LockMode): Got | Promise<Got> {
    const held = this.#heldOf(name);
    const has = held.holders.get(owner);
    if (has === "update" || has === mode) return "got";
    // An owner with a share lock need not wait behind waiters for that lock.
    const isFree = !isExcluded(held, owner, mode) && (has !== undefined || held.waiters.length === 0);
    if (isFree) {
      this.#grant(name, held, owner, mode);
      return "got";
    }
    if (this.#wouldCircle(owner, held)) return "deadlock"; // R2
    this.#waiting.set(owner, name);
    return new Promise((resolve) => {
      const waiter: Waiter = { owner, mode, done: resolve };
      if (has === undefined) held.waiters.push(waiter);
      else held.waiters.unshift(waiter);
    });
  }

  /** Releases one lock that is not needed. */
  drop(name: string, owner: Owner): void {
    const held = this.#held.get(name);
    if (held === undefined || !held.holders.delete(owner)) return;
    this.#byOwner.get(owner)?.delete(name);
    this.#wake(name, held);
  }

  /** Releases everything an owner holds and waits for. */
  release(owner: Owner): void {
    const waitsFor = this.#waiting.get(owner);
    if (waitsFor !== undefined) {
      this.#waiting.delete(owner);
      const held = this.#held.get(waitsFor)!;
      const index = held.waiters.findIndex((waiter) => waiter.owner === owner);
      const [waiter] = held.waiters.splice(index, 1);
      waiter!.done("ended");
      this.#wake(waitsFor, held);
    }
    const names = this.#byOwner.get(owner) ?? [];
    this.#byOwner.delete(owner);
    for (const name of names) {
      const held = this.#held.get(name)!;
      held.holders.delete(owner);
      this.#wake(name, held);
    }
  }

  #heldOf(name: string): HeldLock {
    let held = this.#held.get(name);
    if (held === undefined) this.#held.set(name, (held = { holders: new Map(), waiters: [] }));
    return held;
  }

  #grant(name: string, held: HeldLock, owner: Owner, mode: LockMode): void {
    held.holders.set(owner, mode);
    let names = this.#byOwner.get(owner);
    if (names === undefined) this.#byOwner.set(owner, (names = new Set()));
    names.add(name);
  }

  /** locks.R1 */
  #wake(name: string, held: HeldLock): void {
    for (let next = held.waiters[0]; next !== undefined; next = held.waiters[0]) {
      if (isExcluded(held, next.owner, next.mode)) return;
      held.waiters.shift();
      this.#waiting.delete(next.owner);
      this.#grant(name, held, next.owner, next.mode);
      next.done("got");
    }
    if (held.holders.size === 0) this.#held.delete(name);
  }

  #wouldCircle(owner: Owner, wanted: HeldLock): boolean {
    const seen = new Set<Owner>();
    const leadsBack = (held: HeldLock, asking: Owner): boolean => {
      // The holders, and the earlier waiters.
      const before = held.waiters.findIndex((waiter) => waiter.owner === asking);
      const line = held.waiters.slice(0, before === -1 ? undefined : before).map((waiter) => waiter.owner);
      for (const other of [...held.holders.keys(), ...line]) {
        if (other === asking) continue;
        if (other === owner) return true;
        if (seen.has(other)) continue;
        seen.add(other);
        const waitsFor = this.#waiting.get(other);
        if (waitsFor !== undefined && leadsBack(this.#held.get(waitsFor)!, other)) return true;
      }
      return false;
    };
    return leadsBack(wanted, owner);
  }
}

function isExcluded(held: HeldLock, owner: Owner, mode: LockMode): boolean {
  for (const [holder, has] of held.holders)
    if (holder !== owner && (mode === "update" || has === "update")) return true;
  return false;
}
