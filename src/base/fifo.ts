const NONE: never[] = [];

/** A queue with a constant-time `shift`; Array.prototype.shift moves every element of a long array. Empty ones share an array. */
export class Fifo<T> {
  #items: T[] = NONE;
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  /** The item that `shift` would return. */
  get first(): T | undefined {
    return this.#items[this.#first];
  }

  push(item: T): void {
    if (this.#items === NONE) this.#items = [item];
    else this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#first === this.#items.length) return undefined;
    const item = this.#items[this.#first];
    // So that the removed item can be garbage-collected.
    this.#items[this.#first] = undefined as T;
    this.#first += 1;
    if (this.#first === this.#items.length) {
      this.#items = NONE;
      this.#first = 0;
    } else if (this.#first >= 1_024 && this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  /** The items, oldest first. */
  all(): readonly T[] {
    return this.#items.slice(this.#first);
  }
}
