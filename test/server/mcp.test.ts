// MCP over HTTP with the official client, of both eras of the protocol: tools by role and scope, resources, size of answers, redaction,
// hostile messages.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../engine/world.ts";
import { createEngine, END, graph, last, promise, signal, START, stream, workflow, type Engine } from "reprise";
import { createServer, type Server, type ServerOptions } from "reprise/server";
import { ROLES, type Role } from "../../src/contract/index.ts";
import { ask, ROLE_TOKENS, SECRET, settings, tokenFor } from "./auth-fixture.ts";
import { callTool, connect, ERAS, newClient } from "./mcp-client.ts";
import { StoreRows } from "./store-rows.ts";

const checkout = workflow(
  "checkout",
  { ports: { approval: promise<{ ok: boolean }>(), note: signal<string>(), words: stream<string>() } },
  async (ctx, input: { readonly card: string; readonly password?: string }) => {
    await ctx.run("charge", input, (_op, given) => ({ charged: given.card, password: given.password }));
    for (const word of ["one", "two", "three"]) ctx.emit("words", `${word} ${input.card}`);
    return ctx.promise("approval", { show: { card: input.card, password: "hunter2" } });
  },
);
const long = workflow("long texts", async (ctx, count: number) => {
  for (let at = 0; at < count; at++) await ctx.run(`step ${at}`, () => `${at} `.repeat(500));
  return "x".repeat(100_000);
});
const failing = workflow("failing", async (ctx) =>
  ctx.run("refuse", () => {
    throw new TypeError("the card was refused");
  }),
);
const chat = graph("chat", { state: { text: last("") } })
  .node("write", (_ctx, state) => ({ text: `${state.text}!` }))
  .edge(START, "write")
  .edge("write", END);
const other = workflow("other", async (_ctx, card: string) => ({ card }));

/** Every tool, and the least role that has it. */
const TOOLS: Readonly<Record<string, Role>> = {
  search_docs: "viewer",
  runs_list: "viewer",
  run_show: "viewer",
  run_why: "viewer",
  run_journal: "viewer",
  promises_list: "viewer",
  queues: "viewer",
  schedules: "viewer",
  definitions: "viewer",
  run_diff: "reader",
  run_stream: "reader",
  promise_resolve: "approver",
  run_signal: "operator",
  run_cancel: "operator",
  run_retry: "operator",
  run_fork: "operator",
  start_checkout: "operator",
  start_failing: "operator",
  start_chat: "operator",
  start_other: "operator",
  start_long_texts: "operator",
};
const READ_ONLY = ["viewer", "reader"];

const folder = mkdtempSync(join(tmpdir(), "reprise-mcp-"));
const path = join(folder, "shop.db");
let engine: Engine<any>;
let server: Server;
let rows: StoreRows;

function open(options: Partial<ServerOptions> = {}): Server {
  return createServer(engine, {
    limits: { requestsPerSecond: 10_000 },
    auth: {
      tokens: [
        ...ROLE_TOKENS,
        settings("only-other", "operator", { definitions: ["other"] }),
        settings("only-eu", "operator", { tags: ["eu"] }),
      ],
    },
    ...options,
  });
}

beforeAll(async () => {
  engine = await createEngine({
    store: `sqlite:${path}`,
    definitions: [checkout, long, failing, chat, other],
    logger: false,
  });
  await engine.start(checkout, { card: SECRET, password: "hunter2" }, { id: "order-1", tags: ["eu"] });
  const second = await engine.start(checkout, { card: "none", password: "hunter2-2" }, { id: "order-2" });
  await second.cancel();
  await engine.start(failing, undefined, { id: "failing-1" });
  await engine.start(chat, { text: "a" }, { id: "chat-1" });
  await engine.start(other, SECRET, { id: "other-1", tags: ["us"] });
  await engine.start(other, "another", { id: "other-2", tags: ["us"] });
  await engine.start(long, 40, { id: "long-1" });
  await engine.schedule("nightly", other, "x", { cron: "0 3 * * *" });
  await until(async () => (await engine.find("order-1"))?.status === "waiting");
  for (const id of ["failing-1", "chat-1", "other-1", "other-2", "long-1"])
    await until(async () => (await engine.find(id))?.endedAt !== undefined);
  server = open();
  rows = new StoreRows(path);
});

afterAll(async () => {
  rows[Symbol.dispose]();
  await server.close();
  await engine.close();
  rmSync(folder, { recursive: true });
});

describe.each(ERAS)("a client of the %s protocol", (era) => {
  test("lists and calls every tool that reads", async () => {
    const client = await connect(server, { era, token: "reader" });
    expect(client.getNegotiatedProtocolVersion()).toBe(era === "legacy" ? "2025-11-25" : "2026-07-28");
    expect(client.getServerVersion()).toMatchObject({ name: "reprise" });
    const { tools } = await client.listTools();
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
    const value = async (name: string, args: Record<string, unknown> = {}): Promise<any> => {
      const called = await callTool(client, name, args);
      expect(called.isError, `${name}: ${called.text}`).toBe(false);
      return called.value ?? called.text;
    };
    expect((await value("runs_list", { status: ["waiting"] })).items).toMatchObject([{ id: "order-1" }]);
    expect(await value("run_show", { run: "order-1" })).toMatchObject({ status: "waiting", definition: "checkout" });
    expect(await value("run_why", { run: "order-1" })).toMatchObject({
      status: "waiting",
      waitsFor: [{ reason: "promise", next: [expect.stringContaining("reprise resolve order-1")] }],
    });
    expect(await value("run_why", { run: "failing-1" })).toMatchObject({
      status: "failed",
      error: { message: "the card was refused" },
    });
    expect((await value("run_journal", { run: "order-1", limit: 2 })).items).toHaveLength(2);
    expect(await value("run_diff", { run: "other-1", other: "other-2" })).toMatchObject({
      items: [{ at: "input" }, { at: "output" }],
    });
    expect(await value("run_stream", { run: "order-1", stream: "words", after: 1, limit: 1 })).toMatchObject({
      frames: [{ offset: 2, value: `two ${SECRET}` }],
      next: 2,
      more: true,
      ended: false,
    });
    expect((await value("promises_list")).items).toMatchObject([{ run: "order-1", name: "approval" }]);
    expect((await value("queues")).items[0]).toHaveProperty("name");
    expect((await value("schedules")).items).toMatchObject([{ name: "nightly" }]);
    expect((await value("definitions")).items).toHaveLength(5);
    expect(await value("definitions", { name: "chat" })).toMatchObject({ kind: "graph" });
    expect(await value("search_docs", { query: "webhook signature" })).toContain("reprise://docs/guides/webhooks.md");
    await client.close();
  });

  test("reads documents, runs, journals, states and definitions as resources", async () => {
    const client = await connect(server, { era, token: "reader" });
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain("reprise://runs/{id}/state/{step}");
    const read = async (uri: string): Promise<any> => {
      const { contents } = await client.readResource({ uri });
      return JSON.parse((contents[0] as { text: string }).text);
    };
    expect(await read("reprise://runs/order-1")).toMatchObject({ id: "order-1" });
    expect((await read("reprise://runs/order-1/journal")).items.length).toBeGreaterThan(2);
    expect(await read("reprise://runs/chat-1/state/1")).toMatchObject({ state: { text: "a!" } });
    expect(await read("reprise://definitions/checkout")).toMatchObject({ name: "checkout" });
    const { contents } = await client.readResource({ uri: "reprise://docs/guides/cli.md" });
    const first = (contents[0] as { text: string }).text;
    expect(Buffer.byteLength(first)).toBeLessThanOrEqual(32 * 1024);
    const [, next] = /\(The next part: (.+)\)/.exec(first)!;
    expect((await client.readResource({ uri: next! })).contents).toHaveLength(1);
    for (const uri of [
      "reprise://runs/none",
      "reprise://runs/order-1/state/x",
      "reprise://runs/order-1/state",
      "reprise://definitions/none",
      "reprise://docs/../package.json",
      "file:///etc/passwd",
      "reprise://runs/%ff",
    ])
      await expect(client.readResource({ uri }), uri).rejects.toMatchObject({ data: { uri } });
    await client.close();
  });

  test("starts a run and gets its output, answers a promise, and controls runs", async () => {
    const client = await connect(server, { era });
    const started = await callTool(client, "start_other", { input: "b", id: `other-${era}`, tags: ["eu"] });
    expect(started).toMatchObject({
      isError: false,
      value: { run: `other-${era}`, status: "completed", output: { card: "b" } },
    });
    // The same id is the same run.
    expect((await callTool(client, "start_other", { input: "b", id: `other-${era}` })).value.run).toBe(`other-${era}`);
    expect(await callTool(client, "start_failing", { id: `failing-${era}` })).toMatchObject({
      isError: true,
      value: { status: "failed", error: { name: "TypeError" } },
    });
    const id = `answered-${era}`;
    await engine.start(checkout, { card: "c" }, { id });
    await until(async () => (await engine.find(id))?.status === "waiting");
    expect((await callTool(client, "run_signal", { run: id, signal: "note", value: "hi" })).isError).toBe(false);
    const resolved = await callTool(client, "promise_resolve", { run: id, port: "approval", value: { ok: true } });
    expect(resolved.isError, resolved.text).toBe(false);
    await expect(engine.get(checkout, id).result()).resolves.toEqual({ ok: true });
    const journal = (await callTool(client, "run_journal", { run: id, order: "last" })).text;
    expect(journal).toContain('"by":"operator"');
    expect((await callTool(client, "run_retry", { run: `failing-${era}` })).isError).toBe(false);
    const forked = await callTool(client, "run_fork", { run: "chat-1", step: 0, id: `fork-${era}` });
    expect(forked.value).toMatchObject({ id: `fork-${era}` });
    await engine.start(checkout, { card: "d" }, { id: `canceled-${era}` });
    expect((await callTool(client, "run_cancel", { run: `canceled-${era}`, reason: "no" })).isError).toBe(false);
    await until(async () => (await engine.find(`canceled-${era}`))?.status === "cancelled");
    await client.close();
  });
});

test("a role has the tools of the table, and a tool that it does not have cannot be called", async () => {
  const least = (tool: string): number => ROLES.indexOf(TOOLS[tool]!);
  const before = rows.read();
  for (const [at, role] of ROLES.entries()) {
    const client = await connect(server, { token: role });
    const { tools } = await client.listTools();
    const expected = Object.keys(TOOLS).filter((tool) => least(tool) <= at);
    expect(tools.map(({ name }) => name).toSorted(), role).toEqual(expected.toSorted());
    for (const { name, inputSchema } of tools) {
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(inputSchema.type).toBe("object");
    }
    for (const tool of Object.keys(TOOLS)) {
      const call = client.callTool({ name: tool, arguments: { nothing: 1 } });
      if (least(tool) > at) await expect(call, `${role} ${tool}`).rejects.toMatchObject({ code: -32_602 });
      else expect((await call) as { isError?: boolean }, `${role} ${tool}`).toMatchObject({ isError: true });
    }
    await client.close();
  }
  expect(rows.read()).toEqual(before);
});

test("`allow` narrows the tools that act, `mcp: false` removes the address, and an unknown name is refused", async () => {
  await using narrow = open({ mcp: { allow: ["other", "run_cancel"] } });
  const client = await connect(narrow, { token: "admin" });
  const { tools } = await client.listTools();
  expect(tools.filter(({ annotations }) => annotations?.readOnlyHint === false).map(({ name }) => name)).toEqual([
    "run_cancel",
    "start_other",
  ]);
  await client.close();
  await using none = open({ mcp: false });
  expect((await ask(none, "/mcp", { body: {}, token: tokenFor("admin") })).status).toBe(404);
  expect(() => open({ mcp: { allow: ["nothing"] } })).toThrow(/there is no tool "nothing"/);
});

test("a token with scopes sees only its definitions and runs", async () => {
  const client = await connect(server, { token: "only-other" });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).filter((name) => name.startsWith("start_"))).toEqual(["start_other"]);
  expect(
    (await callTool(client, "runs_list")).value.items.every(
      (one: { definition: string }) => one.definition === "other",
    ),
  ).toBe(true);
  for (const [tool, args] of [
    ["run_show", { run: "order-1" }],
    ["run_why", { run: "order-1" }],
    ["run_journal", { run: "order-1" }],
    ["run_stream", { run: "order-1", stream: "words" }],
    ["run_diff", { run: "other-1", other: "order-1" }],
    ["promise_resolve", { run: "order-1", port: "approval", value: { ok: true } }],
    ["run_cancel", { run: "order-1" }],
  ] as const)
    expect((await callTool(client, tool, args)).value, tool).toMatchObject({ error: "RUN_NOT_FOUND" });
  await expect(client.readResource({ uri: "reprise://runs/order-1" })).rejects.toThrow(/no resource/);
  expect((await callTool(client, "promises_list")).value.items).toEqual([]);
  await client.close();
  const eu = await connect(server, { token: "only-eu" });
  expect((await callTool(eu, "start_other", { input: "x" })).value).toMatchObject({ error: "ROLE_REQUIRED" });
  await eu.close();
});

test("answers have at most 32 KB: a list in a smaller page, a long value cut with a note", async () => {
  const client = await connect(server, { token: "reader" });
  const seen: number[] = [];
  for (let after: string | undefined; ;) {
    const { text, value } = await callTool(client, "run_journal", {
      run: "long-1",
      limit: 500,
      ...(after !== undefined && { after }),
    });
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32 * 1024);
    seen.push(...(value.items as { seq: number }[]).map(({ seq }) => seq));
    after = value.next as string | undefined;
    if (after === undefined) break;
  }
  expect(seen).toEqual(Array.from({ length: seen.length }, (_one, at) => at + 1));
  expect(seen).toHaveLength(42);
  const shown = await callTool(client, "run_show", { run: "long-1" });
  expect(Buffer.byteLength(shown.text)).toBeLessThanOrEqual(32 * 1024);
  expect(shown.value).toMatchObject({ note: expect.stringMatching(/^Cut to 32 KB of .*run_journal/), id: "long-1" });
  await client.close();
});

test("secrets are redacted, and a viewer gets no payload", async () => {
  const uris = ["reprise://runs/order-1", "reprise://runs/order-1/journal"];
  const calls = [
    ["run_show", { run: "order-1" }],
    ["run_journal", { run: "order-1" }],
    ["promises_list", {}],
    ["run_why", { run: "order-1" }],
    ["run_diff", { run: "order-1", other: "order-2" }],
  ] as const;
  for (const token of READ_ONLY) {
    const client = await connect(server, { token });
    const texts = [
      ...(await Promise.all(
        calls
          .filter(([tool]) => tool !== "run_diff" || token === "reader")
          .map(async ([tool, args]) => (await callTool(client, tool, args)).text),
      )),
      ...(await Promise.all(uris.map(async (uri) => JSON.stringify(await client.readResource({ uri }))))),
    ].join("\n");
    expect(texts).not.toContain("hunter2");
    expect(texts.includes(SECRET), token).toBe(token === "reader");
    await client.close();
  }
});

test("a server that listens serves the official client, and refuses other hosts, origins and tokens", async () => {
  await using listening = open();
  const { url } = await listening.listen({ port: 0 });
  const client = newClient({ era: "modern" });
  const headers = { authorization: `Bearer ${tokenFor("reader")}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  expect((await callTool(client, "run_show", { run: "order-1" })).value).toMatchObject({ id: "order-1" });
  await client.close();
  const send = async (more: Record<string, string>): Promise<number> => {
    const response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", ...more },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    });
    await response.text();
    return response.status;
  };
  expect(await send(headers)).toBe(200);
  expect(await send({})).toBe(401);
  expect(await send({ authorization: `Bearer ${tokenFor("unknown")}` })).toBe(401);
  expect(await send({ ...headers, origin: "https://evil.example" })).toBe(403);
  expect(await send({ ...headers, "content-type": "text/plain" })).toBe(415);
  for (const method of ["GET", "DELETE"]) expect((await fetch(`${url}/mcp`, { method, headers })).status).toBe(405);
});

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

async function send(
  message: unknown,
  headers: Record<string, string> = {},
  token = "admin",
): Promise<{ readonly status: number; readonly body: any }> {
  const response = await ask(server, "/mcp", { body: message, headers, token: tokenFor(token) });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

test("headers that contradict the message are refused", async () => {
  const message = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "queues", _meta: META } };
  const fine = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "queues" };
  expect(await send(message, fine)).toMatchObject({ status: 200, body: { id: 7, result: { resultType: "complete" } } });
  const encoded = `=?base64?${Buffer.from("queues").toString("base64")}?=`;
  expect((await send(message, { ...fine, "mcp-name": encoded })).status).toBe(200);
  for (const [name, value] of [
    ["mcp-protocol-version", "2025-11-25"],
    ["mcp-method", "tools/list"],
    ["mcp-name", "runs_list"],
    ["mcp-name", ""],
  ] as const)
    expect(await send(message, { ...fine, [name]: value }), name).toMatchObject({
      status: 400,
      body: { id: 7, error: { code: -32_020 } },
    });
  const unknown = { ...META, "io.modelcontextprotocol/protocolVersion": "2031-01-01" };
  expect(
    await send(
      { jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta: unknown } },
      { "mcp-protocol-version": "2031-01-01", "mcp-method": "server/discover" },
    ),
  ).toMatchObject({ status: 400, body: { error: { code: -32_022, data: { supported: ["2026-07-28"] } } } });
  expect(await send({ jsonrpc: "2.0", id: 1, method: "ping" }, { "mcp-protocol-version": "1999-01-01" })).toMatchObject(
    { status: 400, body: { error: { code: -32_022 } } },
  );
});

test("hostile messages are refused, write nothing and leave the server working", async () => {
  const before = rows.read();
  const tool = (name: unknown, args: unknown): object => ({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: args },
  });
  const deep = JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`) as unknown;
  for (const [message, expected] of [
    [{}, { status: 400 }],
    [[], { status: 400 }],
    ["text", { status: 400 }],
    [{ jsonrpc: "1.0", id: 1, method: "ping" }, { status: 400 }],
    [{ jsonrpc: "2.0", id: {}, method: "ping" }, { status: 400 }],
    [{ jsonrpc: "2.0", id: 1, method: "ping", params: [] }, { status: 400 }],
    [{ jsonrpc: "2.0", id: 1, method: "ping", more: 1 }, { status: 400 }],
    [
      { jsonrpc: "2.0", id: 1, method: "nothing/here" },
      { status: 404, body: { error: { code: -32_601 } } },
    ],
    [{ jsonrpc: "2.0", id: 1, method: "constructor" }, { status: 404 }],
    [{ jsonrpc: "2.0", method: "tools/call", params: { name: "start_other" } }, { status: 202 }],
    [tool("rm", {}), { status: 200, body: { error: { code: -32_602 } } }],
    [tool(undefined, {}), { body: { error: { code: -32_602 } } }],
    [tool({ toString: 1 }, {}), { body: { error: { code: -32_602 } } }],
    [tool("__proto__", {}), { body: { error: { code: -32_602 } } }],
    [tool("run_cancel", "order-1"), { body: { result: { isError: true } } }],
    [tool("run_cancel", { run: 1 }), { body: { result: { isError: true } } }],
    [tool("run_cancel", { run: "" }), { body: { result: { isError: true } } }],
    [tool("run_cancel", { run: "order-1", by: "someone" }), { body: { result: { isError: true } } }],
    [tool("run_cancel", { run: "../order-1" }), { body: { result: { isError: true } } }],
    [tool("run_cancel", { run: "order-1/cancel?x" }), { body: { result: { isError: true } } }],
    [tool("promise_resolve", { run: "order-1", port: "nothing", value: 1 }), { body: { result: { isError: true } } }],
    [tool("promise_resolve", { run: "order-1", port: "approval", by: "x" }), { body: { result: { isError: true } } }],
    [tool("start_other", { input: "x", id: 7 }), { body: { result: { isError: true } } }],
    [tool("start_other", { input: "x", delay: "1 s" }), { body: { result: { isError: true } } }],
    [tool("runs_list", { limit: 1e9 }), { body: { result: { isError: true } } }],
    [tool("runs_list", { limit: "1" }), { body: { result: { isError: true } } }],
    [tool("runs_list", { status: [deep] }), { body: { result: { isError: true } } }],
    [{ jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: 5 } }, { body: { error: { code: -32_602 } } }],
    [{ jsonrpc: "2.0", id: 1, method: "tasks/get", params: { taskId: "order-1" } }, { status: 404 }],
  ] as const)
    expect(await send(message), JSON.stringify(message).slice(0, 200)).toMatchObject(expected);
  const huge = await server.fetch(
    new Request("http://127.0.0.1:7420/mcp", {
      method: "POST",
      headers: { authorization: `Bearer ${tokenFor("admin")}`, "content-type": "application/json" },
      body: JSON.stringify(tool("start_other", { input: "x".repeat(9 * 1024 * 1024) })),
    }),
  );
  expect(huge.status).toBe(413);
  expect(rows.read()).toEqual(before);
  expect((await send({ jsonrpc: "2.0", id: "a", method: "ping" })).body).toEqual({
    jsonrpc: "2.0",
    id: "a",
    result: {},
  });
});

test("every action over MCP leaves the audit line of its operation, and reads leave none", async () => {
  const lines: (readonly unknown[])[] = [];
  const note = (message: string, data: object = {}): void => {
    const { caller, outcome, code } = data as Record<string, unknown>;
    lines.push([message, caller, outcome, code]);
  };
  await using audited = open({ logger: { info: note, warn: note, error: note } });
  const client = await connect(audited, { token: "operator" });
  await callTool(client, "runs_list");
  await callTool(client, "run_cancel", { run: "none" });
  await callTool(client, "start_other", { input: "audited" });
  await client.close();
  expect(lines).toEqual([
    ["audit cancelRun", "operator", "refused", "RUN_NOT_FOUND"],
    ["audit startRun", "operator", "done", undefined],
  ]);
});
