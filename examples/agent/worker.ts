// A worker process for the agent. Any number of workers may run; main.ts runs one at a time.

import { createEngine } from "reprise";
import { agent } from "./agent.ts";
import { deliverMail } from "./outside.ts";

const engine = await createEngine({
  store: process.env["STORE"] ?? "sqlite:agent.db",
  definitions: [agent],
  outbox: { mail: deliverMail },
  worker: { lease: "1 s" }, // short, so that another worker takes over quickly
});

process.on("SIGTERM", () => void engine.close().then(() => process.exit(0)));
// The parent process has exited.
process.on("disconnect", () => process.exit(1));
process.on("SIGINT", () => {});
process.send?.("ready");
