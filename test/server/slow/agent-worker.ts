// A worker of the workflow for agents, in a process of its own. Argument: the store.

import { createEngine } from "reprise";
import { interrupted } from "./agent-definitions.ts";

const [store = ""] = process.argv.slice(2);
const engine = await createEngine({ store, definitions: [interrupted], worker: { lease: "1 second" }, logger: false });
process.send?.("ready");
process.once("disconnect", () => void engine.close({ grace: 100 }).finally(() => process.exit(0)));
