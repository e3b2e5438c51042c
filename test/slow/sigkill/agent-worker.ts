// A worker process of the example agent. Told where to work and when to die: it kills itself just before, or just after, its
// n-th commit; without a number it lives, and may be sent to one store after the other. Says `ready`, and `closed` when it
// has left a store.

import { flushCompileCache } from "node:module";
import { createEngine, type Engine } from "reprise";
import { sqlite } from "reprise/sqlite";
import { agent } from "../../../examples/agent/agent.ts";
import { deliverMail } from "../../../examples/agent/outside.ts";
import { selfKillingStore, type Kill } from "../../engine/self-killing-store.ts";

export interface Work {
  readonly path: string;
  readonly ledger: string;
  readonly kill?: Kill;
}

/** What moves a run, or its messages; asking for work is no commit. */
const COMMITS = new Set(["turn", "return-turn", "message-delivered"]);

let engine: Engine | undefined;

async function hear(work: Work | "leave"): Promise<void> {
  if (work === "leave") {
    await engine?.close();
    engine = undefined;
    process.send?.("closed");
    return;
  }
  process.env["LEDGER"] = work.ledger;
  engine = await createEngine({
    store: selfKillingStore(sqlite(work.path), work.kill, ({ write }) => COMMITS.has(write)),
    definitions: [agent],
    outbox: { mail: deliverMail },
    worker: { lease: 400 },
  });
}

process.on("message", (work) => void hear(work as Work | "leave"));
process.on("disconnect", () => process.exit(1));
// Who is killed leaves no cache behind.
flushCompileCache();
process.send?.("ready");
