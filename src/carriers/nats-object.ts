// NATS object: reads and writes the objects of an object store by the protocol of NATS (ADR-20): chunks on a subject of their own, then a
// description on the subject of the name. Not with the library: it reads with a consumer that waits forever for chunks that a writer has
// just removed, and when the acknowledgement of a description is lost, it removes the chunks of an object that was stored.
//
// nats-object.O1. Chunks are written before the description, and removed only if the server has refused the description, or has
//   acknowledged a later one. After a failure without an answer they stay: the object may exist.

import { createHash } from "node:crypto";
import type { ObjectInfo } from "@nats-io/obj";
import type { NatsLink } from "./nats-connection.ts";
import { isStale } from "./nats-errors.ts";

const CHUNK_BYTES = 128 * 1024;

/** The bytes, as long as `info` says; undefined if a chunk is not there. */
export async function readObject({ bucket, manager }: NatsLink, info: ObjectInfo): Promise<Uint8Array | undefined> {
  const bytes = new Uint8Array(info.size);
  const subject = chunksOf(bucket, info.nuid);
  let filled = 0;
  for (let seq = 1; filled < bytes.length;) {
    // The server finds the last message of a subject faster than the next one.
    const query = info.chunks === 1 ? { last_by_subj: subject } : { next_by_subj: subject, seq };
    const message = await manager.streams.getMessage(`OBJ_${bucket}`, query as { last_by_subj: string });
    if (message === null || message.data.length === 0 || filled + message.data.length > bytes.length) return undefined;
    bytes.set(message.data, filled);
    filled += message.data.length;
    seq = message.seq + 1;
  }
  return bytes;
}

/** Whether the chunks of an object are there: they are removed all at once. */
export async function hasChunks({ bucket, manager }: NatsLink, { nuid, size }: ObjectInfo): Promise<boolean> {
  if (size === 0) return true;
  return (await manager.streams.getMessage(`OBJ_${bucket}`, { last_by_subj: chunksOf(bucket, nuid) })) !== null;
}

export interface NewObject {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** A name of its chunks that no other object has. */
  readonly nuid: string;
  /** What it replaces: also the description of a removed object. */
  readonly old: ObjectInfo | undefined;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Writes an object if the last description of its name is `old`. Returns the sequence of the new one, or "refused". */
export async function putObject(
  link: NatsLink,
  { name, bytes, nuid, old, at }: NewObject,
): Promise<number | "refused"> {
  const { bucket, client, connection } = link;
  const chunkBytes = Math.min(CHUNK_BYTES, connection.info?.max_payload ?? CHUNK_BYTES);
  const subject = chunksOf(bucket, nuid);
  let chunks = 0;
  for (let from = 0; from < bytes.length; from += chunkBytes) {
    await client.publish(subject, bytes.subarray(from, from + chunkBytes));
    chunks += 1;
  }
  const info = {
    name,
    description: "",
    options: { max_chunk_size: chunkBytes },
    bucket,
    nuid,
    size: bytes.length,
    chunks,
    mtime: new Date(at).toISOString(),
    digest: `SHA-256=${padded(createHash("sha256").update(bytes).digest())}`,
    deleted: false,
  };
  const headers = link.headers();
  headers.set("Nats-Rollup", "sub");
  headers.set("Nats-Expected-Last-Subject-Sequence", String(old?.revision ?? 0));
  try {
    const { seq } = await client.publish(`$O.${bucket}.M.${padded(Buffer.from(name))}`, JSON.stringify(info), {
      headers,
    });
    if (old !== undefined) await removeChunks(link, old.nuid);
    return seq;
  } catch (error) {
    // nats-object.O1
    if (!isStale(error)) throw error;
    await removeChunks(link, nuid);
    return "refused";
  }
}

/** Chunks that stay cost space, and do no harm. */
async function removeChunks({ bucket, manager }: NatsLink, nuid: string): Promise<void> {
  await manager.streams.purge(`OBJ_${bucket}`, { filter: chunksOf(bucket, nuid) }).catch(() => undefined);
}

function chunksOf(bucket: string, nuid: string): string {
  return `$O.${bucket}.C.${nuid}`;
}

/** Base64 for URLs, with its padding, as the protocol wants it. */
function padded(bytes: Buffer): string {
  return bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}
