// NumberAllocator: reserves numbers of runs, checkpoints and values from the database in blocks.
//
// number-allocator.N1. A number is used once, even when the database goes back to an earlier state: numbers increase with time
//   (`leastNumberAt`). A number that was reserved and not used is lost.
// number-allocator.N2. Blocks are small under low load and are kept for a second: older runs have lower numbers, except within the
//   second that two processes share.

import { invariant, type Clock } from "../../base/index.ts";

const SMALLEST = 8;
const LARGEST = 1_024;
const KEPT_MS = 1_000;

export interface NumberBlock {
  /** The first free number. */
  next: number;
  readonly end: number;
}

const NONE: NumberBlock = Object.freeze({ next: 0, end: 0 });

export class NumberAllocator {
  readonly #clock: Clock;
  readonly #reserve: (count: number) => Promise<number>;
  #block: NumberBlock = NONE;
  #reservedAt = Number.NEGATIVE_INFINITY;
  #size = SMALLEST;

  constructor(clock: Clock, reserve: (count: number) => Promise<number>) {
    this.#clock = clock;
    this.#reserve = reserve;
  }

  /** Takes `count` consecutive numbers. */
  async take(count: number): Promise<NumberBlock> {
    if (count === 0) return NONE;
    const mine = this.#cut(count);
    if (mine !== undefined) return mine;
    this.#size = this.#isFresh ? Math.min(LARGEST, this.#size * 2) : SMALLEST;
    const size = Math.max(count, this.#size);
    const first = await this.#reserve(size);
    this.#block = { next: first, end: first + size };
    this.#reservedAt = this.#clock.monotonic();
    return this.#cut(count)!;
  }

  /** Returns unused numbers, if none were taken since. */
  giveBack({ next, end }: NumberBlock): void {
    invariant(next <= end, "a block of numbers was used past its end");
    if (end === this.#block.next && next < end) this.#block.next = next;
  }

  /** Drops the reserved numbers. */
  drop(): void {
    this.#block = NONE;
  }

  get #isFresh(): boolean {
    return this.#clock.monotonic() - this.#reservedAt < KEPT_MS;
  }

  #cut(count: number): NumberBlock | undefined {
    const { next, end } = this.#block;
    if (!this.#isFresh || end - next < count) return undefined;
    this.#block.next += count;
    return { next, end: next + count };
  }
}
