// A worker process of the example agent. Told where to work and when to die: it kills itself just before, or just after, its
// n-th commit; without a number it lives, and may be sent to one store after the other. Says `ready`, and `closed` when it
// has left a store.

import { flushCompileCache } from "node:module";
import { createEngine, type Engine, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { agent } from "../../../examples/agent/agent.ts";
import { deliverMail } from "../../../examples/agent/outside.ts";

export interface Work {
  readonly path: string;
  readonly ledger: string;
  readonly kill?: { readonly when: "before" | "after"; readonly commit: number };
}

/** What moves a run, or its messages; asking for work is no commit. */
const COMMITS = new Set(["turn", "turn-back", "message-delivered"]);

function mortal({ path, kill }: Work): StoreSource {
  let commits = 0;
  return {
    async "~open"(options) {
      const store = await sqlite(path)["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          if (key !== "write") return value.bind(target) as unknown;
          return async (writes: Parameters<typeof store.write>[0]) => {
            if (!writes.some(({ write }) => COMMITS.has(write))) return target.write(writes);
            commits += 1;
            if (kill?.when === "before" && kill.commit === commits) process.kill(process.pid, "SIGKILL");
            const outcomes = await target.write(writes);
            if (kill?.when === "after" && kill.commit === commits) process.kill(process.pid, "SIGKILL");
            return outcomes;
          };
        },
      });
    },
  };
}

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
    store: mortal(work),
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
