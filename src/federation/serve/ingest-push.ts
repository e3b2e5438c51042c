// Ingest push: gives the staged files under a checkpoint to the home.
//
// ingest-push.I1. Nothing reaches the home before every record from its end up to the checkpoint is staged. A push of several batches is
//   also compared with the root that the checkpoint says, before its first batch: its end being damaged leaves the home as it was.
// ingest-push.I2. Batches are as large as the home takes at once, and end at a key record (key-history.H2). Contents go before the records
//   that name them. Records become visible with the batch that reaches their checkpoint (ingest.I3).
// ingest-push.I3. The memory of a push is that of one batch: staged files are read one by one.
// ingest-push.I4. A journal is compared with the statement that names it, as in a pull (journal-file.J3): its root covers the entries
//   alone, and a relay could change the rest. One that no statement names is left out.

import { isErrorCode, RepriseError } from "../../base/index.ts";
import { leafHash, MerkleTree, type Predicate } from "../../receipts/index.ts";
import type { Batch } from "../home/ingest.ts";
import { parseCheckpoint, type Checkpoint } from "../log/checkpoint.ts";
import { decodeArtifact, type Content } from "../log/content.ts";
import { parsePack } from "../log/pack.ts";
import { decodeEntries, handoverPath, packPath, TILE_WIDTH, tilePath } from "../log/tiles.ts";
import { checkJournalFile } from "../sync/journal-file.ts";
import { statementFacts } from "../sync/publish.ts";
import { predicateOf } from "../sync/pull-contents.ts";
import { findStatementOf } from "./find-statement.ts";
import type { HashTiles } from "./hash-tiles.ts";
import type { ServeHome } from "./serve-home.ts";
import type { StagedFiles } from "./staged-files.ts";

export interface PushedCheckpoint {
  readonly home: ServeHome;
  readonly staged: StagedFiles;
  readonly tiles: HashTiles;
  readonly peer: string;
  /** What its note says; the home checks the signature. */
  readonly checkpoint: Checkpoint;
}

/** Records of a tile that the home lacks. */
export interface StagedTile {
  readonly n: number;
  /** The width in the path of the staged file. */
  readonly width: number;
  /** The records to take: from `first` (counted from 0) up to `end`. */
  readonly first: number;
  readonly end: number;
}

const BATCH_RECORDS = 4_096;
const BATCH_BYTES = 8 * 1_024 * 1_024;

/** ingest-push.I1. Throws with the code of the refusal. */
export async function ingestPush(push: PushedCheckpoint, staged: readonly StagedTile[]): Promise<void> {
  const { home, checkpoint } = push;
  const head = home.checkpoint(checkpoint.origin);
  if (checkpoint.size - (head?.size ?? 0) > BATCH_RECORDS) await checkRoot(push, head, staged);
  const batch = new PushBatch(push);
  const statements = statementsIn(push, staged);
  for (const path of push.staged.list(push.peer, checkpoint.origin)) addLarge(push, path, batch, statements);
  for (const tile of staged) {
    for (const content of packOf(push, tile)) batch.addContent(content);
    for (const record of recordsOf(push, tile)) {
      batch.addRecord(record);
      // key-history.H2
      if (record.includes('"op":"key"')) batch.flush(findHandover(push, record) ?? checkpoint);
    }
  }
  batch.flush(checkpoint);
}

/** The staged tiles from the end of the home to the checkpoint; refuses a gap. */
export function findTiles({ home, staged, peer, checkpoint }: PushedCheckpoint): readonly StagedTile[] {
  const { origin } = checkpoint;
  const size = home.checkpoint(origin)?.size ?? 0;
  const paths = new Set(staged.list(peer, origin));
  const tiles: StagedTile[] = [];
  for (let n = Math.floor(size / TILE_WIDTH); n * TILE_WIDTH < checkpoint.size; n += 1) {
    const end = Math.min(TILE_WIDTH, checkpoint.size - n * TILE_WIDTH);
    const first = Math.max(0, size - n * TILE_WIDTH);
    if (first >= end) continue;
    let width = end;
    while (width <= TILE_WIDTH && !paths.has(tilePath("entries", n, width))) width += 1;
    if (width > TILE_WIDTH)
      throw new RepriseError(
        "OUTDATED_CURSOR",
        `${tilePath("entries", n, end)} of ${origin} is missing: this site has ${size} records and needs every record up to ${checkpoint.size}. Upload it, then the checkpoint again.`,
      );
    tiles.push({ n, width, first, end });
  }
  return tiles;
}

function* recordsOf({ staged, peer, checkpoint }: PushedCheckpoint, tile: StagedTile): Generator<string> {
  const path = tilePath("entries", tile.n, tile.width);
  const bytes = staged.read({ peer, origin: checkpoint.origin, path }) ?? new Uint8Array();
  yield* decodeEntries(bytes).slice(tile.first, tile.end);
}

/** The staged contents of a tile; the pack may be of any width that covers some of its records. */
function* packOf({ staged, peer, checkpoint: { origin } }: PushedCheckpoint, tile: StagedTile): Generator<Content> {
  for (let width = tile.first + 1; width <= TILE_WIDTH; width += 1) {
    const bytes = staged.read({ peer, origin, path: packPath(tile.n, width) });
    if (bytes !== undefined) yield* parsePack(Buffer.from(bytes).toString("utf8"));
  }
}

/** ingest-push.I1 */
async function checkRoot(
  push: PushedCheckpoint,
  head: Checkpoint | undefined,
  tiles: readonly StagedTile[],
): Promise<void> {
  const { origin, root } = push.checkpoint;
  const tree = head === undefined ? new MerkleTree() : await push.tiles.tree(head);
  for (const tile of tiles) for (const record of recordsOf(push, tile)) tree.push(leafHash(record));
  if (tree.rootHash().toString("base64") === root) return;
  throw new RepriseError(
    "LOG_FILE_DAMAGED",
    `The records of ${origin} have the root ${tree.rootHash().toString("base64")} at ${tree.size}; the checkpoint says ${root}. Nothing was taken.`,
  );
}

/** The note of the key before, of the size of the record that names the next key. */
function findHandover(
  { staged, peer, checkpoint: { origin } }: PushedCheckpoint,
  record: string,
): Checkpoint | undefined {
  const { n } = JSON.parse(record) as { readonly n: number };
  const bytes = Number.isSafeInteger(n) ? staged.read({ peer, origin, path: handoverPath(n) }) : undefined;
  return bytes === undefined ? undefined : parseCheckpoint(Buffer.from(bytes).toString("utf8"));
}

/** ingest-push.I4. By the roots of their journals: the statements that are staged. */
function statementsIn(push: PushedCheckpoint, tiles: readonly StagedTile[]): ReadonlyMap<string, Predicate> {
  const { staged, peer, checkpoint } = push;
  const { origin } = checkpoint;
  const found = new Map<string, Predicate>();
  const paths = staged.list(peer, origin);
  if (!paths.some((path) => path.startsWith("journal/"))) return found;
  const add = (content: Content): void => {
    const facts = statementFacts(content);
    if (facts !== undefined) found.set(facts.journal.root, predicateOf(content));
  };
  for (const tile of tiles) for (const content of packOf(push, tile)) add(content);
  for (const path of paths.filter((one) => one.startsWith("artifact/"))) {
    const bytes = staged.read({ peer, origin, path });
    if (bytes !== undefined) add(decodeArtifact(bytes, path.split("/")[2]!));
  }
  return found;
}

function addLarge(
  { home, staged, peer, checkpoint: { origin } }: PushedCheckpoint,
  path: string,
  batch: PushBatch,
  statements: ReadonlyMap<string, Predicate>,
): void {
  const [folder, , key = ""] = path.split("/");
  if (folder !== "artifact" && folder !== "journal") return;
  const bytes = staged.read({ peer, origin, path });
  if (bytes === undefined) return;
  if (folder === "artifact") batch.addContent(decodeArtifact(bytes, key));
  else {
    const known = statements.has(key) ? undefined : findStatementOf(home, origin, key, bytes);
    const said = statements.get(key) ?? (known && predicateOf(known));
    if (said === undefined) return;
    checkJournalFile(bytes, said);
    batch.addJournal(key, bytes);
  }
}

/** ingest-push.I2. Collects a batch, and gives it to the home when it is full. */
class PushBatch {
  readonly #push: PushedCheckpoint;
  #records: string[] = [];
  #contents: Content[] = [];
  #journals: { root: string; lines: Uint8Array }[] = [];
  #bytes = 0;

  constructor(push: PushedCheckpoint) {
    this.#push = push;
  }

  addRecord(record: string): void {
    this.#makeRoom(record.length);
    this.#records.push(record);
  }

  addContent(content: Content): void {
    this.#makeRoom(content.bytes.length);
    this.#contents.push(content);
  }

  addJournal(root: string, lines: Uint8Array): void {
    this.#makeRoom(lines.length);
    this.#journals.push({ root, lines });
  }

  #makeRoom(bytes: number): void {
    if (this.#records.length === BATCH_RECORDS || (this.#bytes > 0 && this.#bytes + bytes > BATCH_BYTES))
      this.flush(this.#push.checkpoint);
    this.#bytes += bytes;
  }

  flush(checkpoint: Checkpoint): void {
    const { home, peer } = this.#push;
    const batch: Batch = {
      origin: this.#push.checkpoint.origin,
      records: this.#records,
      checkpoint,
      contents: this.#contents,
      journals: this.#journals,
      from: peer,
    };
    [this.#records, this.#contents, this.#journals, this.#bytes] = [[], [], [], 0];
    const outcome = home.ingest(batch);
    if (outcome.status === "refused")
      throw new RepriseError(isErrorCode(outcome.code) ? outcome.code : "RECORD_INVALID", outcome.reason);
    if (outcome.status === "forked")
      throw new RepriseError(
        "FORKED",
        `The log ${batch.origin} has two branches after record ${outcome.at}: nothing after it is taken. \`reprise fed conflicts\` has the evidence.`,
      );
  }
}
