/** Collects bytes until a frame is whole. `sizeOf` answers undefined while it cannot know. */
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
