// A worker process for flows. It waits to be told where to work, and to kill itself just before, or just after, its n-th
// commit.

import { flushCompileCache } from "node:module";
import { createEngine } from "reprise";
import { sqlite } from "reprise/sqlite";
import { selfKillingStore, type Kill } from "../../engine/self-killing-store.ts";
import { twoHundred } from "./flow-definitions.ts";

export interface Work {
  readonly path: string;
  readonly kill?: Kill;
}

flushCompileCache();
process.on("disconnect", () => process.exit(1));
process.once("message", (work) => {
  const { path, kill } = work as Work;
  const worker = { lease: 300, concurrency: 2 };
  void createEngine({
    store: selfKillingStore(sqlite(path), kill, ({ write }) => write === "complete"),
    definitions: [twoHundred],
    worker,
  });
});
