// The edge: works, publishes everything to the hub and digests to the auditor, and lets the hub execute what needs a GPU.

import { createEngine } from "reprise";
import { createFederation } from "reprise/federation";
import { definitions, order, readPlan } from "./shop.ts";

const { folder, vkeys, ports, tokens } = readPlan();
const store = `sqlite:${folder}/edge/shop.db?mkdir=1`;

await using site = await createFederation({
  home: `${folder}/edge/.reprise`,
  store,
  definitions,
  peers: {
    hub: { vkey: vkeys.hub, url: `http://127.0.0.1:${ports.hub}`, token: tokens.edge, push: true },
    auditor: { vkey: vkeys.auditor },
  },
  publish: [
    { to: ["hub"], payloads: "full" },
    { to: ["auditor"], payloads: "hash-only" },
  ],
  work: { gpu: "hub" },
  logger: "error",
});
await site.setOn(true);
await site.serve({ port: ports.edge });

await using engine = await createEngine({ store, definitions, logger: false });
for (const [index, product] of ["a lamp", "a chair"].entries()) {
  const run = await engine.start(order, { product, cents: 4_990 }, { id: `order-${index + 1}` });
  console.log(`edge     ${run.id} → ${JSON.stringify(await run.result())}`);
}
await site.sync();
const { origins } = await site.status();
console.log(`edge     its log has ${origins.find(({ peer }) => peer === "self")?.size} records`);
process.send?.("done");
await new Promise((resolve) => process.once("disconnect", resolve));
