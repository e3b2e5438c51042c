// Runs as tasks of MCP, with the official client: states, requests for input, cancellation, and what a caller may not do.

import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../engine/world.ts";
import { z } from "zod";
import { createEngine, promise, task, workflow, type Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { ROLE_TOKENS, tokenFor, ask } from "./auth-fixture.ts";
import { askTask, callTool, connect, startTask, TASKS, type Task } from "./mcp-client.ts";
import type { Client } from "@modelcontextprotocol/client";

const release = workflow(
  "release",
  {
    ports: {
      signOff: promise(z.object({ ok: z.boolean(), reason: z.string().optional() })),
      title: promise(z.string()),
      plan: promise<unknown>(),
    },
  },
  async (ctx, version: number) => {
    const [legal, security, title] = await Promise.all([
      ctx.promise("signOff", { key: "legal", show: { version } }),
      ctx.promise("signOff", { key: "security" }),
      ctx.promise("title"),
    ]);
    const plan = await ctx.promise("plan");
    return { version, legal: legal.ok, security: security.ok, title, plan };
  },
);
const quick = workflow("quick", { input: z.object({ a: z.number() }) }, async (_ctx, { a }) => ({
  a,
  token: "s3cret",
}));
const failing = workflow("failing", async (ctx) =>
  ctx.run("refuse", () => {
    throw new TypeError("the card was refused");
  }),
);
const elsewhere = task("elsewhere", () => "done");
const stopping = workflow("stopping", async (ctx) => ctx.task(elsewhere, undefined));

const costly = workflow("costly", { budget: { calls: 1 } }, async (ctx) => {
  const cost = { reserve: { calls: 1 }, actual: () => ({ calls: 1 }) };
  const first = await ctx.run("first", () => 1, { cost });
  return first + (await ctx.run("second", () => 2, { cost }));
});

let engine: Engine<any>;
let server: Server;

beforeAll(async () => {
  engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [release, quick, failing, stopping, costly],
    logger: false,
  });
  server = createServer(engine, { auth: { tokens: ROLE_TOKENS }, limits: { requestsPerSecond: 10_000 } });
});
afterAll(async () => {
  await server.close();
  await engine.close();
});

async function taskIn(client: Client, taskId: string, status: Task["status"]): Promise<Task> {
  let task: Task | undefined;
  await until(async () => (task = await askTask(client, "tasks/get", { taskId })).status === status);
  return task!;
}

test("a task asks for every open promise, takes answers in any order, and completes with the output", async () => {
  const client = await connect(server, { tasks: true });
  expect(client.getServerCapabilities()).toMatchObject({ extensions: { [TASKS]: {} } });
  const handle = await startTask(client, "start_release", { input: 3, id: "release-3" });
  expect(handle).toMatchObject({ resultType: "task", taskId: "release-3", ttlMs: null, pollIntervalMs: 1_000 });
  expect(Date.parse(handle.createdAt)).not.toBeNaN();
  const waiting = await taskIn(client, "release-3", "input_required");
  expect(waiting.inputRequests).toMatchObject({
    "signOff/legal": {
      method: "elicitation/create",
      params: {
        mode: "form",
        message: expect.stringMatching(/^Run release-3 \(release\) waits for signOff \(legal\)\.\n[^]*"version": 3/),
        requestedSchema: {
          type: "object",
          properties: { ok: { type: "boolean" }, reason: { type: "string" } },
          required: ["ok"],
        },
      },
    },
    "signOff/security": {},
    title: { params: { requestedSchema: { properties: { value: { type: "string" } }, required: ["value"] } } },
  });
  const update = (inputResponses: Record<string, unknown>): Promise<unknown> =>
    askTask(client, "tasks/update", { taskId: "release-3", inputResponses });
  // A part of the answers; one without an answer, and one for a request that was never made.
  await update({
    title: { action: "accept", content: { value: "Autumn" } },
    "signOff/legal": { action: "cancel" },
    nothing: { action: "accept", content: {} },
  });
  await until(async () => {
    const { inputRequests = {} } = await askTask(client, "tasks/get", { taskId: "release-3" });
    return Object.keys(inputRequests).toSorted().join() === "signOff/legal,signOff/security";
  });
  // An answer that the schema of the port refuses resolves nothing.
  await expect(update({ "signOff/legal": { action: "accept", content: { ok: "yes" } } })).rejects.toMatchObject({
    code: -32_602,
  });
  await expect(update({ "signOff/legal": { action: "shrug" } })).rejects.toMatchObject({ code: -32_602 });
  await update({
    "signOff/legal": { action: "accept", content: { ok: true } },
    "signOff/security": { action: "decline" },
  });
  await until(async () =>
    Object.hasOwn((await askTask(client, "tasks/get", { taskId: "release-3" })).inputRequests ?? {}, "plan"),
  );
  // A port without a schema takes JSON.
  await expect(update({ plan: { action: "accept", content: { value: "no JSON" } } })).rejects.toThrow(/is not JSON/);
  await update({ plan: { action: "accept", content: { value: '{"steps":[1]}' } } });
  const done = await taskIn(client, "release-3", "completed");
  expect(done.result).toMatchObject({ resultType: "complete" });
  expect(JSON.parse(done.result!.content[0]!.text)).toEqual({
    run: "release-3",
    status: "completed",
    output: { version: 3, legal: true, security: false, title: "Autumn", plan: { steps: [1] } },
  });
  // The journal says who answered.
  expect((await callTool(client, "run_journal", { run: "release-3" })).text).toContain('"by":"operator"');
  await client.close();
});

test("a failed run is a completed task with an error, a canceled one is canceled, and the same id is the same task", async () => {
  const client = await connect(server, { tasks: true });
  await startTask(client, "start_failing", { id: "failing-1" });
  const failed = await taskIn(client, "failing-1", "completed");
  expect(failed.result).toMatchObject({ isError: true });
  expect(failed.result!.content[0]!.text).toContain("the card was refused");
  await startTask(client, "start_release", { input: 4, id: "release-4" });
  await askTask(client, "tasks/cancel", { taskId: "release-4" });
  await taskIn(client, "release-4", "cancelled");
  // Again: a task that has ended is acknowledged.
  await askTask(client, "tasks/cancel", { taskId: "release-4" });
  await startTask(client, "start_quick", { input: { a: 1 }, id: "quick-1" });
  const again = await startTask(client, "start_quick", { input: { a: 1 }, id: "quick-1" });
  expect(again.taskId).toBe("quick-1");
  const done = await taskIn(client, "quick-1", "completed");
  expect(done.result!.content[0]!.text).toContain("[redacted]");
  // What is refused before there is a run is a result, not a task.
  const refused = await callTool(client, "start_quick", { input: { a: "one" }, id: "quick-2" });
  expect(refused).toMatchObject({ isError: true, value: { error: "BAD_INPUT" } });
  expect(await engine.find("quick-2")).toBeUndefined();
  await client.close();
});

test("a paused run is a working task; a run that the engine stopped is a failed one, with the command that helps", async () => {
  const client = await connect(server, { tasks: true });
  await startTask(client, "start_release", { input: 5, id: "release-5" });
  await taskIn(client, "release-5", "input_required");
  await engine.get(release, "release-5").pause();
  expect(await askTask(client, "tasks/get", { taskId: "release-5" })).toMatchObject({
    status: "working",
    statusMessage: "The run is paused.",
  });
  await startTask(client, "start_stopping", { id: "stopping-1" });
  const stopped = await taskIn(client, "stopping-1", "failed");
  expect(stopped.error).toMatchObject({ code: -32_603, message: expect.stringContaining("reprise resume stopping-1") });
  await client.close();
});

test("a client without forms, or that may not answer promises, sees a working task and what it waits for", async () => {
  const operator = await connect(server, { tasks: true, forms: false });
  await startTask(operator, "start_release", { input: 6, id: "release-6" });
  await until(async () => (await engine.find("release-6"))?.status === "waiting");
  expect(await askTask(operator, "tasks/get", { taskId: "release-6" })).toMatchObject({
    status: "working",
    statusMessage: expect.stringContaining("promise"),
  });
  await operator.close();
  const reader = await connect(server, { tasks: true, token: "reader" });
  expect(await askTask(reader, "tasks/get", { taskId: "release-6" })).toMatchObject({ status: "working" });
  const inputResponses = { title: { action: "accept", content: { value: "x" } } };
  await expect(askTask(reader, "tasks/update", { taskId: "release-6", inputResponses })).rejects.toThrow(
    /needs the tool promise_resolve/,
  );
  await expect(askTask(reader, "tasks/cancel", { taskId: "release-6" })).rejects.toThrow(/needs the tool run_cancel/);
  await expect(askTask(reader, "tasks/get", { taskId: "none" })).rejects.toMatchObject({ code: -32_602 });
  await reader.close();
  expect((await engine.find("release-6"))?.status).toBe("waiting");
});

test("a task whose budget is reached works until it is raised, and no client is asked for it", async () => {
  const client = await connect(server, { tasks: true });
  await startTask(client, "start_costly", { id: "costly-1" });
  await expect
    .poll(async () => (await callTool(client, "promises_list", { definition: "costly" })).value.items as object[])
    .toMatchObject([{ run: "costly-1", kind: "budget" }]);
  // The request is open before the worker has released the turn.
  await expect
    .poll(() => askTask(client, "tasks/get", { taskId: "costly-1" }))
    .toMatchObject({ status: "working", statusMessage: expect.stringContaining("budget") });
  await engine.get(costly, "costly-1").raise({ calls: 1 });
  const done = await taskIn(client, "costly-1", "completed");
  expect(JSON.parse(done.result!.content[0]!.text)).toMatchObject({ output: 3 });
  await client.close();
});

test("a request that does not name the extension gets no task, and no answer about one", async () => {
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
  const capabilities = "io.modelcontextprotocol/clientCapabilities";
  const send = async (
    method: string,
    params: Record<string, unknown>,
    name: string,
    declared: object,
  ): Promise<any> => {
    const _meta = { ...meta, [capabilities]: declared };
    const response = await ask(server, "/mcp", {
      token: tokenFor("operator"),
      body: { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } },
      headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": name },
    });
    return { status: response.status, ...((await response.json()) as object) };
  };
  const call = { name: "start_quick", arguments: { input: { a: 2 } } };
  expect(await send("tools/call", call, "start_quick", {})).toMatchObject({ result: { resultType: "complete" } });
  expect(await send("tools/call", call, "start_quick", { extensions: { [TASKS]: {} } })).toMatchObject({
    result: { resultType: "task" },
  });
  expect(await send("tasks/get", { taskId: "quick-1" }, "quick-1", {})).toMatchObject({
    status: 400,
    error: { code: -32_021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } },
  });
});
