// GET /v1/events: the change feed of the server, filtered for one reader.

import type { eventOperations } from "../../contract/index.ts";
import type { Call, HandlersOf } from "../host.ts";
import { isVisible, isWanted } from "../live/change-event.ts";
import type { NumberedChange } from "../live/change-ring.ts";
import { eventBytes, EventStream, MAX_BEHIND_BYTES } from "../live/event-stream.ts";
import { changeHubOf } from "../live/hub-of.ts";

/** Where the reader wants to continue: browsers send the header when they reconnect, and keep the address. */
export function lastEventId({ request, query }: Call<any>): string | undefined {
  return request.headers.get("last-event-id") ?? (query as { after?: string } | undefined)?.after;
}

export const eventHandlers: HandlersOf<typeof eventOperations> = {
  async followEvents(call) {
    const { host, caller, query } = call;
    const { timers } = host;
    const after = lastEventId(call);
    const isMine = ({ change }: NumberedChange): boolean => isWanted(change, query) && isVisible(change, caller);
    const stream = new EventStream({ timers, signal: call.signal });
    let held: NumberedChange[] | undefined = [];
    const { lastId, missed, leave } = await changeHubOf(host).join(
      (change) => {
        if (!isMine(change)) return;
        if (held === undefined) stream.send(change.bytes);
        else held.push(change);
      },
      after,
      query.run,
    );
    if (stream.closed.aborted) leave();
    else stream.closed.addEventListener("abort", leave, { once: true });
    const found = missed?.filter(isMine);
    if (after !== undefined && (found === undefined || sizeOf(found) > MAX_BEHIND_BYTES))
      stream.send(
        eventBytes("reset", JSON.stringify({ reason: "The feed does not have the events behind this id." }), lastId),
      );
    else if (after === undefined) stream.send(eventBytes("ready", "{}", lastId));
    else for (const { bytes } of found ?? []) stream.send(bytes);
    for (const { bytes } of held) stream.send(bytes);
    held = undefined;
    return stream.response;
  },
};

/** More than a reader may have waiting is a reset as well: it would be closed, and come back for the same events. */
function sizeOf(changes: readonly NumberedChange[]): number {
  return changes.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
}
