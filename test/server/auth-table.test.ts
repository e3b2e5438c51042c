// Every operation of the table with every role, with scopes and with browser tokens. The tests walk the table, so an operation that is added
// later is checked without a line here.

import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { append, createEngine, END, graph, last, promise, START, stream, workflow, type Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { ROLES, type Operation, type Role } from "../../src/contract/index.ts";
import { OPERATIONS } from "../../src/server/operations.ts";
import { ask, codeOf, ORIGIN, ROLE_TOKENS, SECRET, settings, tokenFor } from "./auth-fixture.ts";

/** Operations that need no caller: each has a reason, and a new one needs a decision. */
const PUBLIC: Readonly<Record<string, string>> = {
  signIn: "makes the caller",
  signOut: "removes a cookie",
  showApprovalLink: "the path is the secret",
  answerApprovalLink: "the path is the secret",
  receiveWebhook: "the body is signed",
  receiveCallback: "the path is the secret",
  getHealth: "says only that the process runs",
  getReadiness: "says only that the process is ready",
};

const guarded = workflow(
  "guarded",
  { ports: { ok: promise<{ ok: boolean }>(), words: stream<string>() } },
  async (ctx, card: string) => {
    await ctx.run("charge", { card }, (_op, given) => ({ charged: given.card }));
    ctx.log.info(`charged ${card}`);
    ctx.emit("words", card);
    return ctx.promise("ok", { show: { card } });
  },
);
const failing = workflow("failing", async (ctx, card: string) => {
  await ctx.run("refuse", () => {
    throw new Error(`the card ${card} was refused`);
  });
});
const chat = graph("chat", { state: { card: last(""), notes: append<string>() } })
  .node("note", (_ctx, state) => ({ notes: [`of ${state.card}`] }))
  .edge(START, "note")
  .edge("note", END);
const elsewhere = workflow("elsewhere", async (_ctx, card: string) => card);

let engine: Engine<any>;
let server: Server;

beforeAll(async () => {
  engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [guarded, failing, chat, elsewhere],
    logger: false,
  });
  await engine.start(guarded, SECRET, { id: "guarded-1", tags: ["eu"] });
  await engine.start(failing, SECRET, { id: "failing-1", tags: ["eu"] });
  await engine.start(chat, { card: SECRET }, { id: "chat-1", tags: ["eu"] });
  await engine.start(elsewhere, SECRET, { id: "elsewhere-1", tags: ["us"] });
  await engine.schedule("nightly", guarded, SECRET, { cron: "0 3 * * *" });
  await engine.schedule("hourly", elsewhere, SECRET, { cron: "0 * * * *" });
  await vi.waitUntil(async () => (await engine.find("guarded-1"))?.status === "waiting");
  for (const id of ["failing-1", "chat-1", "elsewhere-1"])
    await vi.waitUntil(async () => (await engine.find(id))?.endedAt !== undefined);
  server = createServer(engine, {
    limits: { requestsPerSecond: 10_000 },
    auth: {
      tokens: [
        ...ROLE_TOKENS,
        settings("definitions", "admin", { definitions: ["guarded", "failing", "chat"] }),
        settings("tags", "admin", { tags: ["eu"] }),
        settings("queues", "admin", { queues: ["mail"] }),
      ],
    },
  });
});

afterAll(async () => {
  await server.close();
  await engine.close();
});

/** The path of an operation with these values, and others that do not exist. */
function pathOf({ path, query }: Operation, values: Readonly<Record<string, string>>): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(values[name] ?? "absent"));
  const required = (query?.["required"] ?? []) as readonly string[];
  const pairs = required.map((name) => `${name}=${encodeURIComponent(values[name] ?? "absent")}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join("&")}`;
}

/** Sends the operation, and reads its answer up to the first part of a stream. */
async function send(
  operation: Operation,
  token: string | undefined,
  values: Readonly<Record<string, string>> = {},
): Promise<{ status: number; text: string; code: string }> {
  const { method, body } = operation;
  const response = await ask(server, pathOf(operation, values), {
    method,
    ...(token !== undefined && { token }),
    ...(method !== "GET" && body !== undefined && { body: operation.example.body ?? {} }),
  });
  let text = "";
  if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    text = Buffer.from(value ?? []).toString("utf8");
    await reader.cancel();
  } else text = await response.text();
  const [, code = ""] = /"code":"(\w+)"/.exec(text) ?? [];
  return { status: response.status, text, code };
}

const callers = OPERATIONS.filter(({ operation }) => operation.role !== "public");

test("only operations with a reason need no caller", () => {
  expect(OPERATIONS.length).toBeGreaterThan(20);
  expect(
    OPERATIONS.filter(({ operation }) => operation.role === "public").filter(({ id }) => PUBLIC[id] === undefined),
  ).toEqual([]);
  for (const { id, operation } of callers) expect(ROLES, id).toContain(operation.role);
});

describe.each(callers.map(({ id, operation }) => [id, operation] as const))("%s", (_id, operation) => {
  test("refuses a request without a token, and every role below its own; the others get in", async () => {
    expect((await send(operation, undefined)).status).toBe(401);
    const least = ROLES.indexOf(operation.role as Role);
    for (const [at, role] of ROLES.entries()) {
      const { status, code } = await send(operation, tokenFor(role));
      if (at < least) expect([role, status, code]).toEqual([role, 403, "ROLE_REQUIRED"]);
      else expect([401, 403], `${role}: ${status} ${code}`).not.toContain(status);
    }
  });

  test("refuses a browser token of another run, and has one for its own run up to its role", async () => {
    const mint = async (role: string, stream?: string): Promise<string> => {
      const response = await ask(server, "/v1/tokens", {
        body: { run: "guarded-1", role, stream },
        token: tokenFor("admin"),
      });
      return ((await response.json()) as { token: string }).token;
    };
    const [reader, words] = [await mint("reader"), await mint("reader", "words")];
    const { status } = await send(operation, reader, { id: "failing-1" });
    const isOfRun = operation.path.startsWith("/v1/runs/{id}");
    if (operation.path !== "/v1/events") expect([403, 404]).toContain(status);
    if (!isOfRun && operation.path !== "/v1/events") expect(status).toBe(403);
    const isStream = operation.path === "/v1/runs/{id}/streams/{name}";
    if (!isStream) expect((await send(operation, words, { id: "guarded-1" })).status).toBe(403);
    if (ROLES.indexOf(operation.role as Role) > ROLES.indexOf("reader"))
      expect((await send(operation, reader, { id: "guarded-1" })).code).toBe("ROLE_REQUIRED");
  });

  test("has no run, definition or schedule outside of the scope of a token", async () => {
    const outside = { id: "elsewhere-1", other: "elsewhere-1", name: "elsewhere" };
    for (const name of ["definitions", "tags"]) {
      if (operation.path.startsWith("/v1/runs/{id}"))
        expect((await send(operation, tokenFor(name), outside)).code, name).toBe("RUN_NOT_FOUND");
      if (operation.path.includes("{other}"))
        expect((await send(operation, tokenFor(name), { ...outside, id: "guarded-1" })).code).toBe("RUN_NOT_FOUND");
      if (operation.path.startsWith("/v1/schedules/{name}"))
        expect((await send(operation, tokenFor(name), { name: "hourly" })).code).toBe("SCHEDULE_NOT_FOUND");
      if (operation.method !== "GET" || operation.path.includes("{")) continue;
      const { status, text } = await send(operation, tokenFor(name));
      if (operation.scope === undefined) expect([name, status]).toEqual([name, 403]);
      // Tags narrow runs, and not the names of definitions.
      else
        expect(text, name).not.toMatch(name === "tags" ? /elsewhere-1|hourly|"elsewhere".*"p95"/ : /elsewhere|hourly/);
    }
    if (operation.path.startsWith("/v1/definitions/{name}"))
      expect((await send(operation, tokenFor("definitions"), outside)).code).toBe("UNKNOWN_DEFINITION");
    if (operation.path.startsWith("/v1/queues/{name}"))
      expect((await send(operation, tokenFor("queues"), { name: "default" })).code).toBe("QUEUE_NOT_FOUND");
  });
});

test("no answer to a viewer has a payload, while a reader gets it from the same operations", async () => {
  const reads = callers.filter(({ operation }) => operation.method === "GET");
  const seen = new Set<string>();
  const values = [
    { id: "guarded-1", name: "guarded", other: "guarded-1" },
    { id: "failing-1", name: "nightly", other: "guarded-1" },
    { id: "chat-1", name: "default", step: "1", other: "chat-1" },
  ];
  for (const { id, operation } of reads)
    for (const one of values) {
      const viewed = await send(operation, tokenFor("viewer"), one);
      expect(viewed.text.includes(SECRET), `${id} of ${one.id}: ${viewed.text.slice(0, 2_000)}`).toBe(false);
      if ((await send(operation, tokenFor("reader"), one)).text.includes(SECRET)) seen.add(id);
    }
  expect([...seen]).toEqual(expect.arrayContaining(["getRun", "getResult", "listJournal", "getTimeline", "getState"]));
});

test("a path that only looks like one of an operation is none", async () => {
  for (const path of [
    "/v1/../v1//runs",
    "//v1/runs",
    "/v1/runs/",
    "/V1/runs",
    "/v1/runs%2fguarded-1",
    "/v1/runs;x=1",
    "/v1%2fruns",
    "/v1/runs/guarded-1/../../runs/elsewhere-1/",
  ]) {
    const response = await ask(server, path, { token: tokenFor("definitions") });
    const text = await response.text();
    expect([404, 400], path).toContain(response.status);
    expect(text, path).not.toMatch(/"items"|4111/);
  }
  // Dots are resolved before the route is found, so what is checked is what is read.
  expect(await codeOf(ask(server, "/v1/runs/guarded-1/%2e%2e/elsewhere-1", { token: tokenFor("definitions") }))).toBe(
    "404 RUN_NOT_FOUND",
  );
  expect(await codeOf(ask(server, "/v1/runs/guarded-1%2f..%2felsewhere-1", { token: tokenFor("definitions") }))).toBe(
    "404 RUN_NOT_FOUND",
  );
  expect(await codeOf(ask(server, "/v1/runs/%ff", { token: tokenFor("definitions") }))).toMatch(/^40[04] /);
});

test("every state change leaves one line with caller, run, reason and outcome, and no line has a payload or a token", async () => {
  const lines: { message: string; data: Record<string, unknown> }[] = [];
  const note = (message: string, data: object = {}): void => void lines.push({ message, data: { ...data } });
  const logger = { debug: note, info: note, warn: note, error: note };
  await using audited = createServer(engine, { auth: { tokens: ROLE_TOKENS }, logger });
  const mint = { body: { run: "guarded-1", role: "reader", name: "page" } };
  const { token } = (await (await ask(audited, "/v1/tokens", { ...mint, token: tokenFor("operator") })).json()) as {
    token: string;
  };
  await ask(audited, "/v1/runs/guarded-1/links", { body: { port: "ok" }, token: tokenFor("viewer") });
  await ask(audited, "/v1/runs/guarded-1/links", { body: { port: "none" }, token: tokenFor("admin") });
  await ask(audited, "/v1/tokens", { ...mint, token: tokenFor("unknown") });
  await ask(audited, `/v1/tokens?token=${tokenFor("admin")}`, { ...mint, token: tokenFor("admin") });
  await ask(audited, "/v1/session", {
    body: { token: tokenFor("admin") },
    headers: { "x-reprise": "1" },
    origin: ORIGIN,
  });
  await ask(audited, "/v1/runs", { token: tokenFor("admin") });
  expect(lines.map(({ message, data }) => [message, data["caller"], data["outcome"], data["code"]])).toEqual([
    ["audit createBrowserToken", "operator", "done", undefined],
    ["audit createApprovalLink", "viewer", "refused", "ROLE_REQUIRED"],
    ["audit createApprovalLink", "admin", "refused", "UNKNOWN_PORT"],
    ["audit createBrowserToken", "anonymous", "refused", "TOKEN_REQUIRED"],
    ["audit createBrowserToken", "anonymous", "refused", "TOKEN_REQUIRED"],
    ["audit signIn", "anonymous", "done", undefined],
  ]);
  expect(lines[1]!.data).toMatchObject({ run: "guarded-1", role: "viewer" });
  const text = JSON.stringify(lines);
  for (const secret of [token, SECRET, "rp_", "rpb_", "sha256"]) expect(text).not.toContain(secret);
});
