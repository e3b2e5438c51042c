// A worker process of the agent. Any number of them may run; this story has one at a time.

import { createEngine } from "reprise";
import { agent } from "./agent.ts";
import { deliverMail } from "./outside.ts";

const engine = await createEngine({
  store: process.env["STORE"] ?? "sqlite:agent.db",
  definitions: [agent],
  outbox: { mail: deliverMail },
  worker: { lease: "1 s" }, // how long a dead worker's work stays its own; short, so that nobody has to wait here
});

process.on("SIGTERM", () => void engine.close().then(() => process.exit(0)));
// Whoever started this process is gone.
process.on("disconnect", () => process.exit(1));
process.on("SIGINT", () => {});
process.send?.("ready");
