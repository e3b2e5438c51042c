// NATS object: reads the chunks of an object by requests. The library reads them with a consumer that waits forever for chunks that a
// writer has just removed, and that takes longer to create than most of our files to read.

import type { ObjectInfo } from "@nats-io/obj";
import type { NatsLink } from "./nats-connection.ts";

/** The bytes, as long as `info` says; undefined if a chunk is not there. */
export async function readObject({ bucket, manager }: NatsLink, info: ObjectInfo): Promise<Uint8Array | undefined> {
  const bytes = new Uint8Array(info.size);
  const stream = `OBJ_${bucket}`;
  const subject = `$O.${bucket}.C.${info.nuid}`;
  let filled = 0;
  for (let seq = 1; filled < bytes.length;) {
    // A file of one chunk is most often the last message but one, so the server need not search for it.
    const query = info.chunks === 1 ? { last_by_subj: subject } : { next_by_subj: subject, seq };
    const message = await manager.streams.getMessage(stream, query as { last_by_subj: string });
    if (message === null || message.data.length === 0 || filled + message.data.length > bytes.length) return undefined;
    bytes.set(message.data, filled);
    filled += message.data.length;
    seq = message.seq + 1;
  }
  return bytes;
}
