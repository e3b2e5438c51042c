// Key history: which key signs a log at which size.
//
// key-history.H1. The first key is the one whose digits the origin has (signing-key.K1): who knows the origin cannot be given another key.
// key-history.H2. A `key` record with the number n names the next key. It is taken only under a checkpoint of size n, which the key
//   before signed: so the old key vouches for the new one. Checkpoints above n are signed by the new key. So a site that rotates signs
//   size n with the old key, and carriers keep that note for ever (`handoverPath`). A reader takes a log in batches that end at a key
//   record (`batchLength`).
// key-history.H3. Signatures never expire: a checkpoint of size m is verified by the key in force at m, however old it is.
// key-history.H4. A later epoch begins with the newest known key of the epoch before.

import { RepriseError } from "../../base/index.ts";
import { firstOrigin, parseVkey, type VerifyingKey } from "../../receipts/index.ts";
import { openCheckpoint, parseCheckpoint, type Checkpoint } from "./checkpoint.ts";
import { originParts, type Origin } from "./origin.ts";
import type { LogRecord } from "./record.ts";

interface Term {
  /** The number of the record that names the key; 0 for the first key. */
  readonly n: number;
  readonly key: VerifyingKey;
}

export class KeyHistory {
  readonly #terms: Term[];

  private constructor(terms: readonly Term[]) {
    this.#terms = [...terms];
  }

  /** key-history.H1 */
  static genesis(vkey: string): KeyHistory {
    const key = parseVkey(vkey);
    const { name, epoch } = originParts(key.origin);
    if (epoch === 1 && firstOrigin(name, key.publicKey) !== key.origin)
      throw new RepriseError(
        "NOT_ADMITTED",
        `${vkey} is not the first key of ${key.origin}: its digits are those of another key. ` +
          "Admit the first vkey of the site; the log names the later ones.",
      );
    return new KeyHistory([{ n: 0, key }]);
  }

  /** The history of a log whose records are known. */
  static of(vkey: string, records: Iterable<LogRecord>): KeyHistory {
    const history = KeyHistory.genesis(vkey);
    for (const { op, n, v } of records) if (op === "key" && v !== undefined) history.add(n, v);
    return history;
  }

  get origin(): Origin {
    return this.#terms[0]!.key.origin;
  }

  /** The newest key. */
  get current(): VerifyingKey {
    return this.#terms.at(-1)!.key;
  }

  /** Every key, oldest first, with the number of the record that names it. */
  get terms(): readonly Term[] {
    return [...this.#terms];
  }

  /** key-history.H2. Record `n` names this key. The same record again changes nothing. */
  add(n: number, vkey: string): void {
    const key = parseVkey(vkey);
    const last = this.#terms.at(-1)!;
    if (n === last.n && key.vkey === last.key.vkey) return;
    if (n <= last.n || key.origin !== this.origin)
      throw new RepriseError(
        "RECORD_INVALID",
        `Record ${n} of ${this.origin} names the key ${vkey}, which cannot follow ${last.key.id} of record ${last.n}.`,
        { details: { origin: this.origin, n } },
      );
    this.#terms.push({ n, key });
  }

  /** key-history.H2. The key that signs a checkpoint of this size. */
  keyAt(size: number): VerifyingKey {
    return this.#terms.findLast(({ n }) => n < size)?.key ?? this.#terms[0]!.key;
  }

  /** key-history.H3. The checkpoint of a note that the key in force at its size signed. */
  open(note: string): Checkpoint {
    return openCheckpoint(note, [this.keyAt(parseCheckpoint(note).size)]);
  }

  /** key-history.H4 */
  forEpoch(origin: Origin): KeyHistory {
    return new KeyHistory([{ n: 0, key: this.current.forOrigin(origin) }]);
  }
}

/** key-history.H2. How many of these records one batch may have: up to the first key record. */
export function batchLength(records: readonly Pick<LogRecord, "op">[]): number {
  const at = records.findIndex(({ op }) => op === "key");
  return at === -1 ? records.length : at + 1;
}
