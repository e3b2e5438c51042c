// LeaseReconciler: compares the leases that the database lists for this worker with the work the worker holds.
//
// lease-reconciler.R1. The worker releases leases it does not know. Otherwise they would last as long as the worker renews
//   its own lease. They appear when the database goes back to a state between a claim and its completion.
// lease-reconciler.R2. A lease that is unknown once may belong to a claim or a commit in flight. The worker releases it when
//   two checks in a row found it, under the same token; that token is the fence of the release.
// lease-reconciler.R3. One query per lease duration, however much the worker holds.

import type { HeldWork, ReturnMessageWrite, Store } from "../kernel/index.ts";
import type { PersistentWrite } from "./released-claims.ts";

export interface LeaseReconcilerHost {
  readonly store: Store;
  knowsTurn(turn: HeldWork["turns"][number]): boolean;
  knowsItem(item: HeldWork["items"][number]): boolean;
  knowsMessage(message: HeldWork["messages"][number]): boolean;
  /** Repeats the release until the store answers. */
  persist(write: PersistentWrite | ReturnMessageWrite): void;
  released(count: number): void;
}

export class LeaseReconciler {
  readonly #host: LeaseReconcilerHost;
  /** lease-reconciler.R2. Unknown tokens of the last check. */
  #unknown: ReadonlySet<string> = new Set();

  constructor(host: LeaseReconcilerHost) {
    this.#host = host;
  }

  async run(worker: number): Promise<void> {
    const { store } = this.#host;
    const { turns, items, messages } = await store.readHeld(worker);
    const unknownTurns = turns.filter((turn) => !this.#host.knowsTurn(turn));
    const unknownItems = items.filter((item) => !this.#host.knowsItem(item));
    const before = this.#unknown;
    const unknownMessages = messages.filter((message) => !this.#host.knowsMessage(message));
    this.#unknown = new Set([...unknownTurns, ...unknownItems, ...unknownMessages].map(({ token }) => token));
    const wasUnknown = ({ token }: { readonly token: string }): boolean => before.has(token);
    const lost = [
      ...unknownTurns.filter(wasUnknown).map(({ run, token }) => ({ write: "return-turn", run, token }) as const),
      ...unknownItems.filter(wasUnknown).map((item) => ({ write: "return-item", ...item }) as const),
      ...unknownMessages
        .filter(wasUnknown)
        .map((message) => ({ write: "return-message", ...message, availableAt: store.now() }) as const),
    ];
    for (const write of lost) this.#host.persist(write);
    if (lost.length > 0) this.#host.released(lost.length);
  }
}
