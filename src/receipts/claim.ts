// Claim: what a run was, independent of the execution: its program, input, steps and output. No time, machine, id, attempt or signer.
//
// claim.C1. Two executions of the same program with the same input have the same claim, byte for byte, on every store. Void entries
//   do not count (retry-record.V2, flow.T1): a run that failed and was retried has the claim of one that never failed.
// claim.C2. Every recorded value in a claim is a key, so that a blind claim tells nothing about any of them (blind.B1).
// claim.C3. A claim names no other run: of its origin a fork has the position, the seed and the messages.
// claim.C4. A journal is read once; a second time if the run was retried, because a retry voids entries before it.

import { artifactKey, canonicalJson, mediaType, RepriseError } from "../base/index.ts";
import type { DefinitionKind, RetryRecord } from "../kernel/index.ts";
import { plainKey, type KeyOf } from "./blind.ts";
import { withoutUndefined } from "./claim-facts.ts";
import type { JournalSource } from "./journal-source.ts";
import type { PlainEntry } from "./journal-tree.ts";
import { leafHash, MerkleTree } from "./merkle.ts";
import { StepOrder } from "./step-order.ts";
import { StepReading } from "./step-reading.ts";
import { stepText, type StepRecord } from "./steps.ts";

/** The program of a run, as its row has it. */
export interface ClaimedRun {
  readonly kind: DefinitionKind;
  readonly definition: string;
  readonly version: number;
}

export interface Claim {
  /** Canonical JSON. */
  readonly text: string;
  readonly key: string;
  /** The root of the tree over the records of the steps. */
  readonly root: string;
  readonly steps: number;
  /** The text of the run's output; undefined: it has none. */
  readonly output: string | undefined;
}

/** Takes the entries of a run, in order, beside other work on them. */
export class ClaimReader {
  readonly #run: ClaimedRun;
  readonly #keyOf: KeyOf;
  readonly #order = new StepOrder();
  readonly #reading: StepReading;

  /** `retries`: those that an earlier reading has found. */
  constructor(run: ClaimedRun, keyOf: KeyOf = plainKey, retries?: readonly RetryRecord[]) {
    this.#run = run;
    this.#keyOf = keyOf;
    const emit = (record: StepRecord, place: Parameters<StepOrder["push"]>[0]): void =>
      this.#order.push(place, leafHash(stepText(record)));
    this.#reading = new StepReading(run.kind, keyOf, emit, retries);
  }

  add(entry: PlainEntry): void {
    this.#reading.add(entry);
  }

  get retries(): readonly RetryRecord[] {
    return this.#reading.retries;
  }

  /** claim.C4. Undefined: the run was retried, and its journal must be read again. */
  finish(): Claim | undefined {
    if (!this.#reading.finish()) return undefined;
    const { facts } = this.#reading;
    const tree = new MerkleTree();
    for (const slot of this.#order.slots(this.#reading.ranks())) tree.push(this.#order.hashAt(slot));
    const root = tree.root();
    const text = canonicalJson({
      ...withoutUndefined({ ...facts.read(), blind: this.#keyOf === plainKey ? undefined : true }),
      kind: this.#run.kind,
      name: this.#run.definition,
      root,
      steps: tree.size,
      v: 1,
      version: this.#run.version,
    });
    return { text, key: claimKey(text), root, steps: tree.size, output: facts.output };
  }
}

/** The claim of a run from its journal. `keyOf`: `blindKey` for a blind claim. */
export async function deriveClaim(run: ClaimedRun, journal: JournalSource, keyOf: KeyOf = plainKey): Promise<Claim> {
  let retries: readonly RetryRecord[] = [];
  for (let readings = 0; readings < 2; readings += 1) {
    const reader = new ClaimReader(run, keyOf, retries);
    for await (const page of journal.pages()) for (const entry of page) reader.add(entry);
    const claim = reader.finish();
    if (claim !== undefined) return claim;
    ({ retries } = reader);
  }
  throw changed();
}

function changed(): RepriseError {
  return new RepriseError("STORE_CORRUPT", "The journal changed while it was read. Read it again.");
}

export function claimKey(text: string): string {
  return artifactKey(mediaType("claim"), text);
}

/** The records of a run's steps, in the order of the claim. Holds the records, but no values. */
export async function* readSteps(
  { kind }: ClaimedRun,
  journal: JournalSource,
  keyOf: KeyOf = plainKey,
): AsyncIterable<StepRecord> {
  let retries: readonly RetryRecord[] = [];
  for (let readings = 0; readings < 2; readings += 1) {
    const order = new StepOrder();
    const records: StepRecord[] = [];
    const reading = new StepReading(
      kind,
      keyOf,
      (record, place) => {
        order.push(place);
        records.push(record);
      },
      retries,
    );
    for await (const page of journal.pages()) for (const entry of page) reading.add(entry);
    if (reading.finish()) {
      for (const slot of order.slots(reading.ranks())) yield records[slot]!;
      return;
    }
    ({ retries } = reading);
  }
  throw changed();
}
