// A worker: opens the store and executes runs until it receives SIGTERM. Any number of workers may run.

import { subscribe } from "node:diagnostics_channel";
import { createEngine, type RepriseEvent } from "reprise";
import { charge, notify, order, reserve } from "./order.ts";

export interface WorkerMessage {
  readonly what: "ready" | "resumed";
  readonly run?: string;
  readonly entries?: number;
  readonly at: number;
}

function report(message: Omit<WorkerMessage, "at">): void {
  process.send?.({ ...message, at: Date.now() } satisfies WorkerMessage);
}

subscribe("reprise", (published) => {
  const event = published as RepriseEvent;
  if (event.event === "run.resumed") report({ what: "resumed", run: event.run, entries: event.entries });
});

const engine = await createEngine({
  store: process.env["STORE"] ?? "sqlite:orders.db",
  definitions: [order, notify, charge, reserve],
  worker: { lease: "1 s" }, // short, so that another worker takes over quickly
});

async function stop(): Promise<void> {
  await engine.close();
  process.exit(0);
}
process.on("SIGTERM", () => void stop());
// The parent process has exited.
process.on("disconnect", () => process.exit(1));
// Ctrl-C reaches every process in the terminal; the demo decides when its workers stop.
process.on("SIGINT", () => {});
report({ what: "ready" });
