// The process between a test and a server: it starts the server, and ends it and removes its folder when the test's
// process is gone, however that went. It has a session of its own, so that what ends a test run does not end it first.
//
// K1. Nothing it started outlives its owner: the channel between them closes with the owner.
// K2. The folder is removed only when no process of the server is left.

import { spawn } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LOG, type FromSupervisor, type Launch, type ToSupervisor } from "./supervisor-messages.ts";
import { isAlive, signalTree } from "./processes.ts";

/** Long enough to leave in good order on a busy machine. */
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
  // Nobody may be left to hear it.
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
    // Ended is not enough: only when this process has noticed does nothing stay behind.
    while (running !== undefined || rest.some(isAlive)) await sleep(5);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
}

// Signals to the test run are for the test run: the channel says whether it obeyed.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
process.on("disconnect", () => void end());
process.on("message", (message: ToSupervisor) => {
  if ("start" in message) start(message.start);
  else void end();
});
