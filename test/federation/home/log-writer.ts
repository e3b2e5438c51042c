// A site that writes a log: its key, its records and its contents, without a store.

import { canonicalJson, drawInt, mediaType, sha256Hex } from "../../../src/base/index.ts";
import type { Home } from "../../../src/federation/home/home.ts";
import type { Batch } from "../../../src/federation/home/ingest.ts";
import { signCheckpoint, type Checkpoint } from "../../../src/federation/log/checkpoint.ts";
import { contentOf, type Content } from "../../../src/federation/log/content.ts";
import { linkText, slotOf, type Link } from "../../../src/federation/log/link.ts";
import { LogTree } from "../../../src/federation/log/log-tree.ts";
import { nextRecord, recordText, type LogRecord, type RecordBody } from "../../../src/federation/log/record.ts";
import { signingKeyOf, type SigningKey } from "../../../src/receipts/index.ts";

export const VALUE = mediaType("value");

export function valueOf(value: unknown): Content {
  return contentOf(VALUE, canonicalJson(value));
}

export function linkOf(link: Omit<Link, "v">): Content {
  return contentOf(mediaType("link"), linkText({ ...link, v: 1 }));
}

export class TestOrigin {
  readonly key: SigningKey;
  readonly origin: string;
  readonly records: LogRecord[] = [];
  readonly texts: string[] = [];
  readonly contents = new Map<string, Content>();
  /** Of each record, the key that signs a checkpoint above it. */
  signer: SigningKey;

  constructor(name: string) {
    this.key = signingKeyOf(Buffer.from(sha256Hex(name), "hex"), name);
    this.signer = this.key;
    this.origin = this.key.origin;
  }

  get size(): number {
    return this.records.length;
  }

  /** Appends a record by an author who has seen these logs as they are. */
  append(body: RecordBody, seen: readonly TestOrigin[] = []): LogRecord {
    const heads = seen
      .filter(({ size }) => size > 0)
      .map(({ origin, records }) => [origin, { n: records.length, c: records.at(-1)!.c }] as const);
    const end = { origin: this.origin, size: this.size, clock: this.records.at(-1)?.c ?? 0 };
    const record = nextRecord(end, body, Object.fromEntries(heads));
    this.records.push(record);
    this.texts.push(recordText(record));
    return record;
  }

  put(content: Content, seen: readonly TestOrigin[] = []): LogRecord {
    this.contents.set(content.key, content);
    const isLink = content.type === mediaType("link");
    const link = isLink ? (JSON.parse(Buffer.from(content.bytes).toString()) as Link) : undefined;
    return this.append({ op: "put", k: content.key, ...(link && { s: slotOf(link) }) }, seen);
  }

  value(value: unknown, seen: readonly TestOrigin[] = []): LogRecord {
    return this.put(valueOf(value), seen);
  }

  tomb(cell: string, seen: readonly TestOrigin[] = []): LogRecord {
    return this.append({ op: "tomb", x: cell }, seen);
  }

  erase(cell: string, seen: readonly TestOrigin[] = []): LogRecord {
    return this.append({ op: "erase", x: cell }, seen);
  }

  checkpoint(size = this.size, signer = this.signer): Checkpoint {
    return signCheckpoint(signer, this.origin, size, LogTree.ofTexts(this.texts.slice(0, size)).root());
  }

  /** The records after those that the home has, with all their contents, under a checkpoint of `size`. */
  batch(home: Home, size = this.size, more: Partial<Batch> = {}): Batch {
    const after = home.origin(this.origin)?.cursor ?? 0;
    return this.batchFrom(after, size, more);
  }

  batchFrom(after: number, size: number, more: Partial<Batch> = {}): Batch {
    const named = this.records.slice(after, size).flatMap(({ k }) => k ?? []);
    return {
      origin: this.origin,
      records: this.texts.slice(after, size),
      checkpoint: this.checkpoint(size),
      contents: [...new Set(named)].flatMap((key) => this.contents.get(key) ?? []),
      journals: [],
      ...more,
    };
  }

  admitTo(home: Home): this {
    home.admit(this.key.vkey);
    return this;
  }

  /** The site itself from here on has two logs: this one, and the one that is returned. */
  fork(): TestOrigin {
    const other = new TestOrigin(this.key.origin.split("/")[0]!);
    for (const [i, record] of this.records.entries()) {
      other.records.push(record);
      other.texts.push(this.texts[i]!);
    }
    for (const [key, content] of this.contents) other.contents.set(key, content);
    return other;
  }
}

/** Ingests everything that a home lacks of these logs, and fails if it does not go in. */
export function sync(home: Home, ...origins: readonly TestOrigin[]): void {
  for (const origin of origins) {
    const outcome = home.ingest(origin.batch(home));
    if (outcome.status !== "ingested" && outcome.status !== "unchanged") throw new Error(JSON.stringify(outcome));
  }
}

/** Whole numbers from 0 on, the same for the same seed and name. */
export function drawOf(seed: string): (max: number, what: string) => number {
  const number = BigInt(`0x${sha256Hex(seed).slice(0, 16)}`);
  return (max, what) => drawInt(number, what, 0, max);
}

/** Origins that write values, links, tombstones and erasures, and see each other now and then. */
export function world(seed: string, steps: number): TestOrigin[] {
  const origins = ["a", "b", "c"].map((name) => new TestOrigin(name));
  const cells: string[] = [];
  for (let step = 0; step < steps; step += 1) {
    const draw = (max: number, what: string): number => drawOf(seed)(max, `${what} ${step}`);
    const origin = origins[draw(8, "who") > 5 ? draw(2, "other") + 1 : 0]!;
    const seen = draw(3, "seen") === 0 ? origins.filter((other) => other !== origin) : [];
    const kind = draw(10, "kind");
    const cell = cells[draw(Math.max(1, cells.length), "cell")];
    if (kind < 5 || cell === undefined) {
      const content: Content =
        kind < 3
          ? valueOf(draw(12, "value"))
          : linkOf({ type: "t", from: [`run:${draw(3, "from")}`], to: ["run:x"], data: draw(4, "data") });
      const { k, s } = origin.put(content, seen);
      cells.push(s === undefined ? `a:${k!}` : `s:${s}`);
    } else if (kind < 9) origin.tomb(cell, seen);
    else if (draw(4, "erase") === 0) origin.erase(cell, seen);
  }
  return origins;
}
