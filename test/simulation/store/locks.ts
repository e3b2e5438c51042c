// Locks of rows. Waiters park and are woken when it is their turn; nobody looks again and again.
//
// R1. First come, first served: nobody overtakes a waiter, so that nobody waits for ever.
// R2. A transaction that would close a circle of waiters is given up at once (`deadlock`): whoever asked last.

/** Whoever holds locks: a transaction. */
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
/** What became of waiting. `ended`: its owner gave up everything meanwhile. */
export type Got = "got" | "deadlock" | "ended";

export class Locks {
  readonly #held = new Map<string, HeldLock>();
  readonly #byOwner = new Map<Owner, Set<string>>();
  readonly #waiting = new Map<Owner, string>();

  /** Whether somebody else has, or waits for, what this mode excludes. */
  isTaken(name: string, owner: Owner, mode: LockMode): boolean {
    const held = this.#held.get(name);
    return held !== undefined && (isExcluded(held, owner, mode) || held.waiters.length > 0);
  }

  holds(name: string, owner: Owner): boolean {
    return this.#held.get(name)?.holders.has(owner) ?? false;
  }

  /** At once where nobody stands in the way: then nothing is awaited. */
  take(name: string, owner: Owner, mode: LockMode): Got | Promise<Got> {
    const held = this.#heldOf(name);
    const has = held.holders.get(owner);
    if (has === "update" || has === mode) return "got";
    // Whoever shares it already need not queue behind those who wait for exactly that to end.
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

  /** One lock that turned out not to be wanted. */
  drop(name: string, owner: Owner): void {
    const held = this.#held.get(name);
    if (held === undefined || !held.holders.delete(owner)) return;
    this.#byOwner.get(owner)?.delete(name);
    this.#wake(name, held);
  }

  /** Everything an owner has and waits for. */
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

  /** R1 */
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
      // Those who have it, and those before in line.
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
