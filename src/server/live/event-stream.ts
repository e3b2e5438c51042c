// EventStream: one answer of server-sent events, and what its reader has not taken yet.
//
// event-stream.E1. Bytes wait here until the socket takes them: the listener pulls them one chunk after another and waits for the
//   socket to drain. A reader with more than `maxBehind` bytes waiting when another event comes is closed, if it does not take them
//   within a second. It comes back with the id of the last event that it read.
// event-stream.E2. An event is sent whole or not at all. One that is larger than `maxBehind` is sent if nothing waits.
// event-stream.E3. A comment is sent after every 15 seconds without an event, so that proxies keep the connection and a dead reader is
//   noticed. A reader that takes nothing for a minute is closed.

import type { Timers } from "../../base/index.ts";

export interface EventStreamOptions {
  readonly timers: Timers;
  /** Aborts when the reader disconnects or the server closes. */
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxBehind?: number;
  readonly commentMs?: number;
}

export const MAX_BEHIND_BYTES = 1_048_576;
const COMMENT_MS = 15_000;
const STALLED_COMMENTS = 4;
/** For a burst that is larger than `maxBehind`: a reader that keeps up takes it within milliseconds. */
const GRACE_MS = 1_000;
/** Below this, a reader that catches up is given more. */
const ROOM_BYTES = 65_536;
const utf8 = new TextEncoder();
const COMMENT = utf8.encode(":\n\n");

export const EVENT_STREAM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  // Proxies of the nginx family buffer answers otherwise.
  "x-accel-buffering": "no",
};

/** The text of one event. `data` is one line of JSON. */
export function eventText(event: string | undefined, data: string, id?: string): string {
  const name = event === undefined ? "" : `event: ${event}\n`;
  return `${id === undefined ? "" : `id: ${id}\n`}${name}data: ${data}\n\n`;
}

export function eventBytes(event: string | undefined, data: string, id?: string): Uint8Array {
  return utf8.encode(eventText(event, data, id));
}

export class EventStream {
  readonly response: Response;
  readonly #options: EventStreamOptions;
  readonly #maxBehind: number;
  readonly #closed = new AbortController();
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #waiting = Promise.withResolvers<void>();
  #cancelComment: () => void = () => undefined;
  #stalls = 0;
  #wasBehind = false;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#maxBehind = options.maxBehind ?? MAX_BEHIND_BYTES;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#onTaken(),
        cancel: () => this.close(),
      },
      { highWaterMark: this.#maxBehind, size: (chunk) => chunk!.byteLength },
    );
    this.response = new Response(body, { headers: { ...EVENT_STREAM_HEADERS, ...options.headers } });
    const { signal } = options;
    const onAbort = (): void => this.close();
    signal.addEventListener("abort", onAbort, { once: true });
    this.#closed.signal.addEventListener("abort", () => signal.removeEventListener("abort", onAbort), { once: true });
    this.#setComment();
    if (signal.aborted) this.close();
  }

  /** Aborts when the answer has ended, however it ended. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** The reader did not keep up, and was closed (event-stream.E1). */
  get wasBehind(): boolean {
    return this.#wasBehind;
  }

  /** The bytes that the socket has not taken. */
  get behind(): number {
    return this.closed.aborted ? 0 : this.#maxBehind - (this.#controller.desiredSize ?? this.#maxBehind);
  }

  /** False: the answer has ended, or ends because its reader is too far behind. */
  send(bytes: Uint8Array): boolean {
    if (this.closed.aborted) return false;
    if (!this.#hasRoomFor(bytes)) {
      this.#wasBehind = true;
      this.close();
      return false;
    }
    this.#controller.enqueue(bytes);
    this.#setComment();
    return true;
  }

  /** event-stream.E2 */
  #hasRoomFor({ byteLength }: Uint8Array): boolean {
    return this.behind === 0 || this.behind + byteLength <= this.#maxBehind;
  }

  /** As `send`, after waiting a moment for room if there is none. */
  async deliver(bytes: Uint8Array): Promise<boolean> {
    if (this.#hasRoomFor(bytes)) return this.send(bytes);
    let isOver = false;
    const cancel = this.#options.timers.set(GRACE_MS, () => {
      isOver = true;
      this.#wake();
    });
    while (!this.#hasRoomFor(bytes) && !this.closed.aborted && !isOver) await this.#waiting.promise;
    cancel();
    return this.send(bytes);
  }

  /** Resolves when the reader has taken most of what was sent, and `bytes` can follow; or when it is gone. */
  async room(bytes: Uint8Array): Promise<void> {
    while (this.behind > ROOM_BYTES || !this.#hasRoomFor(bytes)) await this.#waiting.promise;
  }

  #onTaken(): void {
    this.#stalls = 0;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = Promise.withResolvers();
    waiting.resolve();
  }

  /** event-stream.E3 */
  #setComment(): void {
    this.#cancelComment();
    const { timers, commentMs = COMMENT_MS } = this.#options;
    this.#cancelComment = timers.set(
      commentMs,
      () => {
        this.#stalls += 1;
        if (this.behind > 0 && this.#stalls >= STALLED_COMMENTS) this.#wasBehind = true;
        if (this.#wasBehind) this.close();
        else if (this.behind === 0) this.send(COMMENT);
        else this.#setComment();
      },
      { ref: false },
    );
  }

  close(): void {
    if (this.closed.aborted) return;
    // What was sent before is still delivered, except to a reader that does not take it.
    try {
      if (this.#wasBehind) this.#controller.error(new DOMException("The reader is too far behind.", "AbortError"));
      else this.#controller.close();
    } catch {
      // The reader has canceled it.
    }
    this.#closed.abort();
    this.#cancelComment();
    this.#waiting.resolve();
  }
}
