// Content place: a folder or a bucket with large contents, one file per content, in a folder per run.
//
// content-place.F1. A file is durable before the row that refers to it is committed (carrier.C2). Its name is the digest of its text, so
//   a file that exists already is the one that was to be written.
// content-place.F2. A place belongs to one store: the file `reprise-contents` names it, and so does the store's row in `meta`.

import { openCarrier, type Carrier, type CarrierPorts } from "../../carriers/index.ts";
import type { RunNumber } from "../../kernel/index.ts";

/** content-place.F2 */
const MARKER = "reprise-contents";
/** A content has a million characters, and a codec may add to it. */
const MAX_BYTES = 32 * 1024 * 1024;

type WritableCarrier = Required<Pick<Carrier, "put" | "list" | "remove">> & Carrier;

export class ContentPlace {
  readonly address: string;
  readonly #carrier: WritableCarrier;

  private constructor(address: string, carrier: WritableCarrier) {
    this.address = address;
    this.#carrier = carrier;
  }

  static async open(address: string, ports: CarrierPorts): Promise<ContentPlace> {
    return new ContentPlace(address, (await openCarrier(address, ports)) as WritableCarrier);
  }

  /** Without keys, for messages. */
  get name(): string {
    return this.#carrier.url;
  }

  // ── whose place it is (content-place.F2) ──

  async owner(): Promise<string | undefined> {
    const file = await this.#carrier.get(MARKER, { maxBytes: 1_000 });
    return file === undefined || file === "unchanged" ? undefined : Buffer.from(file.bytes).toString().trim();
  }

  /** Returns the owner: the given one, or the store that was first. */
  async claim(id: string): Promise<string | undefined> {
    const put = await this.#carrier.put(MARKER, Buffer.from(`${id}\n`), { absent: true });
    return put === "refused" ? this.owner() : id;
  }

  // ── contents ──

  /** content-place.F1 */
  async put(run: RunNumber, content: string, bytes: Uint8Array): Promise<void> {
    await this.#carrier.put(pathOf(run, content), bytes, { absent: true });
  }

  /** Undefined: there is none. */
  async get(run: RunNumber, content: string): Promise<Uint8Array | undefined> {
    const file = await this.#carrier.get(pathOf(run, content), { maxBytes: MAX_BYTES });
    return file === undefined || file === "unchanged" ? undefined : file.bytes;
  }

  /** Replaces the bytes of a content, which another codec has encoded. */
  async replace(run: RunNumber, content: string, encode: (bytes: Uint8Array) => Uint8Array): Promise<boolean> {
    const path = pathOf(run, content);
    for (;;) {
      const file = await this.#carrier.get(path, { maxBytes: MAX_BYTES });
      if (file === undefined || file === "unchanged") return false;
      const put = await this.#carrier.put(path, encode(file.bytes), { match: file.etag });
      if (put !== "refused") return true;
    }
  }

  async removeRun(run: RunNumber): Promise<void> {
    const paths: string[] = [];
    for await (const path of this.#carrier.list(`${run}/`)) paths.push(path);
    for (const path of paths) await this.#carrier.remove(path);
  }

  /** The runs that have files here. */
  async runs(): Promise<ReadonlySet<RunNumber>> {
    const found = new Set<RunNumber>();
    for await (const path of this.#carrier.list("", { shallow: true }))
      if (/^\d+\/$/.test(path)) found.add(Number(path.slice(0, -1)));
    return found;
  }

  close(): Promise<void> {
    return this.#carrier.close();
  }
}

function pathOf(run: RunNumber, content: string): string {
  return `${run}/${content}`;
}
