// Step order: collects records in journal order and returns them in the order of their places (steps.E3).
//
// step-order.O1. Memory is 44 bytes for each record: three numbers and a hash, in pages, so that growing copies nothing.
// step-order.O2. Of records with the same place the first one counts.

import { RepriseError } from "../base/index.ts";
import { LAST, type StepPlace } from "./steps.ts";

const HASH_BYTES = 32;
const PAGE = 4_096;

interface Page {
  readonly places: Uint32Array;
  readonly hashes: Buffer;
}

export class StepOrder {
  readonly #pages: Page[] = [];
  #size = 0;
  #isSorted = true;
  #last: StepPlace = [0, 0, 0];

  push(place: StepPlace, hash?: Buffer): void {
    const at = this.#size % PAGE;
    if (at === 0)
      this.#pages.push({
        places: new Uint32Array(PAGE * 3),
        hashes: Buffer.alloc(hash === undefined ? 0 : PAGE * HASH_BYTES),
      });
    const { places, hashes } = this.#pages.at(-1)!;
    if (!place.every((number) => number <= LAST))
      throw new RepriseError("STORE_CORRUPT", `A command has a number above ${LAST}. Run \`reprise doctor\`.`);
    places.set(place, at * 3);
    hash?.copy(hashes, at * HASH_BYTES);
    if (this.#size > 0 && compare(this.#last, place) >= 0) this.#isSorted = false;
    this.#last = place;
    this.#size += 1;
  }

  hashAt(slot: number): Buffer {
    const at = (slot % PAGE) * HASH_BYTES;
    return this.#pages[Math.floor(slot / PAGE)]!.hashes.subarray(at, at + HASH_BYTES);
  }

  /** The numbers under which records were pushed, from 0, in order. `ranks` replaces the first numbers of places. */
  *slots(ranks?: readonly number[]): Iterable<number> {
    if (this.#isSorted && ranks === undefined) {
      for (let slot = 0; slot < this.#size; slot += 1) yield slot;
      return;
    }
    const order = new Uint32Array(this.#size);
    for (let slot = 0; slot < order.length; slot += 1) order[slot] = slot;
    const rankOf = (first: number): number => ranks?.[first] ?? first;
    order.sort((a, b) => this.#compareSlots(a, b, rankOf) || a - b);
    let previous: number | undefined;
    for (const slot of order) {
      // step-order.O2
      if (previous === undefined || this.#compareSlots(previous, slot, rankOf) !== 0) yield slot;
      previous = slot;
    }
  }

  #compareSlots(a: number, b: number, rankOf: (first: number) => number): number {
    const left = this.#pages[Math.floor(a / PAGE)]!.places;
    const right = this.#pages[Math.floor(b / PAGE)]!.places;
    const l = (a % PAGE) * 3;
    const r = (b % PAGE) * 3;
    if (left[l] !== right[r]) return rankOf(left[l]!) - rankOf(right[r]!);
    return left[l + 1]! - right[r + 1]! || left[l + 2]! - right[r + 2]!;
  }
}

function compare(a: StepPlace, b: StepPlace): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
