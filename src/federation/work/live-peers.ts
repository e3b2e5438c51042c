// LivePeers: which peers ask for work now, for which tasks, and how much more each of them takes.
//
// live-peers.V1. A peer is live while a poll of it waits, and for `liveMs` after each of its requests.

import type { Clock, Timers } from "../../base/index.ts";

interface LivePeer {
  tasks: ReadonlySet<string>;
  free: number;
  /** Monotonic time. */
  seenAt: number;
  polls: number;
}

export class LivePeers {
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #liveMs: number;
  readonly #peers = new Map<string, LivePeer>();
  /** The polls that wait. */
  readonly #wakes = new Map<() => void, string>();
  #isClosed = false;

  constructor(clock: Clock, timers: Timers, liveMs: number) {
    this.#clock = clock;
    this.#timers = timers;
    this.#liveMs = liveMs;
  }

  names(): readonly string[] {
    return [...this.#peers.keys()].filter((name) => this.#isLive(name));
  }

  /** Whether the peer is live and has room; with `task`, whether it has the task. */
  canTake(name: string, task?: string): boolean {
    const peer = this.#peers.get(name);
    return peer !== undefined && peer.free > 0 && this.#isLive(name) && (task === undefined || peer.tasks.has(task));
  }

  #isLive(name: string): boolean {
    const peer = this.#peers.get(name);
    return peer !== undefined && (peer.polls > 0 || this.#clock.monotonic() - peer.seenAt < this.#liveMs);
  }

  seen(name: string, free: number, tasks?: readonly string[]): LivePeer {
    const seenAt = this.#clock.monotonic();
    const known = this.#peers.get(name);
    if (known === undefined) {
      const peer: LivePeer = { tasks: new Set(tasks), free, seenAt, polls: 0 };
      this.#peers.set(name, peer);
      return peer;
    }
    known.free = free;
    known.seenAt = seenAt;
    if (tasks !== undefined) known.tasks = new Set(tasks);
    return known;
  }

  took(name: string): void {
    const peer = this.#peers.get(name);
    if (peer !== undefined) peer.free -= 1;
  }
  freed(name: string): void {
    const peer = this.#peers.get(name);
    if (peer !== undefined) peer.free += 1;
  }

  /** There may be an answer for this peer, or for every peer. */
  wake(name?: string): void {
    for (const [wake, peer] of [...this.#wakes]) if (name === undefined || name === peer) wake();
  }

  /** Calls `answer` until it returns one; the last time when the poll ends. */
  async whilePolling<T>(
    name: string,
    tasks: readonly string[],
    free: number,
    signal: AbortSignal,
    waitMs: number,
    answer: (isLast: boolean) => T | undefined,
  ): Promise<T> {
    const peer = this.seen(name, free, tasks);
    const endsAt = this.#clock.monotonic() + waitMs;
    peer.polls += 1;
    try {
      for (;;) {
        const leftMs = endsAt - this.#clock.monotonic();
        const isLast = leftMs <= 0 || signal.aborted || this.#isClosed;
        // The peer does not read the answer of an aborted poll, so it must not hold an offer.
        if (signal.aborted) peer.free = 0;
        const given = answer(isLast);
        if (given !== undefined) return given;
        await this.#sleep(name, signal, leftMs);
      }
    } finally {
      peer.polls -= 1;
      peer.seenAt = this.#clock.monotonic();
    }
  }

  #sleep(name: string, signal: AbortSignal, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#wakes.delete(wake);
        cancel();
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const cancel = this.#timers.set(ms, wake, { ref: false });
      this.#wakes.set(wake, name);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  close(): void {
    this.#isClosed = true;
    this.wake();
  }
}
