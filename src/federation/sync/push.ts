// Push: writes the logs of a home, and the contents that a reader may have, to a carrier.
//
// push.U1. Contents and packs first, then tiles, then the checkpoint: a reader that sees a checkpoint finds every file under it.
// push.U2. A push may stop anywhere and be repeated: the files that never change are written once, and nothing is written twice.
//   When there is nothing new, it reads one checkpoint per log.
// push.U3. Records, notes and contents of other origins are written as they came (F-17). Of a log that forked nothing more is written.
// push.U4. A checkpoint replaces only the one that was read, and only if its log extends that log. A longer log of this site is
//   reported: `meet-own.ts` deals with it.
// push.U5. A rule that was added later fills up: when the rules for the reader change, the packs of older tiles are written again, and
//   `filled` says which. A reader that misses contents reads it.
// push.U6. A carrier whose head of one log is not signed as it must be stops the push of that log; it is reported after the others.

import { canonicalJson, RepriseError, sha256Hex } from "../../base/index.ts";
import type { Carrier, Etag } from "../../carriers/index.ts";
import type { Home } from "../home/home.ts";
import type { OriginState } from "../home/origins.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import { encodeArtifact, type Content } from "../log/content.ts";
import type { Origin } from "../log/origin.ts";
import { MAX_PACKED_BYTES, packText } from "../log/pack.ts";
import type { LogRecord } from "../log/record.ts";
import { artifactPath, CHECKPOINT_PATH, handoverPath, journalPath, packPath, TILE_WIDTH } from "../log/tiles.ts";
import { erasedBetween, removeErased } from "./erase.ts";
import { FILLED_PATH, filledText, parseFilled } from "./filled.ts";
import { edgeAt, edgeFromRecords, readRecords, rootAt, tileFiles } from "./tile-files.ts";
import { fitsAny, Publication, statementFacts, type PublicationRule } from "./publish.ts";
import { putFile, putOf } from "./put-file.ts";
import type { SyncState } from "./sync-state.ts";

export interface PushOptions {
  /** The name that rules know the reader of this carrier by. */
  readonly reader: string;
  readonly rules: readonly PublicationRule[];
  /** The origin of this site. */
  readonly own?: Origin | undefined;
  /** Globs. Default: every log of the home. */
  readonly origins?: readonly string[];
  /** Writes the packs of all tiles again where they changed. Default: when the rules for the reader changed since the last push. */
  readonly fill?: boolean;
  /** Remembers by which rules packs were written. Without it only `fill` writes older packs again. */
  readonly state?: SyncState | undefined;
  readonly signal?: AbortSignal;
  /** Called after each tile: how many records of the log are through, of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface PushedLog {
  readonly origin: Origin;
  /** `behind`: the carrier has more. `forked`: the carrier has another log. Nothing was written then. */
  readonly status: "pushed" | "unchanged" | "behind" | "forked" | "empty";
  /** How many records the carrier lacked. */
  readonly records: number;
  /** How many files were written. */
  readonly files: number;
  /** How many contents and journals the reader did not have before. */
  readonly contents: number;
}

/** What the head of a log on a carrier may be refused with. */
const WRONG_HEAD: ReadonlySet<string> = new Set(["CHECKPOINT_INVALID", "NOT_ADMITTED"]);

/** How often a push begins again because another one was first. */
const ATTEMPTS = 8;

/** Pushes the logs of a home to a carrier, for one reader. */
export async function pushTo(home: Home, carrier: Carrier, options: PushOptions): Promise<readonly PushedLog[]> {
  const { origins = ["*"] } = options;
  const pushed: PushedLog[] = [];
  let wrong: RepriseError | undefined;
  for (const state of home.origins())
    try {
      if (fitsAny(origins, state.id)) pushed.push(await pushLog(home, carrier, state, options));
    } catch (error) {
      // push.U6
      if (!(error instanceof RepriseError) || !WRONG_HEAD.has(error.code)) throw error;
      wrong ??= error;
    }
  if (wrong !== undefined) throw wrong;
  return pushed;
}

async function pushLog(home: Home, carrier: Carrier, state: OriginState, options: PushOptions): Promise<PushedLog> {
  const { id: origin } = state;
  const local = home.checkpoint(origin);
  const outcome = (status: PushedLog["status"], records = 0, files = 0, contents = 0): PushedLog => ({
    origin,
    status,
    records,
    files,
    contents,
  });
  if (local === undefined || local.size === 0) return outcome("empty");
  const writer = new LogWriter(home, carrier, origin, options);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    options.signal?.throwIfAborted();
    const there = await readHead(home, carrier, origin);
    if (there !== undefined && there.size > local.size) return outcome("behind");
    // push.U4
    if (there !== undefined && !isPrefix(home, origin, there)) return outcome("forked");
    const before = there?.size ?? 0;
    if (before === local.size) {
      await writer.fill(before);
      return outcome(writer.files === 0 ? "unchanged" : "pushed", 0, writer.files, writer.sent.size);
    }
    // push.U3
    if (state.status === "forked") return outcome("forked");
    await writer.write(there ?? { size: 0, root: "" }, local);
    await writer.fill(before);
    const bytes = Buffer.from(local.note);
    const put = await putOf(carrier)(`${origin}/${CHECKPOINT_PATH}`, bytes, { match: there?.etag ?? null });
    if (put !== "refused") return outcome("pushed", local.size - before, writer.files + 1, writer.sent.size);
  }
  throw new RepriseError(
    "LIMIT_EXCEEDED",
    `Other processes push ${origin} to ${carrier.url} all the time. Push again later.`,
    {
      details: { origin, url: carrier.url },
    },
  );
}

/** The head that a carrier has. */
export interface CarrierHead extends Checkpoint {
  readonly etag: Etag;
}

const MAX_NOTE_BYTES = 64 * 1024;

/** The checkpoint of a carrier, verified with the keys that the home knows; undefined: it has none. */
export async function readHead(home: Home, carrier: Carrier, origin: Origin): Promise<CarrierHead | undefined> {
  const file = await carrier.get(`${origin}/${CHECKPOINT_PATH}`, { maxBytes: MAX_NOTE_BYTES });
  if (file === undefined || file === "unchanged") return undefined;
  return { ...home.keys(origin).open(Buffer.from(file.bytes).toString("utf8")), etag: file.etag };
}

/** Whether a head of at most our size is one of our log. */
export function isPrefix(home: Home, origin: Origin, head: Pick<Checkpoint, "size" | "root">): boolean {
  const known = head.size === 0 ? undefined : home.firstCheckpointCovering(origin, head.size);
  if (known?.size === head.size) return known.root === head.root;
  return rootAt(home, origin, head.size).toString("base64") === head.root;
}

/** Writes the files of one log. */
class LogWriter {
  readonly #home: Home;
  readonly #carrier: Carrier;
  readonly #origin: Origin;
  readonly #options: PushOptions;
  readonly #publication: Publication;
  files = 0;
  /** The keys of contents, and the paths of journals, that are new at the carrier. */
  readonly sent = new Set<string>();

  constructor(home: Home, carrier: Carrier, origin: Origin, options: PushOptions) {
    this.#home = home;
    this.#carrier = carrier;
    this.#origin = origin;
    this.#options = options;
    this.#publication = new Publication(home, options.rules, options.own, options.reader);
  }

  /** push.U1. Everything but the checkpoint. */
  async write(before: Pick<Checkpoint, "size" | "root">, { size }: Checkpoint): Promise<void> {
    await this.#scrub(before.size, size);
    const firstTile = Math.floor(before.size / TILE_WIDTH);
    for (let tile = firstTile; tile * TILE_WIDTH < size; tile += 1) {
      await this.#writePack(tile, size, before.size);
      this.#options.onProgress?.(Math.min(size, (tile + 1) * TILE_WIDTH), size);
    }
    await this.#writeHandovers(before.size, size);
    const edge =
      before.size === 0
        ? edgeFromRecords(this.#home, this.#origin, 0)
        : await edgeAt(this.#home, this.#carrier, this.#origin, before);
    for (const { path, bytes } of tileFiles(this.#home, this.#origin, before.size, size, edge))
      await this.#put(path, bytes);
  }

  /** erase.X4. In every log of the home: contents of one origin may be erased by another. */
  async #scrub(before: number, size: number): Promise<void> {
    const keys = erasedBetween(this.#home, this.#origin, before, size).filter(
      (key) => this.#home.contentState(key) === "erased",
    );
    if (keys.length === 0) return;
    for (const { id } of this.#home.origins()) {
      const isThis = id === this.#origin;
      const there = isThis ? before : ((await readHead(this.#home, this.#carrier, id))?.size ?? 0);
      const tiles = await removeErased(this.#carrier, id, keys, there);
      const writer = isThis ? this : new LogWriter(this.#home, this.#carrier, id, this.#options);
      for (const tile of tiles) await writer.#writePack(tile, there, there);
    }
  }

  /** push.U5. The packs up to `size`, if the rules for the reader are others than those that the packs were written by. */
  async fill(size: number): Promise<void> {
    const digest = this.#rulesDigest();
    const { state } = this.#options;
    const name = `push ${this.#origin} ${this.#carrier.url}`;
    if (this.#options.fill !== true && (state === undefined || state.get(name) === digest)) return;
    const changed: number[] = [];
    if (size > 0)
      for (let tile = 0; tile * TILE_WIDTH < size; tile += 1)
        if (await this.#writePack(tile, size, 0)) changed.push(tile);
    if (changed.length > 0) await this.#addFilled(changed);
    state?.set(name, digest);
  }

  #rulesDigest(): string {
    const { rules, reader } = this.#options;
    return sha256Hex(
      canonicalJson({ reader, rules: rules.filter(({ to }) => to.includes("*") || to.includes(reader)) }),
    );
  }

  async #addFilled(tiles: readonly number[]): Promise<void> {
    const path = `${this.#origin}/${FILLED_PATH}`;
    const put = putOf(this.#carrier);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const there = await this.#carrier.get(path);
      const file = there === undefined || there === "unchanged" ? undefined : there;
      const bytes = Buffer.from(filledText(parseFilled(file?.bytes), tiles));
      if ((await put(path, bytes, { match: file?.etag ?? null })) !== "refused") return;
    }
  }

  /** The pack of a tile for a log of `size`, and what does not fit into it. Whether the carrier lacked anything of it. */
  async #writePack(tile: number, size: number, after: number): Promise<boolean> {
    const from = tile * TILE_WIDTH;
    const upTo = Math.min(size, from + TILE_WIDTH);
    const records = [...readRecords(this.#home, this.#origin, from, upTo)].map(
      ({ rec }) => JSON.parse(rec) as LogRecord,
    );
    const keys = [...new Set(records.flatMap(({ k }) => k ?? []))];
    const contents = uniqueContents(this.#publication.contentsOf(this.#origin, keys));
    const before = this.files;
    const recent = new Set(records.filter(({ n }) => n > after).flatMap(({ k }) => k ?? []));
    for (const content of contents) {
      if (content.bytes.length > MAX_PACKED_BYTES) await this.#put(artifactPath(content.key), encodeArtifact(content));
      if (recent.has(content.key)) await this.#writeJournal(content);
    }
    const isNew =
      contents.length > 0 && (await this.#put(packPath(tile, upTo - from), Buffer.from(packText(contents))));
    if (isNew) {
      const fresh = after <= from ? contents : this.#publication.contentsOf(this.#origin, [...recent]);
      for (const { key } of fresh) this.sent.add(key);
    }
    return this.files > before;
  }

  async #writeJournal(content: Content): Promise<void> {
    const facts = statementFacts(content);
    const journal = facts === undefined ? undefined : this.#publication.journalOf(this.#origin, facts);
    if (facts === undefined || journal === undefined) return;
    const path = journalPath(facts.journal.root);
    if (await this.#put(path, journal)) this.sent.add(path);
  }

  /** key-history.H2. The notes in which a key hands over to the next one. */
  async #writeHandovers(before: number, size: number): Promise<void> {
    for (const { n } of this.#home.keys(this.#origin).terms) {
      if (n <= before || n > size || n === 0) continue;
      const note = this.#home.firstCheckpointCovering(this.#origin, n);
      if (note?.size === n) await this.#put(handoverPath(n), Buffer.from(note.note));
    }
  }

  async #put(path: string, bytes: Uint8Array): Promise<boolean> {
    this.#options.signal?.throwIfAborted();
    const isNew = await putFile(this.#carrier, `${this.#origin}/${path}`, bytes);
    if (isNew) this.files += 1;
    return isNew;
  }
}

function uniqueContents(contents: readonly Content[]): Content[] {
  return [...new Map(contents.map((content) => [content.key, content])).values()];
}
