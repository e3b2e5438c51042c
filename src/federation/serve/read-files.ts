// Read files: the files of every log of the home, made when a reader asks for them.
//
// read-files.F1. Only what a checkpoint of this home covers exists. A partial tile exists in every width that the log has had.
// read-files.F2. Tiles and checkpoints are the same for every reader of the log. Packs, artifacts and journals hold what this reader may
//   have, so only the reader may cache them; a pack can change, when a rule publishes more or a content is erased.
// read-files.F3. A reader that waits gets the next checkpoint as soon as the home has it, else 304 when its time is over.

import { sha256Hex, type Clock } from "../../base/index.ts";
import { encodeArtifact } from "../log/content.ts";
import { packText } from "../log/pack.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import { encodeEntries, TILE_WIDTH } from "../log/tiles.ts";
import type { ChangeFeed } from "./change-feed.ts";
import type { HashTiles } from "./hash-tiles.ts";
import * as path from "./log-path.ts";
import type { PeerAccess } from "./peer-access.ts";
import { notPublished, type Call, type Route } from "./route.ts";
import type { ServeHome } from "./serve-home.ts";
import { findStatement } from "./find-statement.ts";
import type { Publication } from "../sync/publish.ts";
import type { ServeLimits } from "./serve-limits.ts";

/** What one reader may have of the contents. */
export type Reader = Pick<Publication, "contentsOf" | "journalOf">;

export interface LogFileOptions {
  readonly home: ServeHome;
  readonly tiles: HashTiles;
  readonly feed: ChangeFeed;
  readonly readerOf: (peer: PeerAccess | undefined) => Reader;
  readonly limits: ServeLimits;
  readonly isPublic: boolean;
  readonly clock: Clock;
}

/** The routes that read files of logs. */
export function logFileRoutes(options: LogFileOptions): readonly Route[] {
  const route = (pattern: RegExp, handle: (call: Call) => Response | Promise<Response>): Route => ({
    method: "GET",
    path: pattern,
    access: "reader",
    handle,
  });
  return [
    { ...route(path.CHECKPOINT, (call) => readCheckpoint(call, options)), waits: (url) => waitSeconds(url) > 0 },
    route(path.HASH_TILE, (call) => readHashTile(call, options)),
    route(path.ENTRY_TILE, (call) => readEntries(call, options)),
    route(path.PACK, (call) => readPack(call, options)),
    route(path.HANDOVER, (call) => readHandover(call, options)),
    route(path.ARTIFACT, (call) => readArtifact(call, options)),
    route(path.JOURNAL, (call) => readJournal(call, options)),
    // Packs are made when they are read, so no list says which of them changed: a reader asks for those whose contents it misses.
    route(path.FILLED, ({ params }) => {
      throw notPublished(`The log ${params["origin"]} has no list of changed packs.`);
    }),
  ];
}

/** The version of a checkpoint: of its whole note, signatures of witnesses included. */
export function checkpointEtag({ note }: Checkpoint): string {
  return etagOf(note);
}

export function etagOf(content: string | Uint8Array): string {
  return `"${sha256Hex(content).slice(0, 32)}"`;
}

function waitSeconds(url: URL): number {
  const text = url.searchParams.get("wait") ?? "";
  return /^\d{1,6}(?:\.\d{1,20})?$/.test(text) ? Number(text) : 0;
}

/** read-files.F3 */
async function readCheckpoint(call: Call, { home, feed, limits, clock }: LogFileOptions): Promise<Response> {
  const origin = call.params["origin"]!;
  const known = call.request.headers.get("if-none-match");
  const endsAt = clock.monotonic() + Math.min(waitSeconds(call.url) * 1_000, limits.waitMs);
  for (;;) {
    // Registered before the home is read (change-feed.F3).
    const leftMs = endsAt - clock.monotonic();
    const waiter = leftMs > 0 ? feed.register(leftMs, call.signal) : undefined;
    const checkpoint = home.checkpoint(origin);
    const etag = checkpoint && checkpointEtag(checkpoint);
    if (checkpoint !== undefined && etag !== known) {
      waiter?.cancel();
      return fileResponse(checkpoint.note, "no-cache", "text/plain; charset=utf-8", etag);
    }
    if ((await waiter?.woken) === "changed") continue;
    if (checkpoint === undefined || etag === undefined) throw notPublished(`There is no checkpoint of ${origin} here.`);
    return new Response(null, { status: 304, headers: { etag, "cache-control": "no-cache" } });
  }
}

interface TileRange {
  readonly checkpoint: Checkpoint;
  readonly n: number;
  readonly width: number;
}

/** read-files.F1. The tile that the path names, if the log has it. */
function rangeOf({ params }: Call, { home }: LogFileOptions, level: number): TileRange {
  const [origin, n, width] = [params["origin"]!, path.findNumber(params["n"]!), path.findWidth(params["width"])];
  const checkpoint = home.checkpoint(origin);
  const hashes = checkpoint === undefined ? 0 : Math.floor(checkpoint.size / TILE_WIDTH ** level);
  if (checkpoint === undefined || n === undefined || width === undefined || n * TILE_WIDTH + width > hashes)
    throw notPublished(`The log ${origin} has no file ${params["path"]}.`);
  return { checkpoint, n, width };
}

async function readHashTile(call: Call, options: LogFileOptions): Promise<Response> {
  const level = Number(call.params["level"]);
  const { checkpoint, n, width } = rangeOf(call, options, level);
  return file(call, await options.tiles.read(checkpoint, level, n, width), immutable(options.isPublic));
}

function readEntries(call: Call, options: LogFileOptions): Response {
  return file(call, encodeEntries(recordsOf(call, options)), immutable(options.isPublic));
}

function recordsOf(call: Call, options: LogFileOptions): readonly string[] {
  const { checkpoint, n, width } = rangeOf(call, options, 0);
  return options.home.readLog(checkpoint.origin, n * TILE_WIDTH, width).map(({ rec }) => rec);
}

/** read-files.F2 */
function readPack(call: Call, options: LogFileOptions): Response {
  const keys = recordsOf(call, options).flatMap((text) => (JSON.parse(text) as { k?: string }).k ?? []);
  const contents = options.readerOf(call.peer).contentsOf(call.params["origin"]!, [...new Set(keys)]);
  const unique = new Map(contents.map((content) => [content.key, content]));
  return file(call, Buffer.from(packText([...unique.values()])), "private, no-cache");
}

/** The note in which a key hands over to the next one: that of the size of the record that names it. */
function readHandover(call: Call, { home, isPublic }: LogFileOptions): Response {
  const { origin = "", n = "" } = call.params;
  const size = path.findNumber(n) ?? 0;
  const checkpoint = home.firstCheckpointCovering(origin, size);
  if (checkpoint?.size !== size) throw notPublished(`There is no checkpoint of ${origin} with ${size} records here.`);
  return file(call, Buffer.from(checkpoint.note), immutable(isPublic));
}

function readArtifact(call: Call, { home, readerOf }: LogFileOptions): Response {
  const { origin = "", key = "" } = call.params;
  const content = home.content(key);
  // The origin decides which rule fits: it must be the one whose log names the key.
  const isNamed = content !== undefined && home.names(origin, content);
  const given = isNamed ? readerOf(call.peer).contentsOf(origin, [key]) : [];
  const found = given.find((one) => one.key === key);
  if (found === undefined) throw notPublished(`The log ${origin} has no content ${key}.`);
  return file(call, encodeArtifact(found), PRIVATE);
}

function readJournal(call: Call, { home, readerOf }: LogFileOptions): Response {
  const { origin = "", key = "" } = call.params;
  const facts = findStatement(home, origin, key);
  const lines = facts && readerOf(call.peer).journalOf(origin, facts);
  if (lines === undefined) throw notPublished(`The log ${origin} has no journal ${key}.`);
  return file(call, lines, PRIVATE);
}

const YEAR_SECONDS = 31_536_000;
const PRIVATE = `private, max-age=${YEAR_SECONDS}, immutable`;

function immutable(isPublic: boolean): string {
  return isPublic ? `public, max-age=${YEAR_SECONDS}, immutable` : PRIVATE;
}

/** A file with its version, or 304 if the reader has it. */
function file({ request }: Call, bytes: Uint8Array, cacheControl: string): Response {
  const etag = etagOf(bytes);
  if (request.headers.get("if-none-match") === etag)
    return new Response(null, { status: 304, headers: { etag, "cache-control": cacheControl } });
  return fileResponse(bytes, cacheControl, "application/octet-stream", etag);
}

function fileResponse(body: string | Uint8Array, cacheControl: string, type: string, etag = etagOf(body)): Response {
  const headers = { etag, "cache-control": cacheControl, "content-type": type, "x-content-type-options": "nosniff" };
  const length = { "content-length": String(Buffer.byteLength(body)) };
  return new Response(body as Uint8Array<ArrayBuffer>, { headers: { ...headers, ...length } });
}
