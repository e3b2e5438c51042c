// Abort: how a caller's AbortSignal ends a wait.
//
// abort.A1. A wait that is aborted rejects at once with the signal's reason.
// abort.A2. After a wait has ended, for whatever reason, the signal has no listener of it.

import { inspect } from "node:util";
import { checkOptionNames, RepriseError } from "../base/index.ts";

/** Options of a call that waits for the store. */
export interface WaitOptions {
  /** Ends the wait and rejects with the signal's reason. What was sent to the store may still happen. */
  signal?: AbortSignal;
}

/** Refuses anything that is not an AbortSignal. */
export function checkSignal(signal: unknown, what: string): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected an AbortSignal as signal, got ${inspect(signal, { depth: 0 })}. Pass controller.signal or AbortSignal.timeout(ms).`,
  );
}

/** Calls `abort` when the signal aborts; returns a function that removes the listener. */
export function onAbort(signal: AbortSignal | undefined, abort: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const listener = (): void => abort(signal.reason);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** Settles as `work` does, or rejects when the signal aborts first. `work` itself has to notice the signal and stop. */
export function unlessAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const release = onAbort(signal, reject);
    if (signal.aborted) reject(signal.reason as Error);
    work.then(resolve, reject).finally(release);
  });
}

/** Starts no work if the signal is aborted; ends the wait for it when the signal aborts. */
export function abortable<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  return signal === undefined ? work() : abortableBy(signal, work);
}

async function abortableBy<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  return unlessAborted(signal, work());
}

/** `abortable` for a call that has no other options. */
export async function waitFor<T>(
  options: WaitOptions | undefined = {},
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  return abortable(waitSignal(options, what), work);
}

/** The signal of a call that has no other options. */
export function waitSignal(options: WaitOptions | undefined = {}, what: string): AbortSignal | undefined {
  checkOptionNames(options, ["signal"], what);
  return checkSignal(options.signal, what);
}

/** Opens something that has to be closed. What opens after the signal has aborted is closed at once. */
export async function openUnlessAborted<T extends { close(): Promise<void> }>(
  signal: AbortSignal | undefined,
  open: () => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const opening = open();
  try {
    return await unlessAborted(signal, opening);
  } catch (error) {
    if (signal?.aborted === true)
      opening.then(
        (late) => late.close().catch(() => {}),
        () => {},
      );
    throw error;
  }
}

/**
 * An async generator that a caller can leave at any time. `read` gets a signal that aborts when the caller leaves or
 * aborts; it releases what it holds then, also while a `next()` is pending or between two of them.
 */
export class AbortableGenerator<T> implements AsyncGenerator<T, void, undefined> {
  readonly #signal: AbortSignal | undefined;
  readonly #left = new AbortController();
  readonly #source: AsyncGenerator<T, void, undefined>;
  /** abort.A2. Set from the first `next()` on. */
  #release: (() => void) | undefined;
  /** It ended, was left or threw: an abort has no effect any more. */
  #isOver = false;

  constructor(signal: AbortSignal | undefined, read: (left: AbortSignal) => AsyncGenerator<T, void, undefined>) {
    this.#signal = signal;
    this.#source = read(this.#left.signal);
  }

  next(): Promise<IteratorResult<T, void>> {
    return this.#signal === undefined ? this.#source.next() : this.#nextUnlessAborted(this.#signal);
  }

  async #nextUnlessAborted(signal: AbortSignal): Promise<IteratorResult<T, void>> {
    if (signal.aborted && !this.#isOver) {
      await this.return();
      throw signal.reason;
    }
    this.#release ??= onAbort(signal, () => this.#left.abort());
    try {
      const result = await (this.#isOver ? this.#source.next() : unlessAborted(signal, this.#source.next()));
      if (result.done === true) this.#end();
      return result;
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#release?.();
  }

  return(): Promise<IteratorResult<T, void>> {
    this.#end();
    this.#left.abort();
    return this.#source.return();
  }

  throw(error: unknown): Promise<IteratorResult<T, void>> {
    this.#end();
    this.#left.abort();
    return this.#source.throw(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
