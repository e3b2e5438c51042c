// A worker process. It waits to be told where to work, says `ready` once it does, and lives until it is killed.

import { flushCompileCache } from "node:module";
import { createEngine, type StoreSource } from "reprise";
import { storeOf } from "../../src/engine/store-url.ts";
import { definitionsOf } from "./definitions.ts";

export interface Work {
  readonly url: string;
  readonly lease?: number;
  readonly concurrency?: number;
  /** It kills itself just before, or just after, its n-th commit that ends a node of a flow or a step. */
  readonly kill?: { readonly when: "before" | "after"; readonly commit: number };
}

function sourceOf({ url, kill }: Work): StoreSource {
  const source = storeOf(url);
  if (kill === undefined) return source;
  let commits = 0;
  return {
    async "~open"(options) {
      const store = await source["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          if (key !== "write") return value.bind(target) as unknown;
          return async (writes: Parameters<typeof store.write>[0]) => {
            const counts = writes.some(
              (write) => write.write === "complete" || (write.write === "turn" && write.entries.length > 0),
            );
            if (counts) commits += 1;
            const isIt = counts && commits === kill.commit;
            if (isIt && kill.when === "before") process.kill(process.pid, "SIGKILL");
            const outcomes = await target.write(writes);
            if (isIt && kill.when === "after") process.kill(process.pid, "SIGKILL");
            return outcomes;
          };
        },
      });
    },
  };
}

flushCompileCache();
process.send?.("here");
process.on("disconnect", () => process.exit(1));
process.on("message", (message) => {
  if (message === "time?") process.send?.({ time: Date.now() });
});
process.once("message", (message) => {
  const work = message as Work;
  void createEngine({
    store: sourceOf(work),
    definitions: definitionsOf(work.url),
    worker: { lease: work.lease ?? 400, concurrency: work.concurrency ?? 32 },
  }).then(
    () => process.send?.("ready"),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  );
});
