// GET /v1/runs/{id}/streams/{name}: a stream as server-sent events, or by the read side of Durable Streams.

import { RepriseError } from "../../base/index.ts";
import type { streamOperations } from "../../contract/index.ts";
import type { Call, HandlersOf } from "../host.ts";
import { readDurable, type DurableQuery } from "../live/durable-read.ts";
import { eventBytes, EventStream } from "../live/event-stream.ts";
import { getLiveReads, streamTailsOf } from "../live/hub-of.ts";
import { followStream, frameBytes, type StreamSource } from "../live/stream-tail.ts";

export const streamHandlers: HandlersOf<typeof streamOperations> = {
  async readStream(call) {
    const { id = "", name = "" } = call.params;
    const { run } = await getLiveReads(call.host).findStream(id, name);
    const source = { id, name, run };
    return isEventRequest(call) ? sendEvents(call, source) : readDurable(call, source);
  },
};

/** Parameters of Durable Streams decide first: their clients accept anything. */
function isEventRequest({ request, query }: Call<any>): boolean {
  const { offset, live, cursor, as } = query as DurableQuery;
  if (request.method === "HEAD" || [offset, live, cursor, as].some((one) => one !== undefined)) return false;
  return /\btext\/event-stream\b/i.test(request.headers.get("accept") ?? "");
}

function sendEvents(call: Call<any>, source: StreamSource): Response {
  const stream = new EventStream({ timers: call.host.timers, signal: call.signal });
  const { logger } = call.host;
  send(call, source, offsetOf(call), stream).then(
    () => {
      if (stream.wasBehind) logger.info("A reader of a stream did not keep up and was closed.", { ...source });
      stream.close();
    },
    (error: unknown) => {
      if (!stream.closed.aborted) logger.error(`stream ${source.name} of run ${source.id}: ${String(error)}`);
      // An error closes the answer without `end`: the reader comes back by its offset.
      stream.close();
    },
  );
  return stream.response;
}

async function send(call: Call<any>, source: StreamSource, from: number, stream: EventStream): Promise<void> {
  const { host, payloads } = call;
  const pages = followStream(host.store, streamTailsOf(host), source, from, stream.closed);
  for (;;) {
    const { done, value } = await pages.next();
    if (done === true) {
      if (value !== undefined) stream.send(eventBytes("end", JSON.stringify({ status: value })));
      return;
    }
    for (const chunk of value.chunks) {
      // What is old waits for the reader; with what is new the reader must keep up.
      const frame = frameBytes(chunk, payloads);
      if (!value.isNew) await stream.room(frame);
      if (await stream.deliver(frame)) continue;
      await pages.return(undefined);
      return;
    }
  }
}

/** The header that browsers send when they reconnect is newer than the address. */
function offsetOf({ request, query }: Call<any>): number {
  const header = request.headers.get("last-event-id");
  if (header === null || header === "") return (query as { readonly after?: number }).after ?? 0;
  if (/^\d{1,15}$/.test(header)) return Number(header);
  throw new RepriseError("BAD_OPTIONS", "Last-Event-ID: expected the id of an event of this stream, its offset.", {
    details: { status: 400 },
  });
}
