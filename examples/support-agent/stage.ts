// Helpers of main.ts: server processes, the ledger, waiting and cleanup.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const folder = mkdtempSync(join(tmpdir(), "reprise-support-"));
export const ledger = join(folder, "ledger.jsonl");
export const store = `sqlite:${join(folder, "support.db")}`;

const servers = new Set<ChildProcess>();
process.on("exit", () => {
  for (const server of servers) server.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));

/** A process of server.ts: a worker, the API and the page. */
export async function startServer(): Promise<ChildProcess> {
  const server = fork(fileURLToPath(new URL("server.ts", import.meta.url)), {
    env: { ...process.env, STORE: store, LEDGER: ledger, PORT: "0", WORD_MS: "40", BANK_MS: "500" },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  servers.add(server);
  await once(server, "message");
  return server;
}

export async function endServer(server: ChildProcess, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const exited = once(server, "exit");
  server.kill(signal);
  await exited;
  servers.delete(server);
}

const WAIT_MS = 20_000;

export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`Waited ${WAIT_MS / 1000} s for this to become true: ${what}.`);
    await pause(15);
  }
}
