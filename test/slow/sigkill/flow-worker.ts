// A worker process for flows. It waits to be told where to work, and to kill itself just before, or just after, its n-th
// commit.

import { flushCompileCache } from "node:module";
import { createEngine, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { twoHundred } from "./flow-definitions.ts";

export interface Work {
  readonly path: string;
  readonly kill?: { readonly when: "before" | "after"; readonly commit: number };
}

let commits = 0;
const sourceOf = ({ path, kill }: Work): StoreSource => ({
  async "~open"(options) {
    const store = await sqlite(path)["~open"](options);
    return new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        if (key !== "write") return value.bind(target) as unknown;
        return async (writes: Parameters<typeof store.write>[0]) => {
          if (writes.some(({ write }) => write === "complete")) commits += 1;
          const isIt = commits === kill?.commit;
          if (isIt && kill?.when === "before") process.kill(process.pid, "SIGKILL");
          const outcomes = await target.write(writes);
          if (isIt && kill?.when === "after") process.kill(process.pid, "SIGKILL");
          return outcomes;
        };
      },
    });
  },
});

flushCompileCache();
process.on("disconnect", () => process.exit(1));
process.once("message", (work) => {
  const worker = { lease: 300, concurrency: 2 };
  void createEngine({ store: sourceOf(work as Work), definitions: [twoHundred], worker });
});
