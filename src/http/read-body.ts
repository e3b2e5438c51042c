// Read body: the bytes of an upload, bounded in size, memory and time.
//
// read-body.B1. A body longer than its limit is refused before it is read if its length is announced, and at the limit otherwise.
// read-body.B2. A compressed body is refused: nothing is ever inflated, so a small upload cannot become a large one.
// read-body.B3. A body that pauses longer than `idleMs`, or that is slower on average than `slowBytesPerSecond`, is refused. Time that the
//   server itself waits, for memory or for the rate of the caller, does not count.

import { RepriseError, type Clock, type Timers } from "../base/index.ts";
import type { CallerGate } from "./caller-gate.ts";
import { limitExceeded, type HttpLimits } from "./limits.ts";

export interface BodyOptions {
  readonly caller: string;
  readonly gate: CallerGate;
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** The limit that a body is measured by. */
export interface BodyLimit {
  readonly name: string;
  readonly bytes: number;
}

/** Reads the whole body, and passes it to `use` while its memory is reserved (caller-gate.G2). */
export async function withBody<T>(
  request: Request,
  limit: BodyLimit,
  options: BodyOptions,
  use: (bytes: Uint8Array) => T | Promise<T>,
): Promise<T> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity")
    throw new RepriseError("BAD_FORMAT", `The body has the encoding ${encoding.slice(0, 50)}. Send it as it is.`, {
      details: { status: 415 },
    });
  const announced = announcedLength(request);
  if (announced !== undefined && announced > limit.bytes) throw tooLong(limit);
  const release = await options.gate.reserve(options.caller, announced ?? limit.bytes, options.limits);
  try {
    return await use(await readAll(request, limit, options));
  } finally {
    release();
  }
}

function announcedLength(request: Request): number | undefined {
  const length = request.headers.get("content-length");
  return length === null || !/^\d{1,15}$/.test(length) ? undefined : Number(length);
}

async function readAll(request: Request, limit: BodyLimit, options: BodyOptions): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  const { clock, limits } = options;
  let [size, spentMs] = [0, 0];
  try {
    for (;;) {
      const startedAt = clock.monotonic();
      const { done, value } = await nextChunk(reader, options);
      if (done) return Buffer.concat(chunks, size);
      spentMs += clock.monotonic() - startedAt;
      size += value.byteLength;
      if (size > limit.bytes) throw tooLong(limit);
      if (spentMs > limits.idleMs + (size * 1_000) / limits.slowBytesPerSecond)
        throw limitExceeded(
          "slowBytesPerSecond",
          408,
          `${size} bytes of the body arrived in ${Math.round(spentMs)} ms.`,
        );
      chunks.push(value);
      const waitMs = options.gate.pace(options.caller, value.byteLength, limits);
      if (waitMs > 0) await new Promise<void>((resume) => options.timers.set(waitMs, resume));
    }
  } catch (error) {
    // Without waiting: the connection of a hostile client may never confirm.
    void reader.cancel().catch(() => undefined);
    throw error;
  }
}

/** read-body.B3 */
async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { timers, limits }: BodyOptions,
): ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]> {
  let cancel: (() => void) | undefined;
  const idle = new Promise<never>((_resolve, reject) => {
    cancel = timers.set(limits.idleMs, () =>
      reject(limitExceeded("idleMs", 408, `The body paused for ${limits.idleMs} ms.`)),
    );
  });
  try {
    return await Promise.race([reader.read(), idle]);
  } finally {
    cancel?.();
  }
}

function tooLong({ name, bytes }: BodyLimit): RepriseError {
  return limitExceeded(name, 413, `The body is longer than ${bytes} bytes.`);
}
