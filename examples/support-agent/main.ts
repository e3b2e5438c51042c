// The story: a customer asks, the process dies twice, a colleague decides about two refunds at once, and the run continues. Then:
// what it cost, and what another model would have said.

import { createClient, createEngine } from "reprise";
import { definitions, QUESTION, support } from "./agent.ts";
import { secondModel } from "./evals.ts";
import { readLedger } from "./shop.ts";
import { endServer, ledger, startServer, store, until } from "./stage.ts";

await using client = await createClient({ store, definitions });

console.log("── A customer asks, and the process dies in the middle of a sentence ──");
console.log(`Customer: ${QUESTION}`);
const run = await client.start(support, QUESTION, { id: "ticket-1" });
let server = await startServer();
let isKilled = false;
let words = "";
for await (const { value: frame } of run.stream("words")) {
  if (frame?.part === "begin") words = frame.execution === 1 ? "Agent: " : "Agent, again: ";
  if (frame?.part === "text") words += frame.delta;
  if (frame?.part === "text" && !isKilled) {
    isKilled = true;
    await endServer(server, "SIGKILL");
    console.log(`${words}✂ SIGKILL. Another process takes over, and the words of this call are void.`);
    server = await startServer();
  }
  if (frame?.part === "end") console.log(words);
  if (frame?.part === "end" && words.includes("approve")) break;
}

console.log("\n── Two approvals at once, and a crash while the bank is called ──");
const open = async (kind: "promise" | "budget") =>
  (await Array.fromAsync(client.promises())).filter((one) => one.kind === kind);
await until("both refunds are asked for", async () => (await open("promise")).length === 2);
for (const { key, show } of await open("promise")) {
  const { input } = show as { input: { order: string; cents: number } };
  const answer =
    input.order === "1042" ? { ok: true } : { ok: false, reason: "the second charge was taken back already" };
  console.log(
    `Eve is asked to refund ${(input.cents / 100).toFixed(2)} EUR for order ${input.order}: ${answer.ok ? "yes" : "no"}.`,
  );
  await run.resolve("approve", answer, { key: key!, by: "Eve" });
}
await until("the bank is called", () => readLedger(ledger).length === 1);
await endServer(server, "SIGKILL");
console.log("✂ SIGKILL. The next process cannot know whether the bank made the refund.");
server = await startServer();
console.log(`Agent: ${await run.result({ timeout: "30 s" })}`);
const bank = readLedger(ledger);
console.log(
  `The bank was called ${bank.length} times with ${new Set(bank.map(({ key }) => key)).size} key: one refund.`,
);

console.log("\n── What it cost, and a budget that is too small ──");
const dollars = (usd = 0): string => `${usd.toFixed(6)} USD`;
const cost = (await run.budget())!;
console.log(
  `Spent ${dollars(cost.spent.usd)}, lost in the crash ${dollars(cost.lost.usd)}, of ${dollars(cost.cap.usd)}.`,
);
const poor = await client.start(support, QUESTION, { id: "ticket-2", budget: { usd: 0.003 } });
for (const key of ["refund-1042", "refund-1043"])
  await poor.resolve("approve", { ok: false, reason: "it was refunded with ticket-1" }, { key, by: "Eve" });
await until("a call waits for money", async () => (await open("budget")).length === 1);
const { spent, waiting } = (await poor.budget())!;
console.log(
  `Ticket 2 has spent ${dollars(spent.usd)}. Its next call may cost ${dollars(waiting[0]?.reserve.usd)}: it waits.`,
);
await poor.raise({ usd: 0.05 }, { by: "Eve", reason: "a good customer" });
console.log(`Eve raises the budget. Agent: ${await poor.result({ timeout: "30 s" })}`);
await endServer(server, "SIGTERM");

console.log("\n── What would the second model have said? ──");
await using engine = await createEngine({ store, definitions });
const { runs, scores } = await engine.evaluate(support, { ...secondModel.options, runs: ["ticket-1"] });
console.log(`Second model: ${runs[0]?.is?.output}`);
for (const [name, { mean }] of Object.entries(scores)) console.log(`${name}: ${mean}`);
console.log(
  `The bank was called ${readLedger(ledger).length} times, as before: tools and people are answered from the journal.`,
);
