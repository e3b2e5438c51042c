// GET /v1/runs/{id}/streams/{name}: frames as server-sent events.

import { connect } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createEngine, signal, stream, workflow, type Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemTimers } from "../../src/base/index.ts";
import { liveReadsOf, openStoreOf } from "../../src/engine/index.ts";
import { EventStream } from "../../src/server/live/event-stream.ts";
import { followStream, StreamTails } from "../../src/server/live/stream-tail.ts";
import { ask } from "./auth-fixture.ts";
import { SseReader } from "./sse-reader.ts";

const chat = workflow("chat", { ports: { parts: stream<unknown>(), more: signal<unknown>() } }, async (ctx) => {
  for (;;) {
    const value = await ctx.receive("more");
    if (value === "end") return "ended";
    ctx.emit("parts", value);
  }
});

let attempts = 0;
const flaky = workflow("flaky", { ports: { words: stream<string>() } }, async (ctx) =>
  ctx.run(
    "say",
    ({ emit }) => {
      attempts += 1;
      emit("words", `attempt ${attempts}`);
      if (attempts === 1) throw new Error("again");
    },
    { retry: { maxAttempts: 2, baseDelay: "1 ms" } },
  ),
);

const folder = mkdtempSync(join(tmpdir(), "reprise-streams-"));
const store = `sqlite:${join(folder, "streams.db")}`;
let engine: Engine<typeof chat | typeof flaky>;
let server: Server;
let listening: { readonly url: string; close(): Promise<void> };
let url: string;

beforeAll(async () => {
  engine = await createEngine({ store, definitions: [chat, flaky], logger: false });
  server = createServer(engine, { logger: { ...silent, info: (message) => void onInfo(message) } });
  listening = await server.listen({ port: 0 });
  ({ url } = listening);
});

afterAll(async () => {
  await listening.close();
  await engine.close();
  rmSync(folder, { recursive: true });
});

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
let onInfo = (_message: string): unknown => undefined;

const EVENTS = { accept: "text/event-stream" };

async function follow(path: string, headers: Record<string, string> = {}): Promise<SseReader> {
  const response = await fetch(`${url}/v1/runs/${path}`, { headers: { ...EVENTS, ...headers } });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  return new SseReader(response);
}

test("a reader gets every frame with its offset, and the status of the run at the end", async () => {
  const run = await engine.start(chat, undefined, { id: "chat-1" });
  await run.signal("more", { text: "a\nb" });
  await using reader = await follow("chat-1/streams/parts");
  expect(await reader.next()).toEqual({ id: "1", event: "message", data: { value: { text: "a\nb" } } });
  await run.signal("more", new Date(0));
  expect(await reader.next()).toEqual({ id: "2", event: "message", data: { value: "1970-01-01T00:00:00.000Z" } });
  await run.signal("more", "end");
  expect(await reader.next()).toEqual({ id: undefined, event: "end", data: { status: "completed" } });
  expect(await reader.next()).toBeUndefined();
});

test("Last-Event-ID and after continue behind an offset, and tagged payloads keep their type", async () => {
  await using byHeader = await follow("chat-1/streams/parts?after=0&payloads=tagged", { "last-event-id": "1" });
  expect(await byHeader.next()).toMatchObject({ id: "2", data: { value: { $: "date", v: 0 } } });
  await using byQuery = await follow("chat-1/streams/parts?after=2");
  expect(await byQuery.next()).toMatchObject({ event: "end" });
  const bad = await fetch(`${url}/v1/runs/chat-1/streams/parts`, { headers: { ...EVENTS, "last-event-id": "x" } });
  expect(bad.status).toBe(400);
});

test("a repeated execution is announced by a reset with its step", async () => {
  const run = await engine.start(flaky, undefined, { id: "flaky-1" });
  await run.result();
  await using reader = await follow("flaky-1/streams/words");
  const events = await reader.rest();
  expect(events.map(({ event }) => event)).toEqual(["message", "reset", "message", "end"]);
  const [first, reset, second] = events;
  expect(first!.data).toEqual({ value: "attempt 1", step: "Operation(0)", execution: 1 });
  expect(reset).toEqual({ id: "2", event: "reset", data: { step: "Operation(0)", execution: 2 } });
  expect(second!.data).toEqual({ value: "attempt 2", step: "Operation(0)", execution: 2 });
});

test("an unknown run or stream is 404, and writing is 405", async () => {
  expect((await ask(server, "/v1/runs/none/streams/parts", { origin: url, headers: EVENTS })).status).toBe(404);
  expect((await ask(server, "/v1/runs/chat-1/streams/none", { origin: url, headers: EVENTS })).status).toBe(404);
  expect((await ask(server, "/v1/runs/chat-1/streams/parts", { origin: url, method: "POST", body: {} })).status).toBe(
    405,
  );
  expect((await ask(server, "/v1/runs/chat-1/streams/parts", { origin: url, method: "PUT", body: {} })).status).toBe(
    405,
  );
});

test("a process without the run's code reads its streams as they grow", async () => {
  await using client = await createClient({ store, definitions: [], logger: false });
  await using other = createServer(client);
  const run = await engine.start(chat, undefined, { id: "chat-other" });
  await using reader = new SseReader(await ask(other, "/v1/runs/chat-other/streams/parts", { headers: EVENTS }));
  await run.signal("more", 1);
  expect(await reader.next()).toMatchObject({ id: "1", data: { value: 1 } });
  await run.signal("more", "end");
  expect(await reader.next()).toMatchObject({ event: "end" });
});

test("many readers of one stream get the same frames, also if they join in the middle", async () => {
  const run = await engine.start(chat, undefined, { id: "chat-many" });
  const readers = await Promise.all(Array.from({ length: 20 }, () => follow("chat-many/streams/parts")));
  for (let part = 1; part <= 10; part += 1) await run.signal("more", part);
  await readers[0]!.find(({ id }) => id === "5");
  readers.push(await follow("chat-many/streams/parts?after=3"));
  for (let part = 11; part <= 20; part += 1) await run.signal("more", part);
  await run.signal("more", "end");
  const all = await Promise.all(readers.map((reader) => reader.rest()));
  const ids = (events: readonly { id: string | undefined }[]): number[] =>
    events.slice(0, -1).map(({ id }) => Number(id));
  expect(ids(all[0]!)).toEqual(Array.from({ length: 15 }, (_, index) => index + 6));
  for (const events of all.slice(1, -1))
    expect(ids(events)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  expect(ids(all.at(-1)!)).toEqual(Array.from({ length: 17 }, (_, index) => index + 4));
});

test("a reader that does not read is closed once a megabyte waits for it, and comes back by its offset", async () => {
  const run = await engine.start(chat, undefined, { id: "chat-slow" });
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `GET /v1/runs/chat-slow/streams/parts HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  // The first frame says that the reader is at the end of the stream; then it takes no more.
  await run.signal("more", "first");
  await new Promise<void>((resolve) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
      if (text.includes('"first"')) resolve();
    });
  });
  socket.removeAllListeners("data");
  socket.pause();
  const cut = new Promise<void>((resolve) => {
    onInfo = (message) => message.includes("did not keep up") && resolve();
  });
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
    socket.once("error", () => undefined);
  });
  // More than the buffers of both sockets hold.
  const part = "x".repeat(200_000);
  for (let sent = 0; sent < 100; sent += 1) await run.signal("more", part);
  await using quick = await follow("chat-slow/streams/parts?after=100");
  expect(await quick.next()).toMatchObject({ id: "101" });
  await cut;
  socket.resume();
  let received = "";
  socket.on("data", (chunk) => void (received += chunk.toString("latin1")));
  await closed;
  const offsets = [...received.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  expect(offsets).toEqual(offsets.map((_, index) => offsets[0]! + index));
  expect(offsets.at(-1)).toBeLessThan(101);
  await using again = await follow(`chat-slow/streams/parts?after=${offsets.at(-1)}`);
  expect(await again.next()).toMatchObject({ id: String(offsets.at(-1)! + 1) });
  await run.terminate();
});

test("an event stream counts what its reader has not taken, and sends comments while nothing happens", async () => {
  const gone = new AbortController();
  const open = (maxBehind: number): EventStream =>
    new EventStream({ timers: systemTimers, signal: gone.signal, maxBehind, commentMs: 5 });
  const behind = open(10);
  expect(behind.send(new Uint8Array(20))).toBe(true);
  expect(behind.behind).toBe(20);
  expect(behind.send(new Uint8Array(1))).toBe(false);
  expect(behind.wasBehind).toBe(true);
  await expect(behind.response.arrayBuffer()).rejects.toThrow("too far behind");
  const quiet = open(10);
  const reader = quiet.response.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe(":\n\n");
  gone.abort();
  await reader.closed;
  const stalled = new EventStream({ timers: systemTimers, signal: new AbortController().signal, commentMs: 2 });
  stalled.send(new Uint8Array(1));
  await new Promise((resolve) => stalled.closed.addEventListener("abort", resolve));
  expect(stalled.wasBehind).toBe(true);
});

test("a backlog of megabytes arrives in Durable Streams events, each page with its offset", async () => {
  const run = await engine.start(chat, undefined, { id: "chat-long" });
  for (let at = 0; at < 30; at += 1) await run.signal("more", String(at).padEnd(100_000, "x"));
  await run.signal("more", "end");
  await run.result();
  const response = await fetch(`${url}/v1/runs/chat-long/streams/parts?offset=-1&live=sse`);
  const text = await response.text();
  const values = [...text.matchAll(/^data:(\[.*)$/gm)].flatMap(([, json]) => JSON.parse(json!) as string[]);
  expect(values.map((value) => Number(value.replace(/x+$/, "")))).toEqual(Array.from({ length: 30 }, (_, at) => at));
  expect(text).toMatch(/"streamClosed":true\}\n\n$/);
});

test("a reader that is behind in a stream of a deleted run comes to its end", async () => {
  const run = await engine.start(chat, undefined, { id: "chat-gone" });
  const source = await liveReadsOf(engine)!.findStream("chat-gone", "parts");
  const tails = new StreamTails(liveReadsOf(engine)!, openStoreOf(engine)!);
  const left = new AbortController();
  const pages = (): ReturnType<typeof followStream> =>
    followStream(openStoreOf(engine)!, tails, { id: "chat-gone", name: "parts", run: source.run }, 0, left.signal);
  const [quick, slow] = [pages(), pages()];
  const first = [quick.next(), slow.next()];
  await run.signal("more", 0);
  await Promise.all(first);
  // More than the tail holds.
  for (let at = 1; at <= 12; at += 1) await run.signal("more", "x".repeat(100_000));
  await run.signal("more", "end");
  while ((await quick.next()).done !== true);
  await run.delete();
  expect(await slow.next()).toEqual({ done: true, value: undefined });
});
