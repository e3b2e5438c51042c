// A worker process that lives until it is killed. Says `ready` once it works.

import { flushCompileCache } from "node:module";
import { createEngine } from "reprise";
import { double, leaf, load, shaky } from "./definitions.ts";

const [path = ""] = process.argv.slice(2);
await createEngine({
  store: `sqlite:${path}`,
  definitions: [load, leaf, double, shaky],
  worker: { lease: 400, concurrency: 32 },
});
// Who is killed leaves no cache behind.
flushCompileCache();
process.send?.("ready");
