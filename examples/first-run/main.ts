// The first run: an order, a worker that is killed while it executes it, a second worker that finishes it, and proofs.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient, type Client, type JournalEntry, type Run } from "reprise";
// The renderer of `reprise show`.
import { lineWidth, paint } from "../../src/cli/output.ts";
import { renderTimeline, type TimelineMark } from "../../src/cli/timeline.ts";
import { notify, order, type Order } from "./order.ts";
import { calledWithStableKeys, committedOnce, gapFree, type Call, type Proof } from "./proofs.ts";
import type { WorkerMessage } from "./worker.ts";

const keep = process.argv.includes("--keep");
const folder = mkdtempSync(join(tmpdir(), "reprise-first-run-"));
const store = `sqlite:${join(folder, "orders.db")}`;
const ledger = join(folder, "ledger.jsonl");
const ID = "order-1042";
const INPUT: Order = { id: "1042", cents: 4990, to: "ada@example.org" };
const WAIT_MS = 20_000;

// ── workers, the ledger, cleanup ──

const workers = new Set<ChildProcess>();
process.on("exit", () => {
  for (const worker of workers) worker.kill("SIGKILL");
  if (!keep) rmSync(folder, { recursive: true, force: true });
});
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));

async function startWorker(): Promise<{ worker: ChildProcess; messages: WorkerMessage[] }> {
  const worker = fork(fileURLToPath(new URL("./worker.ts", import.meta.url)), {
    env: { ...process.env, STORE: store, LEDGER: ledger },
  });
  workers.add(worker);
  worker.once("exit", () => workers.delete(worker));
  const messages: WorkerMessage[] = [];
  worker.on("message", (message) => messages.push(message as WorkerMessage));
  await until("a worker is ready", () => messages.some(({ what }) => what === "ready"));
  return { worker, messages };
}

async function endWorker(worker: ChildProcess, signal: "SIGKILL" | "SIGTERM"): Promise<Date> {
  const exited = once(worker, "exit");
  const at = new Date();
  worker.kill(signal);
  await exited;
  return at;
}

async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`Waited ${WAIT_MS / 1000} s for this to become true: ${what}.`);
    await pause(15);
  }
}

function readLedger(): Call[] {
  if (!existsSync(ledger)) return [];
  const lines = readFileSync(ledger, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as Call);
}

async function journalOf(run: Run<typeof order>): Promise<JournalEntry[]> {
  return Array.fromAsync(run.journal());
}

// ── the demo ──

const startedAt = Date.now();
function print(text: string): void {
  console.log(`${paint("dim", `${((Date.now() - startedAt) / 1000).toFixed(1)} s`.padStart(6))}  ${text}`);
}

async function runDemo(client: Client<typeof order | typeof notify>): Promise<boolean> {
  console.log(`\n${paint("bold", "Reprise: an order that outlives its worker")}\n`);
  const run = await client.start(order, INPUT, { id: ID });
  print(`${ID} is in the store: charge, reserve, approval, label, pickup, mail.`);

  const first = await startWorker();
  print("Worker 1 starts and claims it.");
  await until("the order waits for its approval", async () =>
    (await journalOf(run)).some(({ type }) => type === "PromiseCreated"),
  );
  print("The card network failed once, the second attempt went through. The order waits for an approval.");
  await run.resolve("approval", { by: "Grace" });
  print("Approved from outside. The courier's timer runs; the label printer is called …");
  const isTimerCommitted = async (): Promise<boolean> =>
    (await journalOf(run)).some(({ type }) => type === "TimerStarted");
  const isPrinterCalled = (): boolean => readLedger().some(({ step }) => step === "print label");
  await until("the label printer is called", async () => isPrinterCalled() && (await isTimerCommitted()));
  const killedAt = await endWorker(first.worker, "SIGKILL");
  const before = await journalOf(run);
  print(paint(["red", "bold"], "SIGKILL: worker 1 dies during the call, without any cleanup."));
  print(`The store has ${before.length} entries. The journal cannot say whether the label was printed.`);

  const second = await startWorker();
  print("Worker 2 starts. It takes over the order when worker 1's lease of 1 s has expired.");
  const output = await run.result({ timeout: "30 s" });
  await endWorker(second.worker, "SIGTERM");
  print(paint(["green", "bold"], `${ID} is ${output.status}.`));

  const entries = await journalOf(run);
  const resumed = second.messages.find(({ what, run: resumedRun }) => what === "resumed" && resumedRun === ID);
  printTimeline(entries, [
    { at: killedAt, text: "SIGKILL: worker 1 dies here, before the printer answers", bad: true },
    ...(resumed
      ? [
          {
            at: new Date(resumed.at),
            text: `worker 2 takes over: ${resumed.entries} entries replayed, nothing called`,
            bad: false,
          },
        ]
      : []),
  ]);
  return printProofs(await prove(client, run, entries, before.length, resumed?.entries));
}

function printTimeline(entries: readonly JournalEntry[], marks: readonly TimelineMark[]): void {
  console.log(`\n${paint("bold", "The journal")}\n`);
  for (const line of renderTimeline(entries, { width: lineWidth(), paint, marks })) console.log(line);
}

// ── the proof ──

async function prove(
  client: Client<typeof order | typeof notify>,
  run: Run<typeof order>,
  entries: readonly JournalEntry[],
  entriesBefore: number,
  entriesReplayed: number | undefined,
): Promise<Proof[]> {
  const info = await run.info();
  const calls = readLedger();
  const replayed = await run.replay();
  const verified = await run.verify();
  const childId = String(
    (entries.find(({ type }) => type === "ChildWorkflowInitiated")?.data as { childExecutionId?: string })
      ?.childExecutionId,
  );
  const child = await client.get(notify, childId).verify();
  const callsAfter = readLedger().length;
  return [
    committedOnce(entries),
    gapFree(entries, info.entries),
    calledWithStableKeys(calls, { charge: 2, reserve: 1, "print label": 2, "send mail": 1 }),
    {
      claim: "the second worker continued where the first one died",
      holds: entriesReplayed === entriesBefore,
      seen: `${entriesReplayed ?? 0} of ${entriesBefore} entries replayed`,
    },
    {
      claim: "replay: the same code on the same journal ends the same way",
      holds: replayed.status === "same" && callsAfter === calls.length,
      seen:
        replayed.status === "same" ? `no calls were made: still ${callsAfter} lines in the ledger` : replayed.message,
    },
    {
      claim: "verify: the journal is unchanged, and so is the child's",
      holds: verified.status === "same" && verified.digest === info.digest && child.status === "same",
      seen: verified.status === "same" ? `${verified.digest.slice(0, 23)}…` : verified.message,
    },
  ];
}

function printProofs(proofs: readonly Proof[]): boolean {
  console.log(`\n${paint("bold", "Proofs")}\n`);
  for (const { claim, holds, seen, details = [] } of proofs) {
    console.log(`  ${holds ? paint("green", "✔") : paint(["red", "bold"], "✖")} ${claim} ${paint("dim", `(${seen})`)}`);
    for (const detail of details) console.log(paint("dim", `      ${detail}`));
  }
  return proofs.every(({ holds }) => holds);
}

function printWhereNext(): void {
  const inspectCommand = keep
    ? `npm run cli -- show ${ID} --store ${store}`
    : "npm start -- --keep             keeps the database for the command line";
  console.log(`
${paint("bold", "Next steps")}

  examples/first-run/order.ts     the program that just ran, 60 lines
  docs/tutorial.md                write your own, step by step
  examples/agent                  an agent as a graph: killed, inspected, replayed, forked
  ${inspectCommand}
`);
}

const client = await createClient({ store, definitions: [order, notify] });
const proved = await runDemo(client);
await client.close();
if (!proved)
  console.log(paint(["red", "bold"], "\nA proof failed: this is a bug. Please report it with the output above.\n"));
printWhereNext();
process.exitCode = proved ? 0 : 1;
