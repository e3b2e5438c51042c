// Batch: what a hot run has produced since its last commit.

import type { EpochMs } from "../base/index.ts";
import type {
  Arrival,
  ClaimedItem,
  Emit,
  Entry,
  EntryType,
  ItemFence,
  NewCheckpoint,
  NewChild,
  NewItem,
  NewMessage,
} from "../kernel/index.ts";

/** A completion the code is given once its commit is durable. */
export interface Delivery {
  readonly type: EntryType;
  readonly command: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly at: EpochMs;
}

/** Shared by every list that stays empty: most commits hold an entry and its delivery, and nothing else. */
export const NONE: readonly never[] = [];

/** What one commit will hold. */
export class Batch {
  /** The chain its first entry comes after. */
  readonly previousChain: string;
  readonly entries: Entry[] = [];
  /** Entries, a large one for several: what waits for a commit is held in memory. */
  weight = 0;
  deliveries: readonly Delivery[] = NONE;
  finished: readonly ItemFence[] = NONE;
  /** The terminal entries of finished items, to be sent on their own should the commit be void. */
  arrivals: readonly Arrival[] = NONE;
  items: readonly NewItem[] = NONE;
  dropped: readonly string[] = NONE;
  children: readonly NewChild[] = NONE;
  messages: readonly { readonly to: number | string; readonly arrival: Arrival }[] = NONE;
  emits: readonly Emit[] = NONE;
  sends: readonly NewMessage[] = NONE;
  checkpoints: readonly NewCheckpoint[] = NONE;
  localItems: readonly ClaimedItem[] = NONE;

  constructor(previousChain: string) {
    this.previousChain = previousChain;
  }

  get isEmpty(): boolean {
    return (
      this.entries.length === 0 &&
      this.finished.length === 0 &&
      this.emits.length === 0 &&
      this.dropped.length === 0 &&
      this.messages.length === 0
    );
  }

  /** Of finished items. */
  results(): readonly { readonly fence: ItemFence; readonly arrival: Arrival }[] {
    return this.finished.flatMap((fence, index) => {
      const arrival = this.arrivals[index];
      return arrival === undefined ? [] : [{ fence, arrival }];
    });
  }

  /** Without those that were dropped before they were ever written. */
  wantedItems(): readonly NewItem[] {
    if (this.dropped.length === 0 || this.items.length === 0) return this.items;
    const dropped = new Set(this.dropped);
    return this.items.filter(({ item }) => !dropped.has(item));
  }
}

/** `list` with one more; made when the first one comes. */
export function added<T>(list: readonly T[], item: T): readonly T[] {
  if (list === NONE) return [item];
  (list as T[]).push(item);
  return list;
}
