// A site whose store was copied or restored, and readers of its log: state machines with real signatures (T-03, T-10).

import {
  foldRecords,
  hashesOf,
  KeyHistory,
  LogTree,
  nextEpoch,
  nextRecord,
  parseRecord,
  recordText,
  relationOf,
  rootOf,
  signCheckpoint,
  stateHashOf,
  type Checkpoint,
  type LogCopy,
  type LogRecord,
  type Origin,
  type RecordBody,
} from "../../../src/federation/index.ts";
import { evidenceText, makeEvidence, verifyEvidence } from "../../../src/federation/home/fork-evidence.ts";
import { leafHash, type SigningKey } from "../../../src/receipts/index.ts";

/** Texts with a signed head. */
export interface SignedLog {
  readonly texts: readonly string[];
  readonly checkpoint: Checkpoint;
}

export function copyOf(texts: readonly string[]): LogCopy {
  const hashAt = hashesOf(texts.map(leafHash));
  return { size: texts.length, rootAt: (size) => rootOf(size, hashAt) };
}

/** A writer: a store with a log, and the key. */
export class Site {
  readonly key: SigningKey;
  origin: Origin;
  texts: string[] = [];
  #clock = 0;
  /** What the next record names: the end of the log that this epoch follows. */
  #seen: Parameters<typeof nextRecord>[2] = {};
  /** Every head that it ever signed, copies of this site included. */
  readonly signed: Checkpoint[];

  constructor(key: SigningKey, signed: Checkpoint[] = []) {
    this.key = key;
    this.origin = key.origin;
    this.signed = signed;
  }

  write(...bodies: readonly RecordBody[]): this {
    for (const body of bodies) {
      const record = nextRecord({ origin: this.origin, size: this.texts.length, clock: this.#clock }, body, this.#seen);
      this.#seen = {};
      this.texts.push(recordText(record));
      this.#clock = record.c;
    }
    return this;
  }

  /** The store as it is now, opened a second time with the same key. */
  backup(): Site {
    const copy = new Site(this.key, this.signed);
    copy.origin = this.origin;
    copy.texts = [...this.texts];
    copy.#clock = this.#clock;
    return copy;
  }

  /** Signs what it hands out, without a thought about copies of itself. */
  handOut(): SignedLog {
    const checkpoint = signCheckpoint(this.key, this.origin, this.texts.length, LogTree.ofTexts(this.texts).root());
    this.signed.push(checkpoint);
    return { texts: [...this.texts], checkpoint };
  }

  /** Meets its own log at a peer before it signs. Returns what it did. */
  meet(theirs: SignedLog): "healed" | "epoch" | "ahead" {
    const relation = relationOf(copyOf(this.texts), copyOf(theirs.texts));
    switch (relation.status) {
      case "equal":
      case "extends":
        return "ahead";
      case "prefix":
        this.texts = [...theirs.texts];
        this.#clock = (JSON.parse(this.texts.at(-1)!) as LogRecord).c;
        return "healed";
      case "forked": {
        // The old log stays as others have it. What only this copy has is written again, in the next epoch.
        const own = this.texts.slice(relation.at).map((text) => JSON.parse(text) as LogRecord);
        const last = JSON.parse(theirs.texts.at(-1)!) as LogRecord;
        this.#seen = { [this.origin]: { n: last.n, c: last.c } };
        this.#clock = 0;
        this.origin = nextEpoch(this.origin);
        this.texts = [];
        return (
          this.write(...own.map(({ op, k, s, x }) => ({ op, ...(k && { k }), ...(s && { s }), ...(x && { x }) }))),
          "epoch"
        );
      }
    }
  }
}

/** A reader of one origin. */
export class Reader {
  readonly history: KeyHistory;
  texts: readonly string[] = [];
  checkpoint: Checkpoint | undefined;
  /** The smallest common size that evidence has shown. */
  quarantined: { readonly at: number; readonly evidence: string } | undefined;

  constructor(vkey: string) {
    this.history = KeyHistory.genesis(vkey);
  }

  /** Takes a longer log, or finds that it is another one. */
  take({ texts, checkpoint }: SignedLog): "taken" | "known" | "forked" {
    this.history.open(checkpoint.note);
    const theirs = copyOf(texts);
    if (theirs.rootAt(texts.length).toString("base64") !== checkpoint.root)
      throw new Error("the relay changed a record");
    const relation = relationOf(copyOf(this.texts), theirs);
    if (relation.status === "forked") {
      const { at } = relation;
      const own = { checkpoint: this.checkpoint!, leaves: this.texts.map(leafHash) };
      const other = { checkpoint, leaves: texts.map(leafHash) };
      this.hear(evidenceText(makeEvidence(at, own, other)));
      return "forked";
    }
    if (relation.status !== "prefix") return "known";
    this.#check(texts);
    [this.texts, this.checkpoint] = [texts, checkpoint];
    return "taken";
  }

  #check(texts: readonly string[]): void {
    let after = 0;
    for (const [i, text] of texts.entries())
      after = parseRecord(text, { origin: this.history.origin, n: i + 1, after }).c;
  }

  /** Evidence from another reader. */
  hear(evidence: string): void {
    const { at } = verifyEvidence(evidence, this.history);
    if (this.quarantined === undefined || at < this.quarantined.at) this.quarantined = { at, evidence };
  }

  /** Readers exchange evidence, then logs. */
  meet(other: Reader): void {
    for (const [a, b] of [
      [this, other],
      [other, this],
    ] as const) {
      if (b.quarantined !== undefined) a.hear(b.quarantined.evidence);
      if (b.checkpoint !== undefined) a.take({ texts: b.texts, checkpoint: b.checkpoint });
    }
  }

  /** What counts: up to the last common record. */
  visible(): LogRecord[] {
    return this.texts.slice(0, this.quarantined?.at ?? this.texts.length).map((text) => JSON.parse(text) as LogRecord);
  }

  hash(): string {
    return stateHashOf(foldRecords(this.visible()));
  }
}
