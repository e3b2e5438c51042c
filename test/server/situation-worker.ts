// A worker of the situations in a process of its own. Arguments: the store, and `shop`, `invoice` or `changed-invoice`.

import { createEngine } from "reprise";
import { invoice, SHOP } from "./situation-definitions.ts";

const [store = "", role = "shop"] = process.argv.slice(2);
const engine = await createEngine({
  store,
  definitions: role === "shop" ? [...SHOP] : ([invoice(role === "changed-invoice")] as never[]),
  worker: { lease: "1 second" },
  logger: false,
});
process.send?.("ready");
process.once("disconnect", () => void engine.close({ grace: 100 }).finally(() => process.exit(0)));
