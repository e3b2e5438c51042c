// Event response: the answers of a streaming request as server-sent events.
//
// event-response.E1. An error before the first event is an answer, not a stream. A client that is gone ends the work: its reads stop.

import { formatSSEErrorEvent, formatSSEEvent, SSE_HEADERS } from "@a2a-js/sdk";
import { JsonRpcTransportHandler } from "@a2a-js/sdk/server";
import { jsonResponse } from "../http/index.ts";

/** event-response.E1 */
export async function eventResponse(
  events: AsyncGenerator<unknown, void, undefined>,
  id: string | number | null,
  signal: AbortSignal,
): Promise<Response> {
  const failure = (error: unknown): object => ({
    jsonrpc: "2.0",
    id,
    error: JsonRpcTransportHandler.mapToJSONRPCError(error),
  });
  let first: IteratorResult<unknown, void>;
  try {
    first = await events.next();
  } catch (error) {
    return jsonResponse(failure(error), { headers: { "cache-control": "no-store" } });
  }
  const bytes = new TextEncoder();
  let next: IteratorResult<unknown, void> | undefined = first;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const event = next ?? (await events.next());
          next = undefined;
          if (event.done === true || signal.aborted) return controller.close();
          controller.enqueue(bytes.encode(formatSSEEvent(event.value)));
        } catch (error) {
          controller.enqueue(bytes.encode(formatSSEErrorEvent(failure(error))));
          controller.close();
        }
      },
      async cancel() {
        await events.return();
      },
    },
    { highWaterMark: 0 },
  );
  const { Connection: _connection, ...headers } = SSE_HEADERS;
  return new Response(body, { headers });
}
