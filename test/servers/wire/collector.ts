/** Collects bytes until a frame is complete. `sizeOf` returns undefined while the size is unknown. */
export class Collector {
  #rest: Buffer = Buffer.alloc(0);

  *take(bytes: Buffer, sizeOf: (rest: Buffer) => number | undefined): Generator<Buffer> {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const size = sizeOf(this.#rest);
      if (size === undefined || this.#rest.length < size) return;
      const frame = this.#rest.subarray(0, size);
      this.#rest = this.#rest.subarray(size);
      yield frame;
    }
  }
}
