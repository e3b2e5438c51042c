// Workers that die in the middle of a task: the clients of MCP, over standard input and output and over HTTP, and of A2A get the result once.

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Client } from "@modelcontextprotocol/client";
import { expect, test, vi } from "vitest";
import { createClient } from "reprise";
import { createServer } from "reprise/server";
import { environment, ROOT } from "../../cli/cli-process.ts";
import { ROLE_TOKENS } from "../auth-fixture.ts";
import { askTask, connect, newClient, startTask, withTaskResults, type Task } from "../mcp-client.ts";
import { a2a } from "reprise/a2a";
import { connectAgent, message, outputOf, send, streamOf } from "../../a2a/a2a-client.ts";
import { linesOf, interrupted } from "./agent-definitions.ts";

const WORKER = join(ROOT, "test/server/slow/agent-worker.ts");
const KILLS = 2;

/** Keeps one worker alive: a new process when the last one was killed. */
async function keepWorking(
  store: string,
): Promise<{ readonly kills: () => number; readonly stop: () => Promise<void> }> {
  let [kills, isStopping] = [0, false];
  const start = (): ReturnType<typeof fork> => {
    const child = fork(WORKER, [store], { execArgv: ["--conditions=reprise-source"], stdio: "inherit" });
    child.once("exit", (_code, signal) => {
      if (isStopping) return;
      if (signal === "SIGKILL") kills += 1;
      worker = start();
    });
    return child;
  };
  let worker = start();
  await once(worker, "message");
  return {
    kills: () => kills,
    stop: async () => {
      isStopping = true;
      const ended = once(worker, "exit");
      worker.disconnect();
      await ended;
    },
  };
}

async function withFolder(work: (folder: string, store: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-agent-"));
  try {
    await work(folder, `sqlite:${join(folder, "runs.db")}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function taskIn(client: Client, taskId: string, status: Task["status"]): Promise<Task> {
  return vi.waitUntil(
    async () => {
      const task = await askTask(client, "tasks/get", { taskId });
      return task.status === status && task;
    },
    { timeout: 30_000, interval: 50 },
  );
}

async function runTask(client: Client, file: string, id: string): Promise<void> {
  const { taskId } = await startTask(client, "start_interrupted", { input: { file, kills: KILLS }, id });
  const { inputRequests } = await taskIn(client, taskId, "input_required");
  expect(Object.keys(inputRequests ?? {})).toEqual(["approval"]);
  // A client that died after it had started the task starts it again.
  expect((await startTask(client, "start_interrupted", { input: { file, kills: KILLS }, id })).taskId).toBe(taskId);
  const inputResponses = { approval: { action: "accept", content: { value: '{"ok":true}' } } };
  await askTask(client, "tasks/update", { taskId, inputResponses });
  const done = await taskIn(client, taskId, "completed");
  expect(JSON.parse(done.result!.content[0]!.text)).toEqual({ run: id, status: "completed", output: { ok: true } });
  expect(linesOf(file)).toEqual(["first", ...Array.from({ length: KILLS + 1 }, () => "dies"), "last"]);
}

test(
  "a client over standard input and output gets the result of a task whose workers are killed, once",
  { timeout: 60_000 },
  () =>
    withFolder(async (folder, store) => {
      await using setUp = await createClient({ store, definitions: [interrupted] });
      await setUp.close();
      const worker = await keepWorking(store);
      const client = newClient({ tasks: true });
      const code = join(ROOT, "test/server/slow/agent-definitions.ts");
      const args = ["mcp", "--store", store, "--code", code, "--allow"];
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: ["--conditions=reprise-source", join(ROOT, "src/cli/main.ts"), ...args],
        env: environment() as Record<string, string>,
      });
      await client.connect(withTaskResults(transport));
      await runTask(client, join(folder, "lines"), "stdio-1");
      expect(worker.kills()).toBe(KILLS);
      await client.close();
      await worker.stop();
    }),
);

test(
  "a client over HTTP gets it once, and another server answers for the task after the first one is gone",
  { timeout: 60_000 },
  () =>
    withFolder(async (folder, store) => {
      await using engine = await createClient({ store, definitions: [interrupted] });
      const worker = await keepWorking(store);
      const first = createServer(engine, { auth: { tokens: ROLE_TOKENS } });
      const starter = await connect(first, { tasks: true });
      const file = join(folder, "lines");
      await startTask(starter, "start_interrupted", { input: { file, kills: KILLS }, id: "http-1" });
      await starter.close();
      await first.close();
      await using second = createServer(engine, { auth: { tokens: ROLE_TOKENS } });
      const client = await connect(second, { tasks: true });
      await runTask(client, file, "http-1");
      expect(worker.kills()).toBe(KILLS);
      await client.close();
      await worker.stop();
    }),
);

test(
  "a client of A2A follows a task whose workers are killed, answers it, and gets the output once",
  { timeout: 60_000 },
  () =>
    withFolder(async (folder, store) => {
      await using engine = await createClient({ store, definitions: [interrupted] });
      const worker = await keepWorking(store);
      const agent = a2a({ name: "a", description: "b", skills: [{ definition: interrupted, description: "Dies." }] });
      await using server = createServer(engine, { auth: { tokens: ROLE_TOKENS }, extensions: [agent] });
      const client = await connectAgent(server);
      const file = join(folder, "lines");
      const first = message("m1", { file, kills: KILLS });
      const events = await Array.fromAsync(streamOf(client, first));
      expect(events.length).toBeGreaterThan(0);
      // The client lost the answer, and sends the message again.
      const { id } = await send(client, first);
      const done = await send(client, message("m2", { ok: true }, { taskId: id }));
      expect(outputOf(done)).toEqual({ ok: true });
      expect(linesOf(file)).toEqual(["first", ...Array.from({ length: KILLS + 1 }, () => "dies"), "last"]);
      expect(worker.kills()).toBe(KILLS);
      await worker.stop();
    }),
);
