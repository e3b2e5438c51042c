// Supervisor: the process between a test and a server. It starts the server, and ends it and deletes its folder when the test's
// process has ended, for whatever reason. It has its own session, so that signals to the test run do not end it first.
//
// supervisor.K1. Nothing it started outlives its owner: the channel between them closes with the owner.
// supervisor.K2. The folder is deleted only when no process of the server is left.

import { spawn } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LOG, type FromSupervisor, type Launch, type ToSupervisor } from "./supervisor-messages.ts";
import { isAlive, signalTree } from "./processes.ts";

/** Enough for a clean shutdown on a busy machine. */
const END_MS = 10_000;

const folder = process.argv[2]!;
let running: { readonly pid: number; readonly endSignal: NodeJS.Signals } | undefined;

function start({ command, args, env, uid, gid, endSignal }: Launch): void {
  const log = openSync(join(folder, LOG), "a");
  const ids = uid === undefined ? {} : { uid, gid };
  const child = spawn(command, args, { cwd: folder, env, stdio: ["ignore", log, log], ...ids });
  closeSync(log);
  child.on("error", (error) => send({ failed: error.message }));
  const { pid } = child;
  if (pid === undefined) return;
  running = { pid, endSignal };
  child.on("exit", (code, signal) => {
    if (running?.pid === pid) running = undefined;
    send({ exited: pid, how: signal ?? `code ${code}` });
  });
  send({ started: pid });
}

function send(message: FromSupervisor): void {
  // The owner may have ended.
  if (process.connected) process.send!(message, () => undefined);
}

async function end(): Promise<never> {
  if (running !== undefined) {
    const { pid, endSignal } = running;
    const tree = signalTree(pid, "SIGCONT");
    process.kill(pid, endSignal);
    const giveUpAt = performance.now() + END_MS;
    while (tree.some(isAlive) && performance.now() < giveUpAt) await sleep(5);
    const rest = tree.flatMap((each) => signalTree(each, "SIGKILL"));
    // Wait until this process has reaped them, so that nothing is left.
    while (running !== undefined || rest.some(isAlive)) await sleep(5);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
}

// Signals to the test run are ignored here: the channel shows whether the test run has ended.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
process.on("disconnect", () => void end());
process.on("message", (message: ToSupervisor) => {
  if ("start" in message) start(message.start);
  else void end();
});
