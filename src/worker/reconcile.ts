// Reconcile: what the database says this worker holds, compared with what the worker knows.
//
// RC1. A turn or an item that the database says is held here, and that the worker does not know, would stay so for as long as this
//      worker lives. That happens when the database goes back to a state between a claim and its completion.
// RC2. What is found once may be on its way: a claim that was not yet answered, a commit under way. What is found twice in a
//      row, under the same token, is given back; its fence is that token, so nothing else can be meant.
// RC3. Once per lease: one question, however much is held.

import type { HeldWork, MessageBackWrite, Store } from "../kernel/index.ts";
import type { Insisted } from "./claims-given-back.ts";

export interface ReconcileHost {
  readonly store: Store;
  knowsTurn(turn: HeldWork["turns"][number]): boolean;
  knowsItem(item: HeldWork["items"][number]): boolean;
  knowsMessage(message: HeldWork["messages"][number]): boolean;
  /** Gives it back, until the store has taken it. */
  insist(write: Insisted | MessageBackWrite): void;
  gaveBack(count: number): void;
}

export class Reconcile {
  readonly #host: ReconcileHost;
  /** RC2. Tokens that the worker did not know the last time. */
  #unknown: ReadonlySet<string> = new Set();

  constructor(host: ReconcileHost) {
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
      ...unknownTurns.filter(wasUnknown).map(({ run, token }) => ({ write: "turn-back", run, token }) as const),
      ...unknownItems.filter(wasUnknown).map((item) => ({ write: "item-back", ...item }) as const),
      ...unknownMessages
        .filter(wasUnknown)
        .map((message) => ({ write: "message-back", ...message, availableAt: store.now() }) as const),
    ];
    for (const write of lost) this.#host.insist(write);
    if (lost.length > 0) this.#host.gaveBack(lost.length);
  }
}
