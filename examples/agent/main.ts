// An agent with tools, a person who decides, and a worker that is killed while it moves money.

import { createEngine } from "reprise";
import { agent, QUESTION } from "./agent.ts";
import { endWorker, readLedger, startWorker, store, until } from "./stage.ts";

const calls = (what: string): number => readLedger().filter((line) => line.what === what).length;

await using engine = await createEngine({ store, definitions: [agent], worker: false });

// ── a person is asked ──
const run = await engine.start(agent, QUESTION, { id: "ticket-1" });
const first = await startWorker();
const asked = async (): Promise<unknown> => {
  const entries = await Array.fromAsync(run.journal());
  return (entries.find(({ type }) => type === "PromiseCreated")?.data as { show?: unknown } | undefined)?.show;
};
await until("the agent asks for its refund", async () => (await asked()) !== undefined);
console.log("The agent asks:", await asked());

// ── a crash in the middle ──
await run.resolve("approval", { ok: true, by: "Eve" });
await until("the bank is called", () => calls("refund") === 1);
await endWorker(first, "SIGKILL");
console.log("Eve says yes. SIGKILL while the bank is called: whether it heard, nobody knows.");
const second = await startWorker();
console.log("Another worker goes on:", await run.result({ timeout: "30 s" }));
await until("the mail is out", () => calls("mail") === 1);
const keys = new Set(readLedger().flatMap(({ what, key }) => (what === "refund" ? [key] : [])));
console.log(`The bank was called ${calls("refund")} times, with ${keys.size} key: it gave the money back once.`);

// ── replay: recordings only ──
const before = readLedger().length;
const replay = await run.replay();
console.log(`Replay: ${replay.status}, with ${readLedger().length - before} calls to the outside.`);

await endWorker(second, "SIGTERM");
