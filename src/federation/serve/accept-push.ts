// Accept push: uploads of another site, and the checkpoint that makes them part of the home.
//
// accept-push.U1. Files come first and are staged: no reader sees them (staged-files.S1). The checkpoint comes last. If it is of an admitted
//   key, extends what the home has, and every record up to it is staged, the home ingests all of it; otherwise the home is as before.
// accept-push.U2. `If-None-Match: *` on a file: 412 if the home has it or the peer has staged it. `If-Match` on the checkpoint: 412 with
//   OUTDATED_CURSOR if the home has another one by now.
// accept-push.U3. The server computes hash tiles itself, so it takes the hash tiles of a push without keeping them.
// accept-push.U4. After a checkpoint was taken, or refused for what was staged, the staged files of that peer and origin are deleted: a
//   damaged upload never stands in the way of the next one.
// accept-push.U5. Contents for records that the home has already are not staged: the home takes those that it is missing.

import { RepriseError } from "../../base/index.ts";
import { checkDepth, type BodyLimit } from "../../http/index.ts";
import { parseCheckpoint } from "../log/checkpoint.ts";
import { decodeArtifact } from "../log/content.ts";
import { parsePack } from "../log/pack.ts";
import { decodeEntries, decodeTile, TILE_WIDTH } from "../log/tiles.ts";
import type { ChangeFeed } from "./change-feed.ts";
import { fillContents, fillJournal } from "./fill-contents.ts";
import { checkpointEtag, etagOf } from "./read-files.ts";
import * as path from "./log-path.ts";
import { findTiles, ingestPush } from "./ingest-push.ts";
import type { HashTiles } from "./hash-tiles.ts";
import type { Call, Route } from "./route.ts";
import type { ServeHome } from "./serve-home.ts";
import type { ServeLimits } from "./serve-limits.ts";
import type { StagedFiles } from "./staged-files.ts";

export interface PushOptions {
  readonly home: ServeHome;
  readonly staged: StagedFiles;
  readonly tiles: HashTiles;
  readonly feed: ChangeFeed;
  readonly limits: ServeLimits;
}

const NOTE_BYTES = 64 * 1_024;

/** The routes that write files of logs. */
export function pushRoutes(options: PushOptions): readonly Route[] {
  const { limits } = options;
  const entryBytes = TILE_WIDTH * (limits.recordBytes + 2);
  const route = (
    pattern: RegExp,
    body: BodyLimit,
    take: (upload: Upload, options: PushOptions) => Response | Promise<Response>,
  ): Route => ({
    method: "PUT",
    path: pattern,
    access: "pusher",
    body,
    handle: (call) => {
      checkAdmitted(call, options);
      return call.body((bytes) => take({ call, bytes }, options));
    },
  });
  return [
    route(path.HASH_TILE, { name: "recordBytes", bytes: TILE_WIDTH * 32 }, takeHashTile),
    route(path.ENTRY_TILE, { name: "recordBytes", bytes: entryBytes }, takeEntries),
    route(path.PACK, { name: "packBytes", bytes: limits.packBytes }, takePack),
    route(path.HANDOVER, { name: "recordBytes", bytes: NOTE_BYTES }, takeHandover),
    route(path.ARTIFACT, { name: "artifactBytes", bytes: limits.artifactBytes + 1_024 }, takeArtifact),
    route(path.JOURNAL, { name: "journalBytes", bytes: limits.journalBytes }, takeJournal),
    // Says which packs of a static carrier changed. Here they are in the home already.
    route(path.FILLED, { name: "packBytes", bytes: limits.packBytes }, ({ bytes }) => stored(bytes)),
    route(path.CHECKPOINT, { name: "recordBytes", bytes: NOTE_BYTES }, takeCheckpoint),
  ];
}

interface Upload {
  readonly call: Call;
  readonly bytes: Uint8Array;
}

/** Before the body is read: an origin that is not admitted takes no space. */
function checkAdmitted({ params, request }: Call, { home }: PushOptions): void {
  const origin = params["origin"]!;
  if (home.origin(origin) === undefined)
    throw new RepriseError(
      "NOT_ADMITTED",
      `${origin} is not admitted at this site: nothing of its log is taken. Its operator admits it: \`reprise peer add <name> --key <vkey>\`.`,
    );
  if (request.headers.get("if-none-match") !== "*" && request.headers.get("if-match") === null)
    throw new RepriseError("BAD_FORMAT", "An upload needs a condition: `If-None-Match: *` or `If-Match: <etag>`.", {
      details: { status: 428 },
    });
}

/** accept-push.U3 */
function takeHashTile({ call, bytes }: Upload): Response {
  decodeTile(bytes, widthOf(call));
  return stored(bytes);
}

function takeEntries(upload: Upload, options: PushOptions): Response {
  const { call, bytes } = upload;
  const width = widthOf(call);
  const { length } = decodeEntries(bytes);
  if (length !== width)
    throw new RepriseError("LOG_FILE_DAMAGED", `The entry bundle has ${length} records; its path says ${width}.`);
  return isInHome(call, width, options) ? alreadyThere() : stage(upload, options);
}

/** accept-push.U5 */
function takePack(upload: Upload, options: PushOptions): Response {
  const { call, bytes } = upload;
  checkDepth(bytes, options.limits.depth);
  const contents = parsePack(Buffer.from(bytes).toString("utf8"));
  if (!isInHome(call, widthOf(call), options)) return stage(upload, options, { replace: true });
  fillContents(options.home, call.params["origin"]!, contents, call.peer!.name);
  return stored(bytes);
}

function takeArtifact(upload: Upload, options: PushOptions): Response {
  const { origin = "", key = "" } = upload.call.params;
  const content = decodeArtifact(upload.bytes, key);
  if (options.home.hasContents([key]).has(key)) return alreadyThere();
  if (fillContents(options.home, origin, [content], upload.call.peer!.name) > 0) return stored(upload.bytes);
  return stage(upload, options);
}

function takeJournal(upload: Upload, options: PushOptions): Response {
  const { origin = "", key = "" } = upload.call.params;
  if (fillJournal(options.home, origin, key, upload.bytes, upload.call.peer!.name)) return stored(upload.bytes);
  return stage(upload, options, { replace: true });
}

function takeHandover(upload: Upload, options: PushOptions): Response {
  const { origin = "", n = "" } = upload.call.params;
  const { size } = parseCheckpoint(Buffer.from(upload.bytes).toString("utf8"));
  if (size !== path.findNumber(n))
    throw new RepriseError("CHECKPOINT_INVALID", `The checkpoint has ${size} records; its path says ${n}.`);
  if ((options.home.checkpoint(origin)?.size ?? 0) >= size) return alreadyThere();
  return stage(upload, options);
}

/** accept-push.U1, accept-push.U2 */
async function takeCheckpoint({ call, bytes }: Upload, options: PushOptions): Promise<Response> {
  const { home, staged, feed } = options;
  const origin = call.params["origin"]!;
  const peer = call.peer!.name;
  const note = parseCheckpoint(Buffer.from(bytes).toString("utf8"));
  if (note.origin !== origin)
    throw new RepriseError("CHECKPOINT_INVALID", `The checkpoint is of ${note.origin}; its path says ${origin}.`);
  checkCurrent(call, options);
  const push = { ...options, peer, checkpoint: note };
  // A gap leaves everything staged: the file that is missing can be uploaded now.
  const files = findTiles(push);
  try {
    await ingestPush(push, files);
  } finally {
    // accept-push.U4
    staged.remove(peer, origin);
  }
  const now = home.checkpoint(origin);
  // An older head of the same log: the ingest has compared it.
  if (now === undefined || now.size > note.size) throw outdated(origin, now?.size ?? 0);
  feed.notify();
  return new Response(null, { status: 200, headers: { etag: checkpointEtag(now) } });
}

function checkCurrent({ request, params }: Call, { home }: PushOptions): void {
  const now = home.checkpoint(params["origin"]!);
  const expected = request.headers.get("if-match");
  if (expected === null ? now === undefined : now !== undefined && checkpointEtag(now) === expected) return;
  throw outdated(params["origin"]!, now?.size ?? 0);
}

function outdated(origin: string, size: number): RepriseError {
  return new RepriseError(
    "OUTDATED_CURSOR",
    `This site has ${size} records of ${origin} by now. Read its checkpoint, and push what follows.`,
    { details: { status: 412 } },
  );
}

/** Whether every record of the tile is in the home. */
function isInHome({ params }: Call, width: number, { home }: PushOptions): boolean {
  return numberOf(params) * TILE_WIDTH + width <= (home.checkpoint(params["origin"]!)?.size ?? 0);
}

function numberOf({ n = "" }: Call["params"]): number {
  const number = path.findNumber(n);
  if (number === undefined) throw new RepriseError("BAD_FORMAT", `${n} is not the number of a tile.`);
  return number;
}

function widthOf({ params }: Call): number {
  const width = path.findWidth(params["width"]);
  if (width === undefined) throw new RepriseError("BAD_FORMAT", "A partial tile has 1 to 255 entries.");
  return width;
}

function stage({ call, bytes }: Upload, { staged }: PushOptions, how: { readonly replace?: boolean } = {}): Response {
  const { origin = "", path: name = "" } = call.params;
  const place = { peer: call.peer!.name, origin, path: name };
  return staged.put(place, bytes, how.replace === true) ? stored(bytes) : alreadyThere();
}

function stored(bytes: Uint8Array): Response {
  return new Response(null, { status: 201, headers: { etag: etagOf(bytes) } });
}

function alreadyThere(): Response {
  return Response.json({ code: "OUTDATED_CURSOR", message: "The file is there already." }, { status: 412 });
}
