// A process that executes runs of a store and delivers their events: node webhook-process.ts <store> <url> <secret> [start]
// Prints `ended` when the run has ended.

import { createEngine, workflow } from "reprise";

const [store = "", url = "", secret = "", start] = process.argv.slice(2);
const order = workflow("order", async (ctx) => ctx.run("charge", () => 5));
const engine = await createEngine({
  store,
  definitions: [order],
  webhooks: [{ name: "receiver", url, secret }],
  worker: { lease: "1 s" },
  logger: false,
});
if (start !== undefined) {
  await (await engine.start(order, undefined, { id: "order-1" })).result();
  process.stdout.write("ended\n");
}
