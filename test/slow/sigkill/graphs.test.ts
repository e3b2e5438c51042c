// Real processes on a real file: a graph's worker is killed before and after the commit of a step, or is one of two.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createClient } from "reprise";
import { afterEach, beforeEach, expect, test } from "vitest";
import { STEPS, steps } from "./graph-definitions.ts";

let folder: string;
const children = new Set<ChildProcess>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reprise-sigkill-"));
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  await rm(folder, { recursive: true, force: true });
});

async function startWorker(path: string, ran: string[], ...options: readonly string[]): Promise<ChildProcess> {
  const child = fork(new URL("./graph-worker.ts", import.meta.url), [path, ...options], {
    execArgv: ["--conditions=reprise-source"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  children.add(child);
  child.on("message", (message) => message !== "ready" && ran.push(message as string));
  await once(child, "message");
  return child;
}

function keysOf(path: string): unknown[] {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return db.prepare("select step, key from checkpoints order by step").all();
  } finally {
    db.close();
  }
}

async function runThrough(when: "" | "before" | "after", workers: number): Promise<{ ran: string[]; keys: unknown[] }> {
  const path = join(folder, `${when}${workers}.db`);
  await using client = await createClient({ store: `sqlite:${path}`, definitions: [steps] });
  const ran: string[] = [];
  const first = await startWorker(path, ran, when, "3");
  const died = once(first, "exit");
  for (let n = 1; n < workers; n += 1) await startWorker(path, ran);
  const run = await client.start(steps, {}, { id: "the run" });
  if (when !== "") {
    await died;
    await startWorker(path, ran);
  }
  const { n, seen } = await run.result({ timeout: "60 s" });
  expect(n).toBe(STEPS);
  expect(seen).toHaveLength(2 * STEPS);
  expect(await run.verify()).toMatchObject({ status: "same" });
  const terminal: string[] = [];
  for await (const { type, command = "" } of run.journal()) if (type === "NodeCompleted") terminal.push(command);
  expect(new Set(terminal).size).toBe(terminal.length);
  return { ran, keys: keysOf(path) };
}

test("crash matrix: killed before the commit, after it, and two processes on one run: one commit per step, with the same keys", async () => {
  const undisturbed = await runThrough("", 1);
  expect(undisturbed.keys).toHaveLength(STEPS + 1);
  // The checkpoint of step 3 goes with what step 4 does first: killed before, that is done again.
  const before = await runThrough("before", 1);
  expect(before.keys).toEqual(undisturbed.keys);
  expect(before.ran.length).toBeGreaterThan(STEPS);
  const after = await runThrough("after", 1);
  expect(after.keys).toEqual(undisturbed.keys);
  expect(after.ran.filter((ran) => ["ran 1", "ran 2", "ran 3"].includes(ran))).toHaveLength(3);
  const two = await runThrough("", 2);
  expect(two.keys).toEqual(undisturbed.keys);
}, 300_000);
