// Federated: a store that notes the ends of runs, and a sequencer beside its worker.

import { systemClock, systemTimers } from "../src/base/index.ts";
import type { AnyStore } from "./open-store.ts";

/** `noted`: the ends of runs are noted only. `sequenced`: a sequencer in this process appends them, for 5 % of the time. */
export type Federated = "noted" | "sequenced";

export function isFederated(text: string | undefined): text is Federated | undefined {
  return text === undefined || text === "noted" || text === "sequenced";
}

const PAUSE_MS = 100;

/** Returns how to stop it. */
export async function startLogging(store: AnyStore, federated: Federated | undefined): Promise<() => Promise<void>> {
  if (federated === undefined) return async () => {};
  await store.setFederated(true);
  if (federated === "noted") return async () => {};
  // Most measurements need neither.
  const { Sequencer } = await import("../src/federation/sync/sequencer.ts");
  const { signingKeyOf } = await import("../src/receipts/index.ts");
  const sequencer = new Sequencer({
    store,
    key: signingKeyOf(new Uint8Array(32), "bench"),
    clock: systemClock,
    timers: systemTimers,
    share: 0.05,
  });
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      await sequencer.run();
      await new Promise<void>((resolve) => void systemTimers.set(PAUSE_MS, resolve));
    }
  })();
  return async () => {
    isOver = true;
    await running;
  };
}
