// News: for whoever looks, waits until something has moved, and looks again.

/** Something happened since it was last asked. */
export class News {
  #next = Promise.withResolvers<void>();
  #closed = false;

  get isClosed(): boolean {
    return this.#closed;
  }

  next(): Promise<void> {
    this.#next = Promise.withResolvers();
    if (this.#closed) this.#next.resolve();
    return this.#next.promise;
  }
  close(): void {
    this.#closed = true;
    this.tell();
  }
  tell(): void {
    this.#next.resolve();
  }
}
