// Memory carrier: the port in forty lines, for tests that need a carrier without a disk, and for broken ones.

import {
  checkPath,
  checkPrefix,
  type Carrier,
  type CarrierFile,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from "../../../src/federation/index.ts";
import { RepriseError, systemTimers } from "../../../src/base/index.ts";
import { pause, isPending } from "../../../src/carriers/waiting.ts";

/** What carriers that are opened on one place share. */
export class MemoryPlace {
  readonly files = new Map<string, CarrierFile>();
  version = 0;
  changed = Promise.withResolvers<void>();

  set(path: string, bytes: Uint8Array | undefined): string {
    this.version += 1;
    if (bytes === undefined) this.files.delete(path);
    else this.files.set(path, { bytes: Uint8Array.from(bytes), etag: `v${this.version}` });
    this.changed.resolve();
    this.changed = Promise.withResolvers();
    return `v${this.version}`;
  }
}

export class MemoryCarrier implements Carrier {
  readonly url = "memory:";
  readonly place: MemoryPlace;

  constructor(place = new MemoryPlace()) {
    this.place = place;
  }

  async get(path: string, options: GetOptions = {}): Promise<CarrierFile | "unchanged" | undefined> {
    const { after, waitMs = 0, signal, maxBytes = Infinity } = options;
    checkPath(path);
    signal?.throwIfAborted();
    const giveUpAt = performance.now() + waitMs;
    for (;;) {
      const file = this.place.files.get(path);
      const answer = file !== undefined && file.etag === after ? "unchanged" : file;
      if (file !== undefined && file.bytes.length > maxBytes)
        throw new RepriseError("LIMIT_EXCEEDED", `${path} is too long.`);
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0 || !isPending(answer, after)) return answer;
      await pause({ timers: systemTimers }, leftMs, signal, this.place.changed.promise);
    }
  }

  async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
    checkPath(path);
    const wanted = "match" in options ? (options.match ?? undefined) : undefined;
    return this.place.files.get(path)?.etag === wanted ? this.place.set(path, bytes) : "refused";
  }

  async *list(prefix: string, { shallow = false }: ListOptions = {}): AsyncIterable<string> {
    checkPrefix(prefix);
    const below = [...this.place.files.keys()].filter((path) => path.startsWith(prefix));
    const children = below.map((path) => prefix + path.slice(prefix.length).replace(/\/.*/, "/"));
    yield* shallow ? new Set(children) : below;
  }

  async remove(path: string): Promise<void> {
    this.place.set(checkPath(path), undefined);
  }

  async close(): Promise<void> {}
}
