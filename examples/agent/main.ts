// An agent with tools, a person who approves, and a worker that is killed while it moves money. Then: the state after each
// step, a replay without any call, and a fork in which the person refuses.

import { createClient } from "reprise";
import { agent, QUESTION } from "./agent.ts";
import { endWorker, readLedger, startWorker, store, until } from "./stage.ts";

const calls = (what: string): number => readLedger().filter((line) => line.what === what).length;

await using client = await createClient({ store, definitions: [agent] });

console.log("── A person is asked ──");
const run = await client.start(agent, QUESTION, { id: "ticket-1" });
const first = await startWorker();
const asked = async (): Promise<unknown> => {
  const entries = await Array.fromAsync(run.journal());
  return (entries.find(({ type }) => type === "PromiseCreated")?.data as { show?: unknown } | undefined)?.show;
};
await until("the agent asks for its refund", async () => (await asked()) !== undefined);
console.log("The agent wants to:", await asked());

console.log("\n── A crash in the middle ──");
await run.resolve("approval", { ok: true, by: "Eve" });
await until("the bank is called", () => calls("refund") === 1);
await endWorker(first, "SIGKILL");
console.log(
  "Eve says yes. SIGKILL while the bank is called: the worker cannot know whether the bank received the call.",
);
const second = await startWorker();
console.log(`Another worker takes over: "${await run.result({ timeout: "30 s" })}"`);
await until("the mail is out", () => calls("mail") === 1);
const keys = new Set(readLedger().flatMap(({ what, key }) => (what === "refund" ? [key] : [])));
console.log(`The bank was called ${calls("refund")} times, with ${keys.size} key: the bank makes one refund.`);

console.log("\n── The state after each step ──");
for await (const { step, state, frontier, label = "" } of run.checkpoints()) {
  const next = frontier.map(({ node }) => node).join(", ") || "END";
  console.log(`${step} ${label.padEnd(8)} → ${next.padEnd(11)} ${state.messages.at(-1)?.text}`);
}

console.log("\n── Replay: answers from the journal only ──");
const before = readLedger().length;
const replay = await run.replay();
console.log(`${replay.status}, with ${readLedger().length - before} calls to the outside.`);

console.log("\n── And if Eve had said no? ──");
const checkpoints = await Array.fromAsync(run.checkpoints());
const { step } = checkpoints.find(({ frontier }) => frontier.some(({ node }) => node === "approve"))!;
// The fork shares the steps before this one; they are not repeated.
const fork = await run.fork({ step, id: "ticket-1-refused" });
await fork.resolve("approval", { ok: false, by: "Eve" });
console.log(`From step ${step}: "${await fork.result({ timeout: "30 s" })}"`);
const { firstDivergence, steps } = await run.diff(fork);
const { next } = steps[0]!;
console.log(
  `The runs differ from step ${firstDivergence}: a yes leads to ${next?.here?.join()}, a no to ${next?.there?.join()}.`,
);
console.log(`The bank was called ${calls("refund")} times, as before.`);

await endWorker(second, "SIGTERM");
