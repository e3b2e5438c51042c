// Journals: the lines of runs, as in a bundle, each filed under the root of its tree.
//
// journals.J1. Lines are written only if their entries have the root that they are filed under (journal-tree.L1). A header and parts that
//   no journal holds may stand before and after them; the statement covers these, and its reader compares them.
// journals.J2. One root has two forms: with payloads (`full`), and with the leaf of each entry (`leaves`). A full journal replaces
//   leaves, and is never replaced by them.

import { RepriseError, sha256Hex, type Clock } from "../../base/index.ts";
import { journalLine, leafHash, MerkleTree, parseBundleLine } from "../../receipts/index.ts";
import { hexOf, isKey, keyBlob } from "./blobs.ts";
import { stateName, type ContentState, type PutCount } from "./contents.ts";
import { State } from "./schema.ts";
import type { Shards } from "./shards.ts";

export type JournalForm = "full" | "leaves";

/** Lines that have the root they are filed under. */
export interface CheckedJournal {
  readonly root: string;
  readonly entries: number;
  readonly form: JournalForm;
  readonly lines: Uint8Array;
}

const INSERT =
  "insert into journal (root, entries, form, size, sum, state, at, bytes) values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (root) do nothing";
const REPLACE = `update journal set form = ?, size = ?, sum = ?, state = ${State.present}, at = ?, bytes = ? where root = ?
  and (state = ${State.evicted} or (state = ${State.present} and form = 'leaves' and ? = 'full'))`;

export class Journals {
  readonly #shards: Shards;
  readonly #clock: Clock;

  constructor(shards: Shards, clock: Clock) {
    this.#shards = shards;
    this.#clock = clock;
  }

  /** The caller has checked them, and that none is erased. */
  putAll(journals: readonly CheckedJournal[]): PutCount {
    let stored = 0;
    for (const [index, group] of this.#shards.group(journals, ({ root }) => root))
      stored += this.#shards.at(index).transact(() => group.filter((journal) => this.#put(journal)).length);
    return { stored, duplicates: journals.length - stored };
  }

  /** Whether something was written. */
  #put({ root, entries, form, lines }: CheckedJournal): boolean {
    const shard = this.#shards.of(root);
    const at = this.#clock.now();
    return shard.transact(() => {
      const blob = keyBlob(root);
      const sum = keyBlob(sha256Hex(lines));
      if (shard.run(INSERT, ...[blob, entries, form, lines.length, sum, State.present, at, lines]) === 1) return true;
      return shard.run(REPLACE, ...[form, lines.length, sum, at, lines, blob, form]) === 1;
    });
  }

  /** Lines that have changed on the disk are not returned: they are evicted, so that they can be had again. */
  find(root: string): Uint8Array | undefined {
    if (!isKey(root)) return undefined;
    const shard = this.#shards.of(root);
    const row = shard.get("select sum, bytes from journal where root = ? and state = 0", keyBlob(root));
    if (row === undefined) return undefined;
    const bytes = row["bytes"] as Uint8Array;
    if (sha256Hex(bytes) === hexOf(row["sum"])) return bytes;
    shard.run(`update journal set state = ${State.evicted}, bytes = null where root = ?`, keyBlob(root));
    return undefined;
  }

  describe(
    root: string,
  ):
    | { readonly entries: number; readonly form: JournalForm; readonly size: number; readonly state: ContentState }
    | undefined {
    if (!isKey(root)) return undefined;
    const row = this.#shards
      .of(root)
      .get("select entries, form, size, state from journal where root = ?", keyBlob(root));
    if (row === undefined) return undefined;
    const { entries, form, size, state } = row;
    return { entries: Number(entries), form: form as JournalForm, size: Number(size), state: stateName(state) };
  }
}

/** journals.J1 */
export function checkJournal(root: string, lines: Uint8Array): CheckedJournal {
  const tree = new MerkleTree();
  let form: JournalForm | undefined;
  let number = 0;
  for (const line of linesOf(lines, root)) {
    number += 1;
    const first = line.charCodeAt(0);
    // Most lines are entries or leaves.
    const parsed = parse(line, number, root);
    if (parsed.line !== "entry" && parsed.line !== "leaf") {
      if (parsed.line === "header" ? number > 1 : parsed.line !== "part")
        throw damaged(root, `has a strange line ${number}`);
      continue;
    }
    const lineForm = first === BRACKET ? "full" : "leaves";
    const seq = parsed.line === "entry" ? parsed.entry.seq : parsed.seq;
    if (seq !== tree.size + 1 || (form ?? lineForm) !== lineForm)
      throw damaged(root, `has line ${number} out of order`);
    form = lineForm;
    tree.push(leafHash(parsed.line === "entry" ? journalLine(parsed.entry) : line));
  }
  if (tree.root() !== root) throw damaged(root, `has entries with the root ${tree.root()}`);
  return { root, entries: tree.size, form: form ?? "full", lines };
}

const NEWLINE = 10;
const BRACKET = 0x5b;

function* linesOf(file: Uint8Array, root: string): Generator<string> {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, from);
    if (end === -1) throw damaged(root, "is cut off: its last line has no end");
    yield bytes.toString("utf8", from, end);
    from = end + 1;
  }
}

function parse(line: string, number: number, root: string): ReturnType<typeof parseBundleLine> {
  try {
    return parseBundleLine(line, number);
  } catch (cause) {
    throw damaged(root, `has a line ${number} that is no line of a journal`, cause);
  }
}

function damaged(root: string, why: string, cause?: unknown): RepriseError {
  return new RepriseError("CONTENT_DAMAGED", `The journal ${root} ${why}. It is not taken.`, {
    details: { root },
    ...(cause !== undefined && { cause }),
  });
}
