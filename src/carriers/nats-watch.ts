// NATS watch: notices that a key changed. It only makes readers faster: they poll as well.

import type { KV, KvWatchEntry } from "@nats-io/kv";

export class KeyWatch implements Disposable {
  readonly #stop: () => void;
  #next = Promise.withResolvers<void>();

  /** Undefined if the server cannot watch now. */
  static async start(keys: KV, key: string, signal?: AbortSignal): Promise<KeyWatch | undefined> {
    const { KvWatchInclude } = await import("@nats-io/kv");
    try {
      const entries = await keys.watch({ key, include: KvWatchInclude.UpdatesOnly, headers_only: true });
      if (!signal?.aborted) return new KeyWatch(entries);
      entries.stop();
    } catch {
      // Readers poll.
    }
    return undefined;
  }

  private constructor(entries: AsyncIterable<KvWatchEntry> & { stop(error?: Error): void }) {
    this.#stop = () => entries.stop();
    void this.#follow(entries).catch(() => undefined);
  }

  /** Resolves with the next change after the last `begin`. */
  get changed(): Promise<void> {
    return this.#next.promise;
  }

  /** Call before each read: a change from now on resolves `changed`. */
  begin(): void {
    this.#next = Promise.withResolvers<void>();
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  async #follow(entries: AsyncIterable<KvWatchEntry>): Promise<void> {
    for await (const _entry of entries) this.#next.resolve();
  }
}
