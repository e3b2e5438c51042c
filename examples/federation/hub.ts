// The hub: takes the log and the contents of the edge, hands digests on to the auditor, and executes tasks with the label gpu.

import { createFederation } from "reprise/federation";
import { readPlan, render } from "./shop.ts";

const { folder, vkeys, ports, tokens } = readPlan();

await using site = await createFederation({
  home: `${folder}/hub/.reprise`,
  definitions: [render],
  peers: {
    edge: { vkey: vkeys.edge, url: `http://127.0.0.1:${ports.edge}`, token: tokens.edge },
    auditor: { vkey: vkeys.auditor, token: tokens.auditor },
  },
  publish: [{ to: ["auditor"], origins: ["edge/*"], payloads: "hash-only" }],
  execute: { for: ["edge"], labels: ["gpu"] },
  // The edge starts later: until then its address does not answer.
  logger: false,
});
const { url } = await site.serve({ port: ports.hub });
console.log(`hub      serves ${new URL(url).hostname} and executes tasks with the label gpu`);
process.send?.("ready");
await new Promise((resolve) => process.once("disconnect", resolve));
