// A worker process that pays a service outside: one line of a ledger per call. It kills itself in every third call until told not to.

import { appendFileSync, readFileSync } from "node:fs";
import { createEngine, task, workflow } from "reprise";

const [store, ledger, isCalm] = process.argv.slice(2) as [string, string, string?];

export const CAP = 8;

function pay(): { calls: number } {
  appendFileSync(ledger, "paid\n");
  const paid = readFileSync(ledger, "utf8").split("\n").length - 1;
  if (isCalm === undefined && paid % 3 !== 1) process.kill(process.pid, "SIGKILL");
  return { calls: 1 };
}

const cost = { reserve: { calls: 1 }, actual: (answer: { calls: number }) => answer };
const search = task("search", { cost }, pay);
const kid = workflow("kid", async (ctx) => {
  await ctx.run("model", pay, { cost });
  await ctx.task(search);
});
const parent = workflow("parent", { budget: { calls: CAP } }, async (ctx) => {
  await Promise.all([ctx.child(kid), ctx.child(kid)]);
  await ctx.run("model", pay, { cost });
  return "done";
});

const engine = await createEngine({ store, definitions: [parent, kid, search], worker: { lease: 300 }, logger: false });
await engine.start(parent, undefined, { id: "agent" });
process.on("disconnect", () => void engine.close().then(() => process.exit(0)));
