// The read side of Durable Streams over a stream of a run: catch-up, long poll and server-sent events by opaque offsets.
//
// durable-read.D1. An offset is the offset of the last frame that was read, 16 digits long, so that texts sort as numbers do.
// durable-read.D2. A stream is closed when its run has ended. `Stream-Closed` is sent with the last frame, or after it.
// durable-read.D3. The protocol is append-only and has no resets: those frames count in offsets and carry nothing. A reader that must know
//   which values are void uses the events of Reprise (`Accept: text/event-stream` without `offset`).
// durable-read.D4. A cursor is the number of a period of 20 seconds; a client that sends the current one, or one to come, gets a later one,
//   so that caches in between never answer one poll with the answer of the one before.

import { decode, RepriseError } from "../../base/index.ts";
import { hasEnded, type Chunk } from "../../kernel/index.ts";
import type { Call } from "../host.ts";
import { payloadToWire } from "../wire-payload.ts";
import { EventStream, EVENT_STREAM_HEADERS } from "./event-stream.ts";
import { streamTailsOf } from "./hub-of.ts";
import { followStream, type StreamSource } from "./stream-tail.ts";

export interface DurableQuery {
  readonly offset?: string;
  readonly live?: "long-poll" | "sse";
  readonly cursor?: string;
  readonly as?: "json" | "text" | "bytes";
}

const MAX_CHUNKS = 1_000;
const MAX_BYTES = 4_194_304;
const POLL_MS = 20_000;
const CURSOR_MS = 20_000;
/** Cursors count from here: 2026. */
const CURSOR_EPOCH = Date.UTC(2026, 0, 1);
const MAX_JITTER = 180;
const TYPES = { json: "application/json", text: "text/plain", bytes: "application/octet-stream" } as const;
const utf8 = new TextEncoder();

type Format = keyof typeof TYPES;

interface DurableRead {
  readonly call: Call<any>;
  readonly source: StreamSource;
  readonly format: Format;
  readonly cursor: string | undefined;
}

export async function readDurable(call: Call<any>, source: StreamSource): Promise<Response> {
  const { offset, live, cursor, as = "json" } = call.query as DurableQuery;
  const read: DurableRead = { call, source, format: as, cursor };
  if (call.request.method === "HEAD") return head(read);
  if (live !== undefined && offset === undefined)
    throw badOffset(
      `live=${live} needs an offset: \`offset=-1\` for the start, or \`Stream-Next-Offset\` of an answer.`,
    );
  if (live === "sse") return follow(read, offset!);
  if (live === "long-poll") return poll(read, offset!);
  return catchUp(read, offset ?? "-1");
}

// ── offsets ──

function offsetText(offset: number): string {
  return String(offset).padStart(16, "0");
}

async function startOf({ source, call }: DurableRead, offset: string): Promise<number> {
  if (offset === "-1") return 0;
  if (offset === "now") return endOf(source, call);
  if (!/^\d{16}$/.test(offset))
    throw badOffset(
      `${JSON.stringify(offset.slice(0, 40))} is no offset: send \`Stream-Next-Offset\` of an answer, -1 or now.`,
    );
  return Number(offset);
}

/** The offset of the last frame. Found by doubling steps: the store reads forward only. */
async function endOf({ run, name }: StreamSource, { host: { store } }: Call<any>): Promise<number> {
  const exists = async (offset: number): Promise<boolean> =>
    offset === 0 || (await store.readStream(run, name, offset - 1, 1)).length > 0;
  let [low, high] = [0, 1];
  while (await exists(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await exists(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function badOffset(message: string): RepriseError {
  return new RepriseError("BAD_OPTIONS", `Durable Streams: ${message}`, { details: { status: 400 } });
}

/** durable-read.D4 */
function nextCursor({ call, cursor }: DurableRead): string {
  const { clock, random } = call.host;
  const current = Math.floor((clock.now() - CURSOR_EPOCH) / CURSOR_MS);
  const asked = cursor !== undefined && /^\d{1,15}$/.test(cursor) ? Number(cursor) : -1;
  if (asked < current) return String(current);
  return String(asked + 1 + (random.bytes(1)[0]! % MAX_JITTER));
}

// ── answers ──

interface Page {
  readonly chunks: readonly Chunk[];
  readonly next: number;
  readonly isUpToDate: boolean;
  readonly isClosed: boolean;
}

async function readPage({ call, source }: DurableRead, after: number): Promise<Page> {
  const { store } = call.host;
  // First: a run that ends after this read may have added frames that the page does not have.
  const record = await store.findRun(source.id);
  const found = await store.readStream(source.run, source.name, after, MAX_CHUNKS + 1);
  let bytes = 0;
  const count = found.findIndex(({ data }) => (bytes += data.length) > MAX_BYTES);
  const chunks = found.slice(0, Math.min(MAX_CHUNKS, count === -1 ? MAX_CHUNKS : Math.max(1, count)));
  const isUpToDate = chunks.length === found.length;
  return {
    chunks,
    next: chunks.at(-1)?.offset ?? after,
    isUpToDate,
    isClosed: isUpToDate && (record === undefined || hasEnded(record.status)),
  };
}

function headersOf(read: DurableRead, { next, isUpToDate, isClosed }: Omit<Page, "chunks">): Record<string, string> {
  return {
    "content-type": TYPES[read.format],
    "stream-next-offset": offsetText(next),
    ...(isUpToDate && { "stream-up-to-date": "true" }),
    ...(isClosed && { "stream-closed": "true" }),
  };
}

async function head(read: DurableRead): Promise<Response> {
  const next = await endOf(read.source, read.call);
  const record = await read.call.host.store.findRun(read.source.id);
  const isClosed = record === undefined || hasEnded(record.status);
  const headers = headersOf(read, { next, isUpToDate: false, isClosed });
  return new Response(null, { headers: { ...headers, "cache-control": "no-store" } });
}

async function catchUp(read: DurableRead, offset: string): Promise<Response> {
  const after = await startOf(read, offset);
  const page = await readPage(read, after);
  const headers = headersOf(read, page);
  if (offset === "now")
    return new Response(bodyOf(read, page.chunks), { headers: { ...headers, "cache-control": "no-store" } });
  const { format, source, call } = read;
  const etag = `"${source.run}-${after}-${page.next}-${format}-${call.payloads}${page.isClosed ? "-closed" : ""}"`;
  const cached = { etag, "cache-control": "private, no-cache" };
  if (isKnown(call.request, etag)) return new Response(null, { status: 304, headers: { ...headers, ...cached } });
  return new Response(bodyOf(read, page.chunks), { headers: { ...headers, ...cached } });
}

function isKnown(request: Request, etag: string): boolean {
  const known = request.headers.get("if-none-match");
  return known !== null && known.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}

async function poll(read: DurableRead, offset: string): Promise<Response> {
  const { call, source } = read;
  const after = await startOf(read, offset);
  let page = await readPage(read, after);
  if (page.chunks.length === 0 && !page.isClosed) {
    await nextChange(call, source, page.next);
    page = await readPage(read, after);
  }
  const headers = { ...headersOf(read, page), "stream-cursor": nextCursor(read), "cache-control": "no-store" };
  if (page.chunks.length === 0) return new Response(null, { status: 204, headers });
  return new Response(bodyOf(read, page.chunks), { headers });
}

/** Resolves when the stream has a frame behind the offset, its run has ended, or the time of the poll is over. */
async function nextChange(call: Call<any>, source: StreamSource, after: number): Promise<void> {
  const { host, signal, waitMs } = call;
  const over = new AbortController();
  const cancel = host.timers.set(waitMs > 0 ? waitMs : POLL_MS, () => over.abort(), { ref: false });
  const left = AbortSignal.any([signal, over.signal]);
  try {
    await nextPage(call, source, after, left);
  } finally {
    cancel();
    over.abort();
  }
}

async function nextPage({ host }: Call<any>, source: StreamSource, after: number, left: AbortSignal): Promise<void> {
  const pages = followStream(host.store, streamTailsOf(host), source, after, left);
  await pages.next();
  await pages.return(undefined);
}

async function follow(read: DurableRead, offset: string): Promise<Response> {
  const { call, source, format } = read;
  const { host, signal } = call;
  const after = await startOf(read, offset);
  const stream = new EventStream({
    timers: host.timers,
    signal,
    headers: {
      ...EVENT_STREAM_HEADERS,
      "cache-control": "no-cache, no-store",
      ...(format === "bytes" && { "stream-sse-data-encoding": "base64" }),
    },
  });
  void sendPages(read, stream, after).then(
    () => stream.close(),
    () => stream.close(),
  );
  return stream.response;

  async function sendPages({ cursor }: DurableRead, to: EventStream, from: number): Promise<void> {
    let [at, sent] = [from, cursor];
    for (;;) {
      const page = await readPage(read, at);
      const control = {
        streamNextOffset: offsetText(page.next),
        ...(!page.isClosed && { streamCursor: (sent = nextCursor({ ...read, cursor: sent })) }),
        ...(page.isUpToDate && { upToDate: true }),
        ...(page.isClosed && { streamClosed: true }),
      };
      // Together: a page and its offset arrive both or not at all (event-stream.E2).
      const events = utf8.encode(`${dataEvent(read, page.chunks)}event: control\ndata:${JSON.stringify(control)}\n\n`);
      await to.room(events);
      if (!to.send(events) || page.isClosed) return;
      at = page.next;
      // Without a time limit: the reader waits as long as the run lives.
      if (page.isUpToDate) await nextPage(call, source, at, to.closed);
      if (to.closed.aborted) return;
    }
  }
}

function dataEvent({ format, call }: DurableRead, chunks: readonly Chunk[]): string {
  const values = valuesOf(chunks);
  if (values.length === 0) return "";
  if (format === "json")
    return `event: data\ndata:${JSON.stringify(values.map((one) => payloadToWire(one, call.payloads)))}\n\n`;
  if (format === "bytes") {
    const bytes = Buffer.concat(values.map(bytesOf));
    return bytes.length === 0 ? "" : `event: data\ndata:${bytes.toString("base64")}\n\n`;
  }
  // A reader takes every kind of line end for one, so each line gets its own field: nothing in a value can become another event. The
  // form without a space keeps a space at the start of a line.
  const lines = values
    .map(textOf)
    .join("")
    .split(/\r\n|\r|\n/);
  return `event: data\n${lines.map((line) => `data:${line}\n`).join("")}\n`;
}

function bodyOf({ format, call }: DurableRead, chunks: readonly Chunk[]): string | Uint8Array<ArrayBuffer> {
  const values = valuesOf(chunks);
  if (format === "json") return JSON.stringify(values.map((value) => payloadToWire(value, call.payloads)));
  return new Uint8Array(Buffer.concat(values.map(bytesOf)));
}

/** durable-read.D3 */
function valuesOf(chunks: readonly Chunk[]): readonly unknown[] {
  return chunks.flatMap(({ data, reset }) => (reset === true ? [] : [decode(data)]));
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : JSON.stringify(payloadToWire(value, "plain"));
}

function bytesOf(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : utf8.encode(textOf(value));
}
