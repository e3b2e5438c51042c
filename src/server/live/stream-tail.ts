// StreamTail: the end of one stream of one run, read once for all of its readers.
//
// stream-tail.T1. A reader catches up by pages of its own, at its own pace. At the end of the stream it follows the tail, which reads every
//   new chunk once, whatever the number of readers.
// stream-tail.T2. The tail holds a bounded number of the newest chunks. A reader that needs older ones reads them from the store.
// stream-tail.T3. A tail without a reader stops.

import { decode } from "../../base/index.ts";
import type { LiveReads } from "../../engine/index.ts";
import type { Chunk, RunNumber, RunStatus, Store } from "../../kernel/index.ts";
import { eventBytes } from "./event-stream.ts";
import { payloadToWire, type PayloadForm } from "../wire-payload.ts";

const PAGE = 64;
const FIRST_PAGE = 8;
const MAX_CHUNKS = 512;
const MAX_CHARS = 1_048_576;

/** One stream of one run. */
export interface StreamSource {
  readonly id: string;
  readonly name: string;
  /** Of the generation that the reader found. */
  readonly run: RunNumber;
}

export class StreamTail {
  readonly #chunks: Chunk[] = [];
  readonly #stopped = new AbortController();
  #chars = 0;
  #offset: number;
  #changed = Promise.withResolvers<void>();
  #status: RunStatus | undefined;
  #error: { readonly error: unknown } | undefined;

  constructor(live: LiveReads, store: Store, { id, name }: StreamSource, after: number) {
    this.#offset = after;
    void this.#follow(live, store, id, name);
  }

  async #follow(live: LiveReads, store: Store, id: string, name: string): Promise<void> {
    const { signal } = this.#stopped;
    try {
      for await (const page of live.readStream(id, name, { after: this.#offset, signal, pageSize: PAGE })) {
        for (const chunk of page) this.#add(chunk);
        this.#notify();
      }
      this.#status = (await store.findRun(id))?.status ?? "completed";
    } catch (error) {
      if (!signal.aborted) this.#error = { error };
    }
    this.#notify();
  }

  /** stream-tail.T2 */
  #add(chunk: Chunk): void {
    this.#chunks.push(chunk);
    this.#offset = chunk.offset;
    this.#chars += chunk.data.length;
    while (this.#chunks.length > MAX_CHUNKS || (this.#chars > MAX_CHARS && this.#chunks.length > 1))
      this.#chars -= this.#chunks.shift()!.data.length;
  }

  /** Lets every reader check again what it waits for. */
  wake(): void {
    this.#notify();
  }

  #notify(): void {
    const changed = this.#changed;
    this.#changed = Promise.withResolvers();
    changed.resolve();
  }

  /** The chunks behind an offset; undefined: not all of them are here. */
  after(offset: number): readonly Chunk[] | undefined {
    if (this.#error !== undefined) throw this.#error.error;
    if (offset >= this.#offset) return [];
    const first = this.#chunks[0]?.offset;
    if (first === undefined || offset < first - 1) return undefined;
    return this.#chunks.slice(offset - first + 1);
  }

  /** The status of the run once it has ended and every chunk was read. */
  get status(): RunStatus | undefined {
    return this.#status;
  }

  /** It can serve no further reader: its run has ended, or reading it failed. */
  get isOver(): boolean {
    return this.#status !== undefined || this.#error !== undefined;
  }

  /** Resolves with the next change. Call it before `after`. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  stop(): void {
    this.#stopped.abort();
    this.#notify();
  }
}

/** The tails of a server, by run and name. */
export class StreamTails {
  readonly #live: LiveReads;
  readonly #store: Store;
  readonly #tails = new Map<string, { readonly tail: StreamTail; readers: number }>();

  constructor(live: LiveReads, store: Store) {
    this.#live = live;
    this.#store = store;
  }

  /** The tail of a stream; its first reader has read up to `after`. */
  join(source: StreamSource, after: number): { readonly tail: StreamTail; readonly leave: () => void } {
    const key = JSON.stringify([source.id, source.name, source.run]);
    let shared = this.#tails.get(key);
    // An ended run may be retried: a reader that comes later begins with a tail of its own.
    if (shared === undefined || shared.tail.isOver)
      this.#tails.set(key, (shared = { tail: new StreamTail(this.#live, this.#store, source, after), readers: 0 }));
    const { tail } = shared;
    const mine = shared;
    mine.readers += 1;
    return {
      tail,
      leave: () => {
        mine.readers -= 1;
        if (mine.readers > 0) return;
        tail.stop();
        if (this.#tails.get(key) === mine) this.#tails.delete(key);
      },
    };
  }
}

/** A part of a stream. `isNew`: it came while the reader waited, so the reader must keep up with it. */
export interface StreamPage {
  readonly chunks: readonly Chunk[];
  readonly isNew: boolean;
}

/**
 * The pages of a stream from an offset on, for one reader; ends with the run, and returns its status. A reader that is slow to ask for
 * the next page does not fill memory: pages of large chunks are short.
 */
export async function* followStream(
  store: Store,
  tails: StreamTails,
  source: StreamSource,
  from: number,
  left: AbortSignal,
): AsyncGenerator<StreamPage, RunStatus | undefined, undefined> {
  let [after, limit] = [from, FIRST_PAGE];
  const readPage = async (): Promise<StreamPage> => {
    const chunks = await store.readStream(source.run, source.name, after, limit);
    after = chunks.at(-1)?.offset ?? after;
    const chars = chunks.reduce((sum, { data }) => sum + data.length, 0);
    limit = Math.min(PAGE, Math.max(1, Math.floor((MAX_CHARS * chunks.length) / (chars + 1))));
    return { chunks, isNew: false };
  };
  for (let page = await readPage(); page.chunks.length > 0 && !left.aborted; page = await readPage()) yield page;
  if (left.aborted) return undefined;
  const { tail, leave } = tails.join(source, after);
  // A race with a promise of `left` would hold memory for every change that the reader saw.
  const onLeft = (): void => tail.wake();
  left.addEventListener("abort", onLeft, { once: true });
  try {
    while (!left.aborted) {
      const { changed } = tail;
      const chunks = tail.after(after);
      if (chunks === undefined) {
        const page = await readPage();
        // The run was deleted: a reader that comes back learns so.
        if (page.chunks.length === 0) return undefined;
        yield page;
      } else if (chunks.length > 0) {
        after = chunks.at(-1)!.offset;
        yield { chunks, isNew: true };
      } else if (tail.status !== undefined) return tail.status;
      else await changed;
    }
    return undefined;
  } finally {
    left.removeEventListener("abort", onLeft);
    leave();
  }
}

const frames = new WeakMap<Chunk, Partial<Record<PayloadForm, Uint8Array>>>();

/** A chunk as an event; made once for all readers of a form. */
export function frameBytes(chunk: Chunk, form: PayloadForm): Uint8Array {
  let made = frames.get(chunk);
  if (made === undefined) frames.set(chunk, (made = {}));
  return (made[form] ??= frameOf(chunk, form));
}

function frameOf({ offset, data, step = "", execution = 1, reset }: Chunk, form: PayloadForm): Uint8Array {
  if (reset === true) return eventBytes("reset", JSON.stringify({ step, execution }), String(offset));
  // The tagged form is the stored text.
  const value = form === "tagged" ? data : JSON.stringify(payloadToWire(decode(data), form));
  const of = step === "" ? "" : `,"step":${JSON.stringify(step)},"execution":${execution}`;
  return eventBytes(undefined, `{"value":${value}${of}}`, String(offset));
}
