// Pull contents: what a pull takes beside records: packs, large contents, journals.
//
// pull-contents.C1. Of a pack only the contents that records of its tile name are taken, and what their statements name: the claim, the
//   run record and the journal. A peer cannot fill a home with contents that no record asks for.
// pull-contents.C2. What the home has is not fetched again, and what is erased here is not taken.
// pull-contents.C3. A journal is compared with its statement before the home gets it (journal-file.J3).

import { RepriseError } from "../../base/index.ts";
import { parseStatement, type Predicate } from "../../receipts/index.ts";
import type { Carrier } from "../../carriers/index.ts";
import { RUN_TYPE, STATEMENT_TYPE } from "../home/facts.ts";
import type { Home } from "../home/home.ts";
import { decodeArtifact, type Content, type ContentHead } from "../log/content.ts";
import type { Origin } from "../log/origin.ts";
import { parsePackLines } from "../log/pack.ts";
import { membersOf } from "../log/record.ts";
import { artifactPath, journalPath, packPath, TILE_WIDTH } from "../log/tiles.ts";
import { FILLED_PATH, parseFilled } from "./filled.ts";
import { checkJournalFile, hasPayloads } from "./journal-file.ts";
import { readRecords } from "./tile-files.ts";
import { statementFacts, type StatementFacts } from "./publish.ts";
import type { SyncState } from "./sync-state.ts";

export interface Wanted {
  /** Which journals are fetched with their statements. Default: none. */
  readonly journals?: "all" | "none" | ((run: StatementFacts) => boolean);
}

const MAX_PACK_BYTES = 64 * 1024 * 1024;
const MAX_ARTIFACT_BYTES = 16 * 1024 * 1024 + 1_024;
const MAX_JOURNAL_BYTES = 256 * 1024 * 1024;

export interface FetchedJournal {
  readonly root: string;
  readonly lines: Uint8Array;
}

/** Reads what goes with the records of one batch. */
export class PackReader {
  readonly #home: Home;
  readonly #carrier: Carrier;
  readonly #origin: Origin;
  readonly #wanted: Wanted;
  readonly contents: Content[] = [];
  readonly journals: FetchedJournal[] = [];
  /** Of contents and journals so far. */
  bytes = 0;

  constructor(home: Home, carrier: Carrier, origin: Origin, wanted: Wanted) {
    this.#home = home;
    this.#carrier = carrier;
    this.#origin = origin;
    this.#wanted = wanted;
  }

  /** The contents of these records, which are of the tile, in a log of `size`. */
  async read(tile: number, size: number, records: readonly string[]): Promise<void> {
    const keys = new Set(records.map((text) => membersOf(text)["k"]).filter((key) => typeof key === "string"));
    if (keys.size === 0) return;
    const lines = await this.#readPack(tile, size);
    const wanted = wantedOf(lines, keys);
    const known = this.#home.hasContents(wanted);
    for (const line of lines) {
      const key = "bytes" in line ? line.key : line.k;
      if (!wanted.has(key) || known.has(key)) continue;
      known.add(key);
      const content = "bytes" in line ? line : await this.#readArtifact(key);
      if (content === undefined) continue;
      this.contents.push(content);
      this.bytes += content.bytes.length;
    }
    for (const line of lines) if ("bytes" in line && wanted.has(line.key)) await this.readJournal(line);
  }

  async #readPack(tile: number, size: number): Promise<readonly (Content | ContentHead)[]> {
    const width = Math.min(TILE_WIDTH, size - tile * TILE_WIDTH);
    const path = (wide: number): string => `${this.#origin}/${packPath(tile, wide)}`;
    let file = await this.#carrier.get(path(width), { maxBytes: MAX_PACK_BYTES });
    if (file === undefined && width < TILE_WIDTH)
      file = await this.#carrier.get(path(TILE_WIDTH), { maxBytes: MAX_PACK_BYTES });
    if (file === undefined || file === "unchanged") return [];
    return parsePackLines(Buffer.from(file.bytes).toString("utf8"));
  }

  async #readArtifact(key: string): Promise<Content | undefined> {
    const file = await this.#carrier.get(`${this.#origin}/${artifactPath(key)}`, { maxBytes: MAX_ARTIFACT_BYTES });
    return file === undefined || file === "unchanged" ? undefined : decodeArtifact(file.bytes, key);
  }

  /** The journal of a statement, if it is wanted and not here. */
  async readJournal(statement: Content): Promise<void> {
    const { journals = "none" } = this.#wanted;
    const facts = journals === "none" ? undefined : statementFacts(statement);
    if (facts === undefined || (typeof journals === "function" && !journals(facts))) return;
    const { root } = facts.journal;
    const known = this.#home.journal(root);
    // A journal without payloads is asked for again: a rule may give more by now. A blind one never has more.
    if (known !== undefined && (hasPayloads(known) || predicateOf(statement).blind === true)) return;
    if (this.journals.some((one) => one.root === root)) return;
    const path = `${this.#origin}/${journalPath(root)}`;
    const file = await this.#carrier.get(path, { maxBytes: MAX_JOURNAL_BYTES });
    if (file === undefined || file === "unchanged") return;
    checkJournalFile(file.bytes, predicateOf(statement));
    if (known !== undefined && !hasPayloads(file.bytes)) return;
    this.journals.push({ root, lines: file.bytes });
    this.bytes += file.bytes.length;
  }
}

/** The predicate of a content that is a statement. */
export function predicateOf({ key, bytes }: Content): Predicate {
  const statement = parseStatement(Buffer.from(bytes).toString("utf8"));
  if (statement !== undefined) return statement.predicate;
  throw new RepriseError("CONTENT_DAMAGED", `The content ${key} is no statement of a run.`, { details: { key } });
}

/** pull-contents.C1 */
function wantedOf(lines: readonly (Content | ContentHead)[], keys: ReadonlySet<string>): Set<string> {
  const wanted = new Set(keys);
  const runs = new Set<string>();
  for (const line of lines) {
    if (!("bytes" in line) || line.type !== STATEMENT_TYPE || !keys.has(line.key)) continue;
    const facts = statementFacts(line);
    if (facts === undefined) continue;
    wanted.add(facts.claim);
    runs.add(runName(facts.run, facts.generation, facts.chain));
  }
  for (const line of lines)
    if ("bytes" in line && line.type === RUN_TYPE && runs.has(runOf(line))) wanted.add(line.key);
  return wanted;
}

function runOf({ bytes }: Content): string {
  try {
    const { id, generation, chain } = JSON.parse(Buffer.from(bytes).toString("utf8")) as Record<string, unknown>;
    return runName(String(id), Number(generation), String(chain));
  } catch {
    return "";
  }
}

function runName(run: string, generation: number, chain: string): string {
  return `${generation} ${chain} ${run}`;
}

export interface FillOptions extends Wanted {
  readonly fill?: boolean;
  readonly from?: string;
  readonly state?: SyncState | undefined;
}

/** How many tiles a fill reads of a carrier that does not say which packs have changed. */
const MAX_TILES = 64;

/** Contents that were published after their records. */
export async function fillContents(
  home: Home,
  carrier: Carrier,
  origin: Origin,
  options: FillOptions,
): Promise<{ readonly contents: number; readonly journals: number }> {
  const checkpoint = home.checkpoint(origin);
  const none = { contents: 0, journals: 0 };
  if (checkpoint === undefined) return none;
  const name = `filled ${origin} ${carrier.url}`;
  const file = await carrier.get(`${origin}/${FILLED_PATH}`);
  const text = file === undefined || file === "unchanged" ? undefined : Buffer.from(file.bytes).toString("utf8");
  if (text === undefined ? options.fill !== true : text === options.state?.get(name)) return none;
  const seen = parseFilled(Buffer.from(options.state?.get(name) ?? ""));
  const counts = parseFilled(text === undefined ? undefined : Buffer.from(text));
  const tiles =
    text === undefined
      ? missingTiles(home, origin)
      : [...counts].flatMap(([tile, count]) => (seen.get(tile) === count ? [] : tile));
  let [contents, journals] = [0, 0];
  for (const tile of tiles) {
    const from = tile * TILE_WIDTH;
    if (from >= checkpoint.size) continue;
    const upTo = Math.min(from + TILE_WIDTH, checkpoint.size);
    const reader = new PackReader(home, carrier, origin, options);
    const records = [...readRecords(home, origin, from, upTo)].map(({ rec }) => rec);
    await reader.read(tile, checkpoint.size, records);
    const outcome = home.ingest({
      origin,
      records: [],
      checkpoint,
      contents: reader.contents,
      journals: reader.journals,
      ...(options.from !== undefined && { from: options.from }),
    });
    if (outcome.status !== "ingested") continue;
    contents += reader.contents.length;
    journals += reader.journals.length;
  }
  if (text !== undefined) options.state?.set(name, text);
  return { contents, journals };
}

/** The tiles with records whose contents are not here, newest first. */
function missingTiles(home: Home, origin: Origin): readonly number[] {
  const tiles = new Set(home.missingRecords(origin).map((n) => Math.floor((n - 1) / TILE_WIDTH)));
  return [...tiles].slice(0, MAX_TILES);
}
