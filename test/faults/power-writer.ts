// Power writer: starts runs, and reports each acknowledgment in a separate system call.

import { openSync, writeSync } from "node:fs";
import { createEngine } from "reprise";
import { steps } from "./definitions.ts";

const [url = "", count = "0", durability = "full"] = process.argv.slice(2);
const out = openSync("/dev/null", "w");
const acknowledge = (what: string, id: string): void => void writeSync(out, `ack ${what} ${id}\n`);

const engine = await createEngine({ store: url, definitions: [steps], durability: durability as "full" });
const FEEDERS = 3;
await Promise.all(
  Array.from({ length: FEEDERS }, async (_, feeder) => {
    for (let n = feeder; n < Number(count); n += FEEDERS) {
      const run = await engine.start(steps, 3, { id: `run-${n}` });
      acknowledge("started", run.id);
      await run.result();
      acknowledge("ended", run.id);
    }
  }),
);
// Without a clean shutdown: the power fails while the file is in use.
process.kill(process.pid, "SIGKILL");
