// BudgetOffers: lets calls that wait for a budget continue when others have left room for them (spending.S6).
//
// budget-offers.O1. Room appears when a call ends that cost less than it reserved, in any process. So the process in which a call began to
//   wait polls the budget, as long as calls are in progress that may leave room. After that only a person can help, and nothing is polled.
//   One offer wakes a limited number of calls; the next ones wake the others.
// budget-offers.O2. A call that was woken is not woken again until it has tried to reserve. One that no longer waits is forgotten.

import { offerKey, type OfferBudgetOutcome, type OfferedCall } from "../kernel/index.ts";
import type { PartsOf } from "./worker-parts.ts";

const FIRST_MS = 100;
const LAST_MS = 5_000;

type UsedParts = PartsOf<"events" | "isStopped" | "pump" | "runs" | "timers">;

interface Watched {
  /** budget-offers.O2. By `offerKey`. */
  readonly woken: Map<string, OfferedCall>;
  delayMs: number;
  /** A call began to wait after the last offer was made. */
  isRenewed: boolean;
}

export class BudgetOffers {
  readonly #parts: UsedParts;
  /** By the id of the run that the budget belongs to. */
  readonly #watched = new Map<string, Watched>();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** A call has begun to wait, or waits again. */
  watch(owner: string, call: OfferedCall): void {
    const known = this.#watched.get(owner);
    if (known === undefined) {
      this.#watched.set(owner, { woken: new Map(), delayMs: FIRST_MS, isRenewed: false });
      return this.#later(owner);
    }
    known.woken.delete(offerKey(call));
    known.isRenewed = true;
  }

  #later(owner: string): void {
    const watched = this.#watched.get(owner)!;
    this.#parts.timers.set(watched.delayMs, () => void this.#offer(owner, watched), { ref: false });
  }

  async #offer(owner: string, watched: Watched): Promise<void> {
    const { events, isStopped, pump, runs } = this.#parts;
    if (isStopped) return;
    watched.isRenewed = false;
    const except = [...watched.woken.values()];
    let outcome: OfferBudgetOutcome;
    try {
      outcome = await pump.submit({ write: "offer-budget", id: owner, except });
    } catch {
      // The store cannot be reached. If the calls were woken, they try to reserve.
      outcome = { woken: [], pending: except, mayFree: true };
    }
    const pending = new Set(outcome.pending.map(offerKey));
    for (const call of except) if (!pending.has(offerKey(call))) watched.woken.delete(offerKey(call));
    for (const call of outcome.woken) {
      watched.woken.set(offerKey(call), call);
      runs.arrived(call.run);
    }
    if (outcome.woken.length > 0) events.due();
    watched.delayMs = outcome.woken.length > 0 ? FIRST_MS : Math.min(LAST_MS, watched.delayMs * 2);
    if (outcome.mayFree || watched.isRenewed) this.#later(owner);
    else this.#watched.delete(owner);
  }
}
