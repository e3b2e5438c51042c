// NATS: a carrier in JetStream: `nats://host:4222/bucket`. The object store `bucket` holds files that never change, the key-value store
// `bucket` the checkpoints, which are compared and replaced, and watched. A hub mirrors both streams (OBJ_bucket, KV_bucket), and is
// read like the server that they come from: sequences, and so versions, are the same.
//
// nats.N1. A version is the sequence of the message that holds the value, or the description of the object. The server compares it with
//   the last one of that subject, so of two writers one succeeds.
// nats.N2. JetStream acknowledges before it syncs to the disk: after a power failure of the server, files of the last two minutes may be
//   gone. A push writes what is missing (carrier.C1).
// nats.N3. After a request without an answer, a write may have happened: the file is read before it is written again.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { ObjectInfo, ObjectStore } from "@nats-io/obj";
import { backoffMs, RepriseError } from "../base/index.ts";
import {
  CARRIER_LIMITS,
  checkPath,
  checkPrefix,
  isFileName,
  tooLong,
  type Carrier,
  type CarrierFile,
  type CarrierLimits,
  type CarrierOptions,
  type CarrierPorts,
  type Etag,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from "./carrier.ts";
import { isMissing, isStale, isTransient, natsError } from "./nats-errors.ts";
import { connectNats, type NatsLink } from "./nats-connection.ts";
import { hasChunks, putObject, readObject } from "./nats-object.ts";
import { KeyWatch } from "./nats-watch.ts";
import { isPending, pause, readUntilChanged } from "./waiting.ts";

/** A request that is lost with its connection fails only after this time, and is then repeated. */
const REQUEST_MS = 5_000;

/** Opens a bucket of a NATS server. It is created by the first write. */
export async function openNats(url: string, options: CarrierOptions): Promise<NatsCarrier> {
  const limits = { ...CARRIER_LIMITS, ...options.limits };
  const timeoutMs = Math.min(limits.responseMs, REQUEST_MS);
  return new NatsCarrier(await connectNats(url, options.token, timeoutMs), options, limits);
}

interface Stores {
  readonly objects: ObjectStore;
  readonly keys: KV;
}

export class NatsCarrier implements Carrier {
  readonly url: string;
  readonly #link: NatsLink;
  readonly #ports: CarrierPorts;
  readonly #limits: CarrierLimits;
  #stores: Promise<Stores> | undefined;

  constructor(link: NatsLink, ports: CarrierPorts, limits: CarrierLimits) {
    this.url = link.url;
    this.#link = link;
    this.#ports = ports;
    this.#limits = limits;
  }

  async get(path: string, options: GetOptions = {}): Promise<CarrierFile | "unchanged" | undefined> {
    checkPath(path);
    const { waitMs = 0, signal } = options;
    signal?.throwIfAborted();
    const read = (): Promise<CarrierFile | "unchanged" | undefined> =>
      this.#repeat(path, () => (isKey(path) ? this.#getKey(path, options) : this.#getObject(path, options)));
    const first = await read();
    if (waitMs <= 0 || !isPending(first, options.after)) return first;
    const stores = isKey(path) ? await this.#repeat(path, () => this.#open()) : undefined;
    using watch = stores === undefined ? undefined : await KeyWatch.start(stores.keys, keyOf(path), signal);
    const { pollMs } = this.#limits;
    // With await: the watch ends when this function does.
    return await readUntilChanged(
      () => (watch?.begin(), read()),
      options,
      this.#ports,
      (leftMs) => pause(this.#ports, Math.min(pollMs, leftMs), signal, watch?.changed),
    );
  }

  async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<Etag | "refused"> {
    checkPath(path);
    options.signal?.throwIfAborted();
    const match = "match" in options ? options.match : null;
    let isRepeated = false;
    return this.#repeat(path, async () => {
      const isUncertain = isRepeated;
      isRepeated = true;
      const etag = isKey(path) ? await this.#putKey(path, bytes, match) : await this.#putObject(path, bytes, match);
      // nats.N3
      return etag === "refused" && isUncertain ? this.#wasOurs(path, bytes) : etag;
    });
  }

  async *list(prefix: string, { shallow = false }: ListOptions = {}): AsyncIterable<string> {
    checkPrefix(prefix);
    const paths = await this.#repeat(prefix, async () => {
      const stores = await this.#open();
      if (stores === undefined) return [];
      const objects = await stores.objects.list();
      const keys = await Array.fromAsync(await stores.keys.keys());
      // Other programs may keep files here too; their names lead nowhere (carrier.C5).
      return [...objects.map(({ name }) => name), ...keys.map(pathOf)].filter((path) =>
        path.split("/").every(isFileName),
      );
    });
    const below = paths.filter((path) => path.startsWith(prefix));
    yield* shallow ? new Set(below.map((path) => prefix + path.slice(prefix.length).replace(/\/.*/, "/"))) : below;
  }

  async remove(path: string): Promise<void> {
    checkPath(path);
    await this.#repeat(path, async () => {
      const stores = await this.#open();
      if (stores === undefined) return;
      if (!isKey(path)) await stores.objects.delete(path);
      else if ((await stores.keys.get(keyOf(path))) !== null) await stores.keys.purge(keyOf(path));
    });
  }

  async close(): Promise<void> {
    await this.#link.connection.close();
  }

  async #getKey(path: string, { after, maxBytes }: GetOptions): Promise<CarrierFile | "unchanged" | undefined> {
    const stores = await this.#open();
    const entry = await stores?.keys.get(keyOf(path));
    if (entry === undefined || entry === null || entry.operation !== "PUT") return undefined;
    const etag = String(entry.revision);
    if (etag === after) return "unchanged";
    const most = maxBytes ?? this.#limits.maxBytes;
    if (entry.value.length > most) throw tooLong(this.url, path, most);
    return { bytes: Uint8Array.from(entry.value), etag };
  }

  async #getObject(path: string, { after, maxBytes }: GetOptions): Promise<CarrierFile | "unchanged" | undefined> {
    const stores = await this.#open();
    if (stores === undefined) return undefined;
    for (;;) {
      const info = await findObject(stores.objects, path);
      if (info === undefined || info.deleted) return undefined;
      const etag = String(info.revision);
      if (etag === after) return "unchanged";
      const most = maxBytes ?? this.#limits.maxBytes;
      if (info.size > most) throw tooLong(this.url, path, most);
      const bytes = await readObject(this.#link, info);
      if (bytes !== undefined) return { bytes, etag };
      // A writer that replaced the object removed its chunks. If the object is still the same one, its chunks are lost.
      if ((await findObject(stores.objects, path))?.revision === info.revision) return undefined;
    }
  }

  async #putKey(path: string, bytes: Uint8Array, match: Etag | null): Promise<Etag | "refused"> {
    const { keys } = await this.#create();
    try {
      if (match === null) return String(await keys.create(keyOf(path), bytes));
      return /^[1-9]\d*$/.test(match) ? String(await keys.update(keyOf(path), bytes, Number(match))) : "refused";
    } catch (error) {
      if (isStale(error)) return "refused";
      throw error;
    }
  }

  async #putObject(path: string, bytes: Uint8Array, match: Etag | null): Promise<Etag | "refused"> {
    const { objects } = await this.#create();
    const old = await findObject(objects, path);
    const version = old === undefined || old.deleted ? null : String(old.revision);
    // A description without its chunks is no file: the next writer repairs it.
    if (version !== match && (match !== null || (await hasChunks(this.#link, old!)))) return "refused";
    const { clock, random } = this.#ports;
    // nats.N1
    const put = await putObject(this.#link, { name: path, bytes, nuid: random.token(), old, at: clock.now() });
    return put === "refused" ? put : String(put);
  }

  async #wasOurs(path: string, bytes: Uint8Array): Promise<Etag | "refused"> {
    const found = await (isKey(path) ? this.#getKey(path, {}) : this.#getObject(path, {}));
    const isOurs = found !== undefined && found !== "unchanged" && Buffer.compare(found.bytes, bytes) === 0;
    return isOurs ? found.etag : "refused";
  }

  /** Undefined until someone has written. */
  async #open(): Promise<Stores | undefined> {
    try {
      return await (this.#stores ??= this.#openStores());
    } catch (error) {
      this.#stores = undefined;
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async #openStores(): Promise<Stores> {
    const { bucket, kv, obj } = this.#link;
    // Fails if there is no such stream.
    await Promise.all([this.#manager().streams.info(`KV_${bucket}`), this.#manager().streams.info(`OBJ_${bucket}`)]);
    // Not direct: a replica may be behind, and a writer would not see what it has just written.
    return { keys: await kv.open(bucket, { allow_direct: false }), objects: await obj.open(bucket) };
  }

  async #create(): Promise<Stores> {
    const opened = await this.#open();
    if (opened !== undefined) return opened;
    const { bucket, kv, obj } = this.#link;
    await kv.create(bucket, { history: 1, allow_direct: false });
    await obj.create(bucket);
    this.#stores = undefined;
    const stores = await this.#open();
    if (stores !== undefined) return stores;
    throw new RepriseError("CARRIER_UNREACHABLE", `${this.url}: the bucket ${bucket} vanished while it was created.`);
  }

  #manager(): JetStreamManager {
    return this.#link.manager;
  }

  /** Repeats what may be repeated: reads, and writes with their conditions. */
  async #repeat<T>(path: string, act: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await act();
      } catch (error) {
        if (error instanceof RepriseError) throw error;
        if (!isTransient(error) || attempt + 1 >= this.#limits.attempts) throw natsError(this.url, path, error);
        const [byte = 0] = this.#ports.random.bytes(1);
        const policy = { maxAttempts: this.#limits.attempts, baseDelay: 100, maxDelay: 5_000 };
        await pause(this.#ports, backoffMs(policy, attempt, byte / 256));
      }
    }
  }
}

/** The files that change often, and that others wait for. */
function isKey(path: string): boolean {
  return path === "checkpoint" || path.endsWith("/checkpoint");
}

/** A key may not hold "~", and a path has no "=". */
function keyOf(path: string): string {
  return path.replaceAll("~", "=7E");
}

function pathOf(key: string): string {
  return key.replaceAll("=7E", "~");
}

async function findObject(objects: ObjectStore, path: string): Promise<ObjectInfo | undefined> {
  return (await objects.info(path)) ?? undefined;
}
