// ChangeRing: the newest events of a server's change feed, numbered, so that a reader that was cut off continues without a gap.
//
// change-ring.R1. An id is `<epoch>-<number>`. Numbers are dense within an epoch; an epoch is one period in which the feed ran without a
//   pause, so ids of two servers, or of two starts of one, never mix.
// change-ring.R2. The ring holds a bounded number of events. A reader whose id is older, or of another epoch, must load everything again.

import type { ChangeEvent } from "./change-event.ts";
import { eventBytes } from "./event-stream.ts";

/** A change with its number, as bytes that every reader gets. */
export interface NumberedChange {
  readonly change: ChangeEvent;
  readonly number: number;
  readonly bytes: Uint8Array;
}

const MAX_EVENTS = 4_096;

export class ChangeRing {
  readonly #epoch: string;
  readonly #events: NumberedChange[] = [];
  readonly #maxEvents: number;
  #last = 0;

  constructor(epoch: string, maxEvents = MAX_EVENTS) {
    this.#epoch = epoch;
    this.#maxEvents = maxEvents;
  }

  /** The id of the newest event. */
  get lastId(): string {
    return `${this.#epoch}-${this.#last}`;
  }

  add(change: ChangeEvent): NumberedChange {
    this.#last += 1;
    const numbered = {
      change,
      number: this.#last,
      bytes: eventBytes(change.event, JSON.stringify(change.data), this.lastId),
    };
    this.#events.push(numbered);
    // In portions: shifting one by one costs a copy each.
    if (this.#events.length > 2 * this.#maxEvents) this.#events.splice(0, this.#events.length - this.#maxEvents);
    return numbered;
  }

  /** The events behind an id; undefined: they are not all here (change-ring.R2). */
  after(id: string): readonly NumberedChange[] | undefined {
    const [, epoch, digits] = /^(.+)-(\d{1,15})$/.exec(id) ?? [];
    const number = Number(digits);
    if (epoch !== this.#epoch || number > this.#last) return undefined;
    const missing = this.#last - number;
    if (missing > Math.min(this.#events.length, this.#maxEvents)) return undefined;
    return missing === 0 ? [] : this.#events.slice(-missing);
  }
}
