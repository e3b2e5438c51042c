// The real SQLite store in the simulation: one database in memory that all processes share.

import { sqlite } from "reprise/sqlite";

import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { failed, isIdle, processStore, type Passage, type Witness } from "./process-store.ts";
import type { Life, OpenedStore } from "./process.ts";
import { crashPoint, latency, type SimStores, type StoresHost } from "./stores.ts";

/** What others notice, beside what is written by `write`. */
const TELLS: ReadonlySet<string> = new Set(["transact", "registerWorker", "renewLease", "releaseWorker"]);

export async function openSqliteStores(host: StoresHost): Promise<SimStores> {
  const { lane } = host;
  const random = host.random;
  const raw = await openSqliteStore({
    path: ":memory:",
    durability: "relaxed",
    clock: lane.clock,
    // Nothing of the store's own waits: it is never busy.
    timers: lane.timers,
    random,
  });
  let changes = 0;
  const counting: Witness = {
    wrote(process, write, outcome) {
      if (isIdle(write, outcome)) return;
      changes += 1;
      host.witness.wrote(process, write, outcome);
    },
  };
  return {
    kind: "sqlite",
    calm: raw,
    database: sqlite,
    async open(life: Life): Promise<OpenedStore> {
      let seen = changes;
      const passage: Passage = {
        async before(method, isWrite) {
          await latency(host, life);
          if (isWrite) await crashPoint(host, life, `before ${method}`);
          if (host.faults.happens("cut", 0.01)) throw failed(life, method);
        },
        async after(method, isWrite) {
          if (TELLS.has(method)) changes += 1;
          if (isWrite) await crashPoint(host, life, `after ${method}`);
          await latency(host, life);
          if (isWrite && host.faults.happens("unknown", 0.02)) throw failed(life, `after ${method}`);
        },
        hasChanged() {
          const changed = seen !== changes;
          seen = changes;
          return changed;
        },
        close: () => Promise.resolve(),
      };
      const wrapped = host.wrap?.(raw, life) ?? raw;
      return { store: processStore(wrapped, life, passage, counting), kill: () => {} };
    },
    close: () => raw.close(),
  };
}
