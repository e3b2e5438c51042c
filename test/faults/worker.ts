// Worker: a worker process. It waits for its store and definitions, reports `ready`, and runs until it is killed.

import { flushCompileCache } from "node:module";
import { createEngine, type StoreSource } from "reprise";
import { storeOf } from "../../src/stores/store-url.ts";
import { selfKillingStore, type Kill } from "../engine/self-killing-store.ts";
import { definitionsOf } from "./definitions.ts";

export interface Work {
  readonly url: string;
  readonly lease?: number;
  readonly concurrency?: number;
  /** It kills itself just before, or just after, its nth commit that completes a node of a flow or a step. */
  readonly kill?: Kill;
}

function sourceOf({ url, kill }: Work): StoreSource {
  return selfKillingStore(
    storeOf(url),
    kill,
    (write) => write.write === "complete" || (write.write === "turn" && write.entries.length > 0),
  );
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
