// A worker process for graphs that kills itself where it is told: just before, or just after, it commits a step.
// Says `ready` once it works, and `ran <step>` whenever it runs a node.

import { createEngine, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { steps } from "./graph-definitions.ts";

const [path = "", when = "", at = "0"] = process.argv.slice(2);

const source: StoreSource = {
  async "~open"(options) {
    const store = await sqlite(path)["~open"](options);
    return new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        if (key !== "write") return value.bind(target) as unknown;
        return async (writes: Parameters<typeof store.write>[0]) => {
          const isIt = writes.some(
            (write) => write.write === "turn" && write.checkpoints?.some(({ step }) => step === Number(at)),
          );
          if (isIt && when === "before") process.kill(process.pid, "SIGKILL");
          const outcomes = await target.write(writes);
          if (isIt && when === "after") process.kill(process.pid, "SIGKILL");
          return outcomes;
        };
      },
    });
  },
};

await createEngine({ store: source, definitions: [steps], worker: { lease: 400 } });
process.send?.("ready");
