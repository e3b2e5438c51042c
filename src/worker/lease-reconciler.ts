// LeaseReconciler: compares the leases that the database lists for this worker with the work the worker holds.
//
// lease-reconciler.R1. The worker releases leases it does not know. Otherwise they would last as long as the worker renews
//   its own lease. They appear when the database goes back to a state between a claim and its completion.
// lease-reconciler.R2. A lease that is unknown once may belong to a claim or a commit in flight. The worker releases it when
//   two checks in a row found it, under the same token; that token is the fence of the release.
// lease-reconciler.R3. One query per lease duration, however much the worker holds.

import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<"log" | "outbox" | "persistentWrites" | "runs" | "store" | "tasks">;

export class LeaseReconciler {
  readonly #parts: UsedParts;
  /** lease-reconciler.R2. Unknown tokens of the last check. */
  #unknown: ReadonlySet<string> = new Set();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  async run(worker: number): Promise<void> {
    const { store, runs, tasks, outbox, persistentWrites, log } = this.#parts;
    const { turns, items, messages } = await store.readHeld(worker);
    const unknownTurns = turns.filter(({ run, token }) => !runs.holdsToken(run, token));
    const unknownItems = items.filter(({ run, item, token }) => !tasks.holdsToken(run, item, token));
    const before = this.#unknown;
    const unknownMessages = messages.filter(({ token }) => !outbox.isDelivering(token));
    this.#unknown = new Set([...unknownTurns, ...unknownItems, ...unknownMessages].map(({ token }) => token));
    const wasUnknown = ({ token }: { readonly token: string }): boolean => before.has(token);
    const lost = [
      ...unknownTurns.filter(wasUnknown).map(({ run, token }) => ({ write: "return-turn", run, token }) as const),
      ...unknownItems.filter(wasUnknown).map((item) => ({ write: "return-item", ...item }) as const),
      ...unknownMessages
        .filter(wasUnknown)
        .map((message) => ({ write: "return-message", ...message, availableAt: store.now() }) as const),
    ];
    for (const write of lost)
      if (write.write === "return-message") outbox.submit(write);
      else persistentWrites.submit(write);
    if (lost.length > 0) log.leasesReleased(lost.length);
  }
}
