// Journal file: everything of a run that its statement covers and its log does not hold, as one file under the root of its journal.
//
// journal-file.J1. The lines are those of a bundle: the header with the run's row, a line per entry, and the parts that no journal holds.
//   So a bundle can be made of it with the statement, the claim and the run record.
// journal-file.J2. Without payloads a line is the leaf of its entry, and there are no parts. Both forms have the same root.
// journal-file.J3. The root is that of the entries. Header and parts are compared with the statement: a file is taken only with one.

import { RepriseError, sha256Hex } from "../../base/index.ts";
import {
  headerLine,
  journalLine,
  leafHash,
  MerkleTree,
  parseBundleLine,
  type BundleForm,
  type BundleHeader,
  type Predicate,
} from "../../receipts/index.ts";

/** The lines of a file, each without its end. */
function* linesOf(file: Uint8Array): Generator<string> {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(10, from);
    if (end === -1) throw damaged("is cut off: its last line has no end");
    yield bytes.toString("utf8", from, end);
    from = end + 1;
  }
}

/** The file of these lines. */
export function journalFile(lines: readonly string[]): Uint8Array {
  return Buffer.from(lines.map((line) => `${line}\n`).join(""));
}

/** journal-file.J2. The file without payloads: itself if it has none. */
export function leafLinesOf(file: Uint8Array): Uint8Array {
  if (!hasPayloads(file)) return file;
  const lines: string[] = [];
  let number = 0;
  for (const line of linesOf(file)) {
    const parsed = parseBundleLine(line, (number += 1));
    if (parsed.line === "header") lines.push(line);
    else if (parsed.line === "entry") lines.push(journalLine(parsed.entry));
  }
  return journalFile(lines);
}

/** Whether the file has the data of entries. */
export function hasPayloads(file: Uint8Array): boolean {
  for (const line of linesOf(file)) if (!line.startsWith('{"form":')) return line.startsWith("[");
  return false;
}

/** What a file holds, compared with the statement (journal-file.J3). */
export interface CheckedJournal {
  readonly header: BundleHeader;
  /** The form of a bundle that is made of it. */
  readonly form: BundleForm;
  readonly root: string;
}

/** journal-file.J3. Refuses with CONTENT_DAMAGED a file that the statement does not cover. */
export function checkJournalFile(file: Uint8Array, said: Predicate): CheckedJournal {
  const tree = new MerkleTree();
  const parts: Record<string, MerkleTree> = {};
  let header: BundleHeader | undefined;
  let form: BundleForm = said.blind === true ? "blind" : "hash-only";
  let number = 0;
  for (const line of linesOf(file)) {
    const parsed = parseLine(line, (number += 1));
    if (parsed.line === "header" && number === 1) ({ header } = parsed);
    else if (parsed.line === "entry" && parsed.entry.seq === tree.size + 1) {
      form = "full";
      tree.push(leafHash(journalLine(parsed.entry)));
    } else if (parsed.line === "leaf" && parsed.seq === tree.size + 1 && form !== "full") tree.push(leafHash(line));
    else if (parsed.line === "part" && form === "full")
      (parts[parsed.part] ??= new MerkleTree()).push(leafHash(parsed.text));
    else throw damaged(`has a line ${number} that is not in its place`);
  }
  if (header === undefined) throw damaged("has no header");
  if (sha256Hex(headerLine(header.form, header.run)) !== said.row) throw damaged("has the row of another statement");
  if (tree.size !== said.journal.size || tree.root() !== said.journal.root)
    throw damaged(`has ${tree.size} entries with the root ${tree.root()}; the statement says ${said.journal.root}`);
  if (form === "full")
    for (const part of ["uses", "evidence", "attempts"] as const) {
      const [has, should] = [parts[part], said[part]];
      if ((has?.size ?? 0) !== (should?.size ?? 0) || (has !== undefined && has.root() !== should?.root))
        throw damaged(`has other ${part} than the statement`);
    }
  return { header, form, root: tree.root() };
}

function parseLine(line: string, number: number): ReturnType<typeof parseBundleLine> {
  try {
    return parseBundleLine(line, number);
  } catch (cause) {
    throw damaged(`has a line ${number} that is no line of a journal`, cause);
  }
}

function damaged(why: string, cause?: unknown): RepriseError {
  return new RepriseError("CONTENT_DAMAGED", `A journal file ${why}. It is not taken.`, {
    ...(cause !== undefined && { cause }),
  });
}
