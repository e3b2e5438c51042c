// Helpers of main.ts: worker processes, the ledger, waiting and cleanup.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { LedgerLine } from "./outside.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-agent-"));
const ledger = join(folder, "ledger.jsonl");
export const store = `sqlite:${join(folder, "agent.db")}`;

const workers = new Set<ChildProcess>();
process.on("exit", () => {
  for (const worker of workers) worker.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));

export async function startWorker(): Promise<ChildProcess> {
  const worker = fork(fileURLToPath(new URL("./worker.ts", import.meta.url)), {
    env: { ...process.env, STORE: store, LEDGER: ledger, BANK_MS: "500" },
  });
  workers.add(worker);
  await once(worker, "message");
  return worker;
}

export async function endWorker(worker: ChildProcess, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const exited = once(worker, "exit");
  worker.kill(signal);
  await exited;
  workers.delete(worker);
}

/** The calls that the outside has received so far. */
export function readLedger(): LedgerLine[] {
  if (!existsSync(ledger)) return [];
  const lines = readFileSync(ledger, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as LedgerLine);
}

const WAIT_MS = 20_000;

export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`Waited ${WAIT_MS / 1000} s for this to become true: ${what}.`);
    await pause(15);
  }
}
