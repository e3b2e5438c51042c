// Runs as tasks of A2A, with the official client: the card, messages that start runs and answer promises, streams, cancellation, and callers
// that may not.

import { TaskState } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../engine/world.ts";
import { z } from "zod";
import { createEngine, promise, stream, task, workflow, type Engine } from "reprise";
import { a2a } from "reprise/a2a";
import { createServer, type Server } from "reprise/server";
import { ask, ROLE_TOKENS, settings, tokenFor } from "../server/auth-fixture.ts";
import { connectAgent, getTask, message, outputOf, send, streamOf } from "./a2a-client.ts";

const greet = workflow("greet", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
const release = workflow(
  "release",
  { ports: { signOff: promise(z.object({ ok: z.boolean() })), title: promise(z.string()), secret: promise<string>() } },
  async (ctx, { version }: { readonly version: number }) => {
    const [legal, title] = await Promise.all([
      ctx.promise("signOff", { key: "legal", show: { version } }),
      ctx.promise("title"),
    ]);
    return { version, ok: legal.ok, title, token: "exact" };
  },
);
const streaming = workflow("streaming", { ports: { words: stream<string>() } }, async (ctx, count: number) => {
  ctx.emit("words", "begin");
  await ctx.run(
    "write",
    (op) => {
      for (let at = 0; at < count; at++) op.emit("words", `${op.attempt}.${at}`);
      if (op.attempt === 1) throw new Error("again");
    },
    { retry: { maxAttempts: 2, baseDelay: 1 } },
  );
  return "done";
});
const hidden = workflow("hidden", { ports: { secret: promise<string>() } }, async (ctx) => ctx.promise("secret"));
const failing = workflow("failing", async (ctx) =>
  ctx.run("refuse", () => {
    throw new TypeError("the card was refused");
  }),
);
const elsewhere = task("elsewhere", () => "done");
const stopping = workflow("stopping", async (ctx) => ctx.task(elsewhere, undefined));
const secret = workflow("secret", async () => "not offered");

let engine: Engine<any>;
let server: Server;

beforeAll(async () => {
  engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [greet, release, streaming, hidden, failing, stopping, secret],
    logger: false,
  });
  server = createServer(engine, {
    auth: {
      tokens: [
        ...ROLE_TOKENS,
        settings("second", "operator"),
        settings("only-greet", "operator", { definitions: ["greet"] }),
        settings("only-eu", "operator", { tags: ["eu"] }),
      ],
    },
    limits: { requestsPerSecond: 10_000 },
    extensions: [
      a2a({
        name: "Shop",
        description: "Releases and greets.",
        skills: [
          { definition: greet, description: "Greets.", input: ({ parts }) => parts[0]?.content?.value as unknown },
          { definition: release, description: "Releases a version.", tags: ["release"] },
          { definition: streaming, description: "Streams.", stream: "words" },
          { definition: hidden, description: "Waits for a person of ours.", promises: [] },
          { definition: failing, description: "Fails." },
          { definition: "stopping", description: "Stops." },
        ],
      }),
    ],
  });
});
afterAll(async () => {
  await server.close();
  await engine.close();
});

const skill = (name: string): { readonly metadata: { readonly skill: string } } => ({ metadata: { skill: name } });

test("the card is public and names the skills and the address", async () => {
  const response = await ask(server, "/.well-known/agent-card.json");
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    name: "Shop",
    supportedInterfaces: [{ url: "http://127.0.0.1:7420/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true },
    skills: [
      { id: "greet" },
      { id: "release", tags: ["release"] },
      { id: "streaming" },
      { id: "hidden" },
      { id: "failing" },
      { id: "stopping" },
    ],
  });
});

test("a message starts a run, the same message is the same task, and the output is its artifact", async () => {
  const client = await connectAgent(server);
  const done = await send(client, message("m1", "Ann", skill("greet")));
  expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  expect(outputOf(done)).toBe("Hello, Ann");
  expect((await send(client, message("m1", "Ann", skill("greet")))).id).toBe(done.id);
  const journal = await engine.get(greet, done.id).info();
  expect(journal).toMatchObject({ definition: "greet", tags: ["a2a", `context:${done.id}`] });
  // The message of another caller is another task, whatever its id is.
  expect((await send(await connectAgent(server, "second"), message("m1", "Ann", skill("greet")))).id).not.toBe(done.id);
  expect((await getTask(client, done.id)).artifacts).toHaveLength(1);
});

test("a task asks for its promises, and messages to it answer them", async () => {
  const client = await connectAgent(server);
  const waiting = await send(client, message("m2", { version: 7 }, { contextId: "ctx-1", ...skill("release") }));
  expect(waiting).toMatchObject({ contextId: "ctx-1", status: { state: TaskState.TASK_STATE_INPUT_REQUIRED } });
  const { parts } = waiting.status!.message!;
  expect(parts[1]?.content).toMatchObject({
    value: { promises: [{ promise: "signOff/legal", show: { version: 7 } }, { promise: "title" }] },
  });
  const answer = (id: string, value: unknown, promised?: string): ReturnType<typeof send> =>
    send(client, message(id, value, { taskId: waiting.id, ...(promised && { metadata: { promise: promised } }) }));
  await expect(answer("m3", "x")).rejects.toThrow(/waits for several promises; name one: signOff\/legal, title/);
  await expect(answer("m3", "x", "none")).rejects.toThrow(/does not wait for none/);
  await expect(answer("m3", { ok: "yes" }, "signOff/legal")).rejects.toThrow(/BAD_/);
  // Still open, and the other one is left.
  const next = await answer("m4", '{"ok":true}', "signOff/legal");
  expect(next.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  const done = await answer("m5", "Autumn");
  expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  // A result is exact.
  expect(outputOf(done)).toEqual({ version: 7, ok: true, title: "Autumn", token: "exact" });
  await expect(answer("m6", "again")).rejects.toThrow(/waits for no message/);
  expect(await Array.fromAsync(engine.get(release, done.id).journal())).toContainEqual(
    expect.objectContaining({ type: "PromiseResolved", data: expect.objectContaining({ by: "operator" }) }),
  );
  const { tasks } = await client.listTasks({
    tenant: "",
    contextId: "ctx-1",
    status: TaskState.TASK_STATE_UNSPECIFIED,
    pageToken: "",
    statusTimestampAfter: undefined,
  });
  expect(tasks.map(({ id }) => id)).toEqual([done.id]);
});

test("a stream has the task, its changes and its output, and ends when it needs input", async () => {
  const client = await connectAgent(server);
  const events = await Array.fromAsync(streamOf(client, message("m7", { version: 1 }, skill("release"))));
  expect(events[0]?.payload?.$case).toBe("task");
  const last = events.at(-1)!.payload!;
  const state = last.$case === "task" || last.$case === "statusUpdate" ? last.value.status?.state : undefined;
  expect(state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  const { id } = (events[0]!.payload as { value: { id: string } }).value;
  await send(client, message("m8", { ok: true }, { taskId: id, metadata: { promise: "signOff/legal" } }), true);
  const rest = await Array.fromAsync(
    streamOf(client, message("m9", "t", { taskId: id, metadata: { promise: "title" } })),
  );
  const cases = rest.map(({ payload }) => payload?.$case);
  // Either the first event is the completed task, or its output follows as an update.
  if (cases.length > 1) expect(cases.slice(-2)).toEqual(["artifactUpdate", "statusUpdate"]);
  expect(outputOf(await getTask(client, id))).toMatchObject({ title: "t" });
  await expect(client.resubscribeTask({ tenant: "", id }).next()).rejects.toThrow(/has ended/);
});

test("a follower gets the values of a stream; a step that is executed again replaces what it had sent", async () => {
  const client = await connectAgent(server);
  const events = await Array.fromAsync(streamOf(client, message("m20", 3, skill("streaming"))));
  // As a client keeps artifacts.
  const kept = new Map<string, unknown[]>();
  for (const { payload } of events) {
    if (payload?.$case !== "artifactUpdate" || payload.value.artifact?.name !== "words") continue;
    const { artifact, append } = payload.value;
    const values = artifact.parts.map(({ content }) => content?.value as unknown);
    kept.set(artifact.artifactId, [...(append ? (kept.get(artifact.artifactId) ?? []) : []), ...values]);
  }
  expect([...kept.values()]).toEqual([["begin"], ["2.0", "2.1", "2.2"]]);
  expect(outputOf(await getTask(client, (events[0]!.payload as { value: { id: string } }).value.id))).toBe("done");
});

test("a follower sees the end of a task that another client cancels", async () => {
  const [client, second] = [await connectAgent(server), await connectAgent(server, "second")];
  const working = await send(client, message("m10", "x", skill("hidden")), true);
  await until(async () => (await engine.find(working.id))?.status === "waiting");
  // The skill lets clients answer no promise.
  expect((await getTask(client, working.id)).status?.state).toBe(TaskState.TASK_STATE_WORKING);
  await expect(send(client, message("m11", "x", { taskId: working.id }))).rejects.toThrow(/waits for no message/);
  const events = client.resubscribeTask({ tenant: "", id: working.id });
  expect((await events.next()).value).toMatchObject({ payload: { $case: "task" } });
  await second.cancelTask({ tenant: "", id: working.id, metadata: undefined });
  const rest = await Array.fromAsync(events);
  expect(rest.at(-1)).toMatchObject({
    payload: { $case: "statusUpdate", value: { status: { state: TaskState.TASK_STATE_CANCELED } } },
  });
  await expect(client.cancelTask({ tenant: "", id: working.id, metadata: undefined })).rejects.toThrow();
});

test("a run that failed, or that the engine stopped, is a failed task that says why", async () => {
  const client = await connectAgent(server);
  const failed = await send(client, message("m12", "x", skill("failing")));
  expect(failed.status).toMatchObject({
    state: TaskState.TASK_STATE_FAILED,
    message: { parts: [{ content: { value: "TypeError: the card was refused" } }] },
  });
  const stopped = await send(client, message("m13", "x", skill("stopping")));
  expect(stopped.status?.message?.parts[0]?.content?.value).toContain("reprise resume");
});

test("roles, scopes and definitions that are not offered hold, and what is refused writes nothing", async () => {
  const client = await connectAgent(server);
  await engine.start(secret, undefined, { id: "secret-1", tags: ["a2a"] });
  await engine.start(greet, "x", { id: "greet-outside" });
  const before = (await Array.fromAsync(engine.list())).length;
  const refused = async (of: Client, given: Parameters<typeof send>[1]): Promise<void> => {
    await expect(send(of, given)).rejects.toThrow();
  };
  for (const id of ["secret-1", "greet-outside", "none"])
    await expect(getTask(client, id)).rejects.toThrow(/no task|RUN_/);
  await refused(client, message("m14", "x", skill("secret")));
  await refused(client, message("m14", "x"));
  await refused(await connectAgent(server, "reader"), message("m15", "x", skill("greet")));
  await refused(await connectAgent(server, "only-greet"), message("m15", { version: 1 }, skill("release")));
  await refused(client, message("", "x", skill("greet")));
  await refused(client, message("m16", "x", { ...skill("release"), parts: [] }));
  expect(await Array.fromAsync(engine.list())).toHaveLength(before);
  // A caller with tags sees what it starts.
  const eu = await connectAgent(server, "only-eu");
  const done = await send(eu, message("m17", "Eve", skill("greet")));
  expect(outputOf(done)).toBe("Hello, Eve");
  expect((await engine.get(greet, done.id).info()).tags).toContain("eu");
  const reader = await connectAgent(server, "reader");
  expect(outputOf(await getTask(reader, done.id))).toBe("Hello, Eve");
  await expect(reader.cancelTask({ tenant: "", id: done.id, metadata: undefined })).rejects.toThrow();
});

test("bad requests are refused without a crash, and without a token there is only the card", async () => {
  const post = async (body: unknown, headers: Record<string, string> = {}, token = "operator"): Promise<any> => {
    const response = await ask(server, "/a2a", {
      body,
      headers: { "a2a-version": "1.0", ...headers },
      ...(token !== "" && { token: tokenFor(token) }),
    });
    return { status: response.status, ...((await response.json()) as object) };
  };
  const call = (method: string, params?: unknown): object => ({ jsonrpc: "2.0", id: 1, method, params });
  expect(await post(call("GetTask", { id: "none" }), {}, "")).toMatchObject({ status: 401 });
  expect(await post(call("GetTask", { id: "none" }))).toMatchObject({ status: 200, id: 1, error: { code: -32_001 } });
  for (const body of [[], 5, "x", null, {}, { jsonrpc: "1.0" }, call("Nothing"), call("GetTask"), call("GetTask", [])])
    expect(await post(body), JSON.stringify(body)).toHaveProperty("error.code");
  expect(await post(call("GetTask", { id: "x" }), { "a2a-version": "0.3" })).toHaveProperty("error.code");
  expect(await post(call("SendMessage", { message: { messageId: "m", parts: [{ raw: "AA==" }] } }))).toHaveProperty(
    "error.code",
  );
  expect(await post(call("CreateTaskPushNotificationConfig", { taskId: "x", url: "https://x" }))).toHaveProperty(
    "error.code",
  );
  expect(() => a2a({ name: "x", description: "y", skills: [] })).toThrow(/at least one/);
  expect(() => a2a({ name: "", description: "y", skills: [{ definition: greet, description: "z" }] })).toThrow(/name/);
});
