// PendingCommit: what a hot run has produced since its last commit.

import type {
  Arrival,
  ClaimedItem,
  Delivery,
  NewChunk,
  Entry,
  ItemFence,
  NewCheckpoint,
  NewChild,
  NewItem,
  NewMessage,
  NewPromise,
  PromiseChanges,
  SentSettlement,
} from "../kernel/index.ts";

/** Shared by all empty lists: most commits hold one entry and one delivery, and nothing else. */
export const EMPTY: readonly never[] = [];

export class PendingCommit {
  /** The chain value before its first entry. */
  readonly previousChain: string;
  readonly entries: Entry[] = [];
  /** The number of entries, where a large entry counts as several: pending entries stay in memory. */
  weight = 0;
  /** The size of the payloads, in characters. */
  size = 0;
  #takenSize = 0;
  /** The code receives them once the commit is durable. */
  deliveries: readonly Delivery[] = EMPTY;
  finished: readonly ItemFence[] = EMPTY;
  /** The terminal entries of finished items, submitted separately when the commit is rejected. */
  arrivals: readonly Arrival[] = EMPTY;
  items: readonly NewItem[] = EMPTY;
  dropped: readonly string[] = EMPTY;
  children: readonly NewChild[] = EMPTY;
  messages: readonly { readonly to: number | string; readonly arrival: Arrival }[] = EMPTY;
  settlements: readonly SentSettlement[] = EMPTY;
  chunks: readonly NewChunk[] = EMPTY;
  outgoing: readonly NewMessage[] = EMPTY;
  checkpoints: readonly NewCheckpoint[] = EMPTY;
  openedPromises: readonly NewPromise[] = EMPTY;
  closedPromises: readonly string[] = EMPTY;
  localItems: readonly ClaimedItem[] = EMPTY;

  constructor(previousChain: string) {
    this.previousChain = previousChain;
  }

  /** By how much it has grown since the last call (turn-budget.B1). */
  takeAddedSize(): number {
    const added = this.size - this.#takenSize;
    this.#takenSize = this.size;
    return added;
  }

  get isEmpty(): boolean {
    return (
      this.entries.length === 0 &&
      this.finished.length === 0 &&
      this.chunks.length === 0 &&
      this.dropped.length === 0 &&
      this.closedPromises.length === 0 &&
      this.messages.length === 0
    );
  }

  /** The results of finished items. */
  results(): readonly { readonly fence: ItemFence; readonly arrival: Arrival }[] {
    return this.finished.flatMap((fence, index) => {
      const arrival = this.arrivals[index];
      return arrival === undefined ? [] : [{ fence, arrival }];
    });
  }

  /** Without promises that were closed before they were written; undefined: none opens or closes. */
  promiseChanges(): PromiseChanges | undefined {
    const { openedPromises: opened, closedPromises: closed } = this;
    if (opened.length + closed.length === 0) return undefined;
    if (opened.length === 0 || closed.length === 0) return { opened, closed };
    const [isOpened, isClosed] = [new Set(opened.map(({ command }) => command)), new Set(closed)];
    return {
      opened: opened.filter(({ command }) => !isClosed.has(command)),
      closed: closed.filter((command) => !isOpened.has(command)),
    };
  }

  /** Without items that were dropped before they were written. */
  undroppedItems(): readonly NewItem[] {
    if (this.dropped.length === 0 || this.items.length === 0) return this.items;
    const dropped = new Set(this.dropped);
    return this.items.filter(({ item }) => !dropped.has(item));
  }
}

/** `list` with one more element; allocates the list for the first one. */
export function appended<T>(list: readonly T[], item: T): readonly T[] {
  if (list === EMPTY) return [item];
  (list as T[]).push(item);
  return list;
}
