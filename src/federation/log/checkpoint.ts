// Checkpoint: the signed head of a log (C2SP tlog-checkpoint).
//
// checkpoint.L1. Three lines: origin, size in decimal, root in base64. The note is kept and handed on as it came.
// checkpoint.L2. The key of the origin must sign, not just any known key: a site speaks for its own log only.
// checkpoint.L3. Opening checks the signature. The root is checked by who holds the records: it computes the root itself.

import { RepriseError } from "../../base/index.ts";
import { signNote, type SigningKey, type VerifyingKey } from "../../receipts/index.ts";
import { findSigners, invalid, parseNote, type Note } from "./note.ts";
import { isOrigin, type Origin } from "./origin.ts";

export interface Checkpoint {
  readonly origin: Origin;
  readonly size: number;
  /** In base64. */
  readonly root: string;
  /** The signed note, as it came. */
  readonly note: string;
}

const SIZE = /^(?:0|[1-9][0-9]{0,15})$/;
const ROOT_BYTES = 32;

/** checkpoint.L1. The key signs under the name of the origin, whichever epoch that is. */
export function signCheckpoint(key: SigningKey, origin: Origin, size: number, root: Buffer): Checkpoint {
  const encoded = root.toString("base64");
  const note = signNote(`${origin}\n${size}\n${encoded}\n`, key.forOrigin(origin));
  return { origin, size, root: encoded, note };
}

/** What a note says, before its signatures are checked: to find the key that must have signed it. */
export function parseCheckpoint(text: string): Checkpoint {
  return read(text, parseNote(text));
}

function read(text: string, note: Note): Checkpoint {
  const [origin = "", digits = "", root = "", end, ...more] = note.text.split("\n");
  if (end !== "" || more.length > 0) throw invalid("has not exactly three lines");
  if (!isOrigin(origin)) throw invalid(`names ${JSON.stringify(origin.slice(0, 120))}, which is no origin`);
  const size = Number(digits);
  if (!SIZE.test(digits) || !Number.isSafeInteger(size))
    throw invalid(`has the size ${JSON.stringify(digits.slice(0, 40))}`);
  const bytes = Buffer.from(root, "base64");
  if (bytes.length !== ROOT_BYTES || bytes.toString("base64") !== root)
    throw invalid(`has the root ${JSON.stringify(root.slice(0, 80))}, which is not the base64 of 32 bytes`);
  return { origin, size, root, note: text };
}

/** The checkpoint of a note that one of these keys signed for its own log. */
export function openCheckpoint(text: string, keys: readonly VerifyingKey[]): Checkpoint {
  const note = parseNote(text);
  const checkpoint = read(text, note);
  const { origin, size } = checkpoint;
  // checkpoint.L2
  const own = keys.filter((key) => key.origin === origin);
  if (findSigners(note, own).length > 0) return checkpoint;
  const signers = note.signatures.map(({ keyId }) => keyId).join(", ");
  throw new RepriseError(
    "NOT_ADMITTED",
    `No admitted key signed the checkpoint of ${origin} with ${size} records: it is signed by ${signers.slice(0, 500)}. ` +
      "If you trust that site, `reprise peer add <name> <url> --key <vkey>` admits its key.",
    { details: { origin, size } },
  );
}
