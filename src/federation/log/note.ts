// Note: a text with the signatures of one or more keys (C2SP signed-note).
//
// note.N1. The text ends with a newline. An empty line and one line per signature follow: `— <key name> <base64 of key id ‖ signature>`.
// note.N2. A reader ignores signatures of keys that it does not know: witnesses add theirs. If a known key did not sign this text, it
//   refuses the note. At least one known key must have signed it.
// note.N3. A reader refuses a note above 128 KiB: room for 16 signatures of any kind.

import { RepriseError } from "../../base/index.ts";
import type { SigningKey, VerifyingKey } from "../../receipts/index.ts";

/** note.N3 */
export const MAX_NOTE_BYTES = 128 * 1024;

const SIGNATURE = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u;
const KEY_ID_BYTES = 4;

export interface NoteSignature {
  /** The name of the key. */
  readonly name: string;
  /** `<name>+<8 hex>`, as in a vkey. */
  readonly keyId: string;
  readonly signature: Buffer;
}

export interface Note {
  /** What is signed. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** note.N1. Reads a note; checks no signature. */
export function parseNote(note: string): Note {
  if (note.length > MAX_NOTE_BYTES) throw invalid(`has more than ${MAX_NOTE_BYTES} bytes`);
  // eslint-disable-next-line no-control-regex -- the format forbids them
  if (!note.isWellFormed() || /[\0-\x09\x0b-\x1f]/.test(note)) throw invalid("has control characters");
  const end = note.lastIndexOf("\n\n");
  if (end === -1 || !note.endsWith("\n") || end + 2 === note.length) throw invalid("has no signatures");
  const lines = note.slice(end + 2, -1).split("\n");
  return { text: note.slice(0, end + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line: string): NoteSignature {
  const [, name = "", encoded = ""] = SIGNATURE.exec(line) ?? [];
  const bytes = Buffer.from(encoded, "base64");
  // Base64 with other bits behind its end decodes to the same bytes.
  if (bytes.length <= KEY_ID_BYTES || bytes.toString("base64") !== encoded)
    throw invalid(`has the line ${JSON.stringify(line.slice(0, 120))}, which is no signature`);
  const keyId = `${name}+${bytes.subarray(0, KEY_ID_BYTES).toString("hex")}`;
  return { name, keyId, signature: bytes.subarray(KEY_ID_BYTES) };
}

/** note.N2. The keys that signed the note; empty if none of them is known. */
export function findSigners(note: Note, keys: readonly VerifyingKey[]): VerifyingKey[] {
  const signers: VerifyingKey[] = [];
  for (const { keyId, signature } of note.signatures) {
    const key = keys.find(({ id }) => id === keyId);
    if (key === undefined) continue;
    if (!key.verify(note.text, signature)) throw invalid(`has a signature of ${keyId} that is not of this text`);
    signers.push(key);
  }
  return signers;
}

/** note.N1. Adds a signature line, as a witness does. */
export function cosignNote(note: string, key: SigningKey): string {
  const { text } = parseNote(note);
  const [name, digits = ""] = key.id.split("+");
  const signature = Buffer.concat([Buffer.from(digits, "hex"), key.sign(text)]);
  return `${note}— ${name} ${signature.toString("base64")}\n`;
}

export function invalid(why: string): RepriseError {
  return new RepriseError("CHECKPOINT_INVALID", `The checkpoint ${why}. Nothing of it is taken.`);
}
