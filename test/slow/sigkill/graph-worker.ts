// A worker process for graphs that kills itself where it is told: just before, or just after, it commits a step.
// Says `ready` once it works, and `ran <step>` whenever it runs a node.

import { flushCompileCache } from "node:module";
import { createEngine } from "reprise";
import { sqlite } from "reprise/sqlite";
import { selfKillingStore } from "../../engine/self-killing-store.ts";
import { steps } from "./graph-definitions.ts";

const [path = "", when = "", at = "0"] = process.argv.slice(2);

const kill = when === "before" || when === "after" ? ({ when, commit: 1 } as const) : undefined;
const source = selfKillingStore(
  sqlite(path),
  kill,
  (write) => write.write === "turn" && write.checkpoints?.some(({ step }) => step === Number(at)) === true,
);

await createEngine({ store: source, definitions: [steps], worker: { lease: 400 } });
// Who is killed leaves no cache behind.
flushCompileCache();
process.send?.("ready");
