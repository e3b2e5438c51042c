// Caller gate: how much one caller does at the same time, and how fast.
//
// caller-gate.G1. Each caller has counts and a budget of its own: a caller that uses up its share slows down only itself.
// caller-gate.G2. Memory for a body is reserved as a whole before its first byte is read, in the order of the requests. So two bodies
//   never wait for each other's half.

import { Fifo, type Clock } from "../base/index.ts";
import { limitExceeded, type HttpLimits } from "./limits.ts";

interface Share {
  requests: number;
  waits: number;
  buffered: number;
  readonly queue: Fifo<{ readonly bytes: number; readonly start: () => void }>;
  /** Bytes that may be read now; below 0: the debt. */
  credit: number;
  creditAt: number;
  /** Requests that may start now. */
  tokens: number;
  tokensAt: number;
}

/** Callers that are remembered while they do nothing. */
const IDLE_SHARES = 1_000;

export class CallerGate {
  readonly #shares = new Map<string, Share>();
  readonly #clock: Clock;
  #waits = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a request, or one that waits, until the returned function is called. */
  enter(caller: string, kind: "requests" | "waits", limits: HttpLimits): () => void {
    const share = this.#shareOf(caller, limits);
    if (share[kind] >= limits[kind])
      throw limitExceeded(
        kind,
        429,
        `${share[kind]} ${kind === "waits" ? "long polls or streams" : "requests"} of this caller are open.`,
      );
    if (kind === "waits" && this.#waits >= (limits.waitsInAll ?? Infinity))
      throw limitExceeded("waitsInAll", 503, `${this.#waits} requests that wait or stream are open.`);
    this.#countRate(share, limits);
    share[kind] += 1;
    if (kind === "waits") this.#waits += 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      share[kind] -= 1;
      if (kind === "waits") this.#waits -= 1;
      this.#forgetIdle(caller, share);
    };
  }

  #countRate(share: Share, { requestsPerSecond }: HttpLimits): void {
    if (requestsPerSecond === undefined) return;
    const now = this.#clock.monotonic();
    share.tokens = Math.min(requestsPerSecond, share.tokens + ((now - share.tokensAt) * requestsPerSecond) / 1_000);
    share.tokensAt = now;
    if (share.tokens < 1)
      throw limitExceeded("requestsPerSecond", 429, `This caller made ${requestsPerSecond} requests in a second.`);
    share.tokens -= 1;
  }

  #forgetIdle(caller: string, share: Share): void {
    if (this.#shares.size <= IDLE_SHARES) return;
    if (share.requests + share.waits + share.buffered + share.queue.length === 0) this.#shares.delete(caller);
  }

  /** caller-gate.G2. Resolves when the bytes fit; the returned function gives them back. */
  async reserve(caller: string, bytes: number, limits: HttpLimits): Promise<() => void> {
    const share = this.#shareOf(caller, limits);
    const fits = (): boolean => share.buffered === 0 || share.buffered + bytes <= limits.bufferedBytes;
    if (share.queue.length > 0 || !fits()) await new Promise<void>((start) => share.queue.push({ bytes, start }));
    else share.buffered += bytes;
    return () => {
      share.buffered -= bytes;
      this.#startNext(share, limits);
    };
  }

  #startNext(share: Share, limits: HttpLimits): void {
    for (let next = share.queue.first; next !== undefined; next = share.queue.first) {
      if (share.buffered > 0 && share.buffered + next.bytes > limits.bufferedBytes) return;
      share.queue.shift();
      share.buffered += next.bytes;
      next.start();
    }
  }

  /** Counts bytes that were read, and returns how long to wait before more are read. */
  pace(caller: string, bytes: number, limits: HttpLimits): number {
    const share = this.#shareOf(caller, limits);
    const { bytesPerSecond } = limits;
    const now = this.#clock.monotonic();
    share.credit = Math.min(bytesPerSecond, share.credit + ((now - share.creditAt) * bytesPerSecond) / 1_000) - bytes;
    share.creditAt = now;
    return share.credit >= 0 ? 0 : Math.ceil((-share.credit * 1_000) / bytesPerSecond);
  }

  #shareOf(caller: string, limits: HttpLimits): Share {
    let share = this.#shares.get(caller);
    if (share === undefined) {
      const now = this.#clock.monotonic();
      const counts = { requests: 0, waits: 0, buffered: 0, queue: new Fifo<{ bytes: number; start: () => void }>() };
      const credit = { credit: limits.bytesPerSecond, creditAt: now };
      share = { ...counts, ...credit, tokens: limits.requestsPerSecond ?? 0, tokensAt: now };
      this.#shares.set(caller, share);
    }
    return share;
  }
}
