// Operations that read the streams of runs.

import { integer, object, oneOf, optional, text } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { payloads } from "./parameters.ts";

export const streamOperations = {
  readStream: operation({
    role: "reader",
    method: "GET",
    path: "/v1/runs/{id}/streams/{name}",
    group: "Streams",
    summary:
      "Reads a stream of a run. With `Accept: text/event-stream`: every frame as it comes, `id` is its offset; `event: reset` voids the values of a step that is repeated, `event: end` has the status of the ended run; `Last-Event-ID` or `after` continues behind an offset. Otherwise the read side of Durable Streams: `offset`, `live`, `cursor`.",
    query: object({
      after: optional(integer({ minimum: 0, description: "Continue behind this offset; as `Last-Event-ID`." })),
      offset: optional(text({ description: "Durable Streams: where to read from; `-1` the start, `now` the end." })),
      live: optional(oneOf(["long-poll", "sse"], "Durable Streams: wait for what is to come.")),
      cursor: optional(text({ maxLength: 20, description: "Durable Streams: `Stream-Cursor` of the answer before." })),
      as: optional(
        oneOf(
          ["json", "text", "bytes"],
          "Durable Streams: `json` (default), a list of values; `text` and `bytes`: the values one after another, without what separates them.",
        ),
      ),
      payloads,
    }),
    answer: "text/event-stream",
    negotiates: true,
    waits: true,
    example: { path: { id: "order-1042", name: "words" }, query: { after: 0 } },
  }),
};
