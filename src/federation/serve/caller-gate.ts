// Caller gate: how much one peer does at the same time, and how fast.
//
// caller-gate.G1. Each caller has counts and a budget of its own: a peer that uses up its share slows down only itself.
// caller-gate.G2. Memory for a body is reserved as a whole before its first byte is read, in the order of the requests. So two bodies
//   never wait for each other's half.

import { Fifo, type Clock } from "../../base/index.ts";
import { limitExceeded, type ServeLimits } from "./serve-limits.ts";

interface Share {
  requests: number;
  waits: number;
  buffered: number;
  readonly queue: Fifo<{ readonly bytes: number; readonly start: () => void }>;
  /** Bytes that may be read now; below 0: the debt. */
  credit: number;
  creditAt: number;
}

export class CallerGate {
  readonly #shares = new Map<string, Share>();
  readonly #limits: ServeLimits;
  readonly #clock: Clock;

  constructor(limits: ServeLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Counts a request or a long poll until the returned function is called. */
  enter(caller: string, kind: "requests" | "waits"): () => void {
    const share = this.#shareOf(caller);
    if (share[kind] >= this.#limits[kind])
      throw limitExceeded(
        kind,
        429,
        `${share[kind]} ${kind === "waits" ? "long polls" : "requests"} of this peer are open.`,
      );
    share[kind] += 1;
    return () => void (share[kind] -= 1);
  }

  /** caller-gate.G2. Resolves when the bytes fit; the returned function gives them back. */
  async reserve(caller: string, bytes: number): Promise<() => void> {
    const share = this.#shareOf(caller);
    const fits = (): boolean => share.buffered === 0 || share.buffered + bytes <= this.#limits.bufferedBytes;
    if (share.queue.length > 0 || !fits()) await new Promise<void>((start) => share.queue.push({ bytes, start }));
    else share.buffered += bytes;
    return () => {
      share.buffered -= bytes;
      this.#startNext(share);
    };
  }

  #startNext(share: Share): void {
    for (let next = share.queue.first; next !== undefined; next = share.queue.first) {
      if (share.buffered > 0 && share.buffered + next.bytes > this.#limits.bufferedBytes) return;
      share.queue.shift();
      share.buffered += next.bytes;
      next.start();
    }
  }

  /** Counts bytes that were read, and returns how long to wait before more are read. */
  pace(caller: string, bytes: number): number {
    const share = this.#shareOf(caller);
    const { bytesPerSecond } = this.#limits;
    const now = this.#clock.monotonic();
    share.credit = Math.min(bytesPerSecond, share.credit + ((now - share.creditAt) * bytesPerSecond) / 1_000) - bytes;
    share.creditAt = now;
    return share.credit >= 0 ? 0 : Math.ceil((-share.credit * 1_000) / bytesPerSecond);
  }

  #shareOf(caller: string): Share {
    let share = this.#shares.get(caller);
    if (share === undefined) {
      const credit = this.#limits.bytesPerSecond;
      share = { requests: 0, waits: 0, buffered: 0, queue: new Fifo(), credit, creditAt: this.#clock.monotonic() };
      this.#shares.set(caller, share);
    }
    return share;
  }
}
