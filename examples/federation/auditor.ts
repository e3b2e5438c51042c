// The auditor: trusts the key of the edge and nothing else. It gets the log and digests from the hub, and writes bundles to verify.

import { writeFileSync } from "node:fs";
import { createFederation } from "reprise/federation";
import { readPlan } from "./shop.ts";

const { folder, vkeys, ports, tokens } = readPlan();

await using site = await createFederation({
  home: `${folder}/auditor/.reprise`,
  peers: {
    hub: { vkey: vkeys.hub, url: `http://127.0.0.1:${ports.hub}`, token: tokens.auditor, pull: ["*"] },
    edge: { vkey: vkeys.edge },
  },
  sync: "manual",
});
const [pulled] = await site.pull("hub");
console.log(`auditor  pulled ${pulled?.pulled} records, ${pulled?.error?.message ?? "every one signed by the edge"}`);
for (const { id, definition, status } of await site.runs()) {
  console.log(`auditor  ${id}: ${definition}, ${status}`);
  const lines = await site.bundle(id);
  const hasPayload = lines.some((line) => line.includes("a picture of"));
  console.log(`auditor  ${id}: ${lines.length} lines of proof, ${hasPayload ? "with" : "without"} payloads`);
  writeFileSync(`${folder}/${id}.jsonl`, `${lines.join("\n")}\n`);
}
console.log(`auditor  state ${(await site.snapshots.stateHash()).slice(0, 16)}…`);
