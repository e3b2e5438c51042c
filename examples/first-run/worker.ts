// A worker: opens the store, claims what is due, goes on until it is told to stop. Any number of them may run.

import { subscribe } from "node:diagnostics_channel";
import { createEngine, type RepriseEvent } from "reprise";
import { charge, notify, order, reserve } from "./order.ts";

export interface WorkerNews {
  readonly what: "ready" | "resumed";
  readonly run?: string;
  readonly entries?: number;
  readonly at: number;
}

function tell(news: Omit<WorkerNews, "at">): void {
  process.send?.({ ...news, at: Date.now() } satisfies WorkerNews);
}

subscribe("reprise", (message) => {
  const event = message as RepriseEvent;
  if (event.event === "run.resumed") tell({ what: "resumed", run: event.run, entries: event.entries });
});

const engine = await createEngine({
  store: process.env["STORE"] ?? "sqlite:orders.db",
  definitions: [order, notify, charge, reserve],
  worker: { lease: "1 s" }, // how long a dead worker's work stays its own; short, so that nobody has to wait here
});

async function stop(): Promise<void> {
  await engine.close();
  process.exit(0);
}
process.on("SIGTERM", () => void stop());
// Whoever started this process is gone.
process.on("disconnect", () => process.exit(1));
// Ctrl-C goes to everything in the terminal; the demo decides when its workers stop.
process.on("SIGINT", () => {});
tell({ what: "ready" });
