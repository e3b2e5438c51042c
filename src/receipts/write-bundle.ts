// Write bundle: the lines of one run's section.
//
// write-bundle.W1. The same run gives the same bytes: what would be random (the nonce of the run record, a salt) is derived from the
//   signing key, so that nothing has to be stored.
// write-bundle.W2. The journal is read twice and never kept: first for the roots and the claim, then for its lines.
// write-bundle.W3. Only the first `head` entries are read: a run that continues meanwhile changes nothing.

import { artifactKey, mediaType, RepriseError, sha256Hex } from "../base/index.ts";
import { hasEnded, type Runtime } from "../kernel/index.ts";
import { blindKey, blindText, plainKey } from "./blind.ts";
import type { BundledRun } from "./bundled-run.ts";
import { artifactLine, entryLine, headerLine, partLine, PARTS, type BundleForm, type Part } from "./bundle-lines.ts";
import { ClaimReader, deriveClaim } from "./claim.ts";
import { envelopeText } from "./dsse.ts";
import type { JournalSource } from "./journal-source.ts";
import { journalLine } from "./journal-tree.ts";
import { leafHash, MerkleTree } from "./merkle.ts";
import { chainOf, runRecordOf, saltOf } from "./run-record.ts";
import type { SigningKey } from "./signing-key.ts";
import { statementText, type Predicate, type TreeHead } from "./statement.ts";

/** A run as it was read from a store. */
export interface BundleSource extends Pick<Predicate, "previous" | "forked"> {
  readonly run: BundledRun;
  readonly head: number;
  readonly chain: string;
  readonly runtimes: readonly Runtime[];
  readonly journal: JournalSource;
  /** The salt of entry 1, in hex; undefined: it has none. */
  readonly salt?: string | undefined;
  /** Texts that no journal holds: of the arrivals of a flow, of the evidence, and one per execution without an entry. */
  readonly parts: Readonly<Partial<Record<Part, readonly string[]>>>;
}

export interface BundleOptions {
  readonly form: BundleForm;
  /** Undefined: the bundle is not signed. */
  readonly key: SigningKey | undefined;
  /** Name and version of the engine: `reprise/0.2.0`. */
  readonly engine: string;
  /** The run record says that the run ended before its store was federated. */
  readonly isAdopted?: boolean | undefined;
}

export async function* writeBundle(source: BundleSource, options: BundleOptions): AsyncGenerator<string> {
  const { run, journal, head } = source;
  const { form, key, engine, isAdopted } = options;
  const salt = form === "blind" ? saltOf(source.salt, run, key) : undefined;
  const keyOf = salt === undefined ? plainKey : blindKey(salt);
  const reader = new ClaimReader(run, keyOf);
  const tree = new MerkleTree();
  for await (const page of journal.pages())
    for (const entry of page) {
      reader.add(entry);
      tree.push(leafHash(journalLine(entry, salt)));
    }
  if (tree.size !== head)
    throw new RepriseError(
      "STORE_CORRUPT",
      `Run ${run.id} has ${head} entries by its row, and ${tree.size} in its journal. Run \`reprise doctor\`.`,
      { details: { run: run.id } },
    );
  const claim = reader.finish() ?? (await deriveClaim(run, journal, keyOf));
  const header = headerLine(form, run);
  const record = runRecordOf({ ...run, head, chain: source.chain }, { key, salt, isAdopted });
  const { previous, forked, parts } = source;
  const predicate: Predicate = {
    ...treesOf(parts, salt),
    ...(salt !== undefined && { blind: true }),
    chain: chainOf(source.chain, salt),
    claim: claim.key,
    engine,
    ...(forked && { forked: withoutChain(forked, salt) }),
    generation: run.generation,
    journal: { root: tree.root(), size: head },
    origin: key?.origin ?? "",
    ...(run.parent && { parent: run.parent }),
    ...(previous && { previous: withoutChain(previous, salt) }),
    row: sha256Hex(header),
    run: run.id,
    runtimes: source.runtimes,
    ...(!hasEnded(run.status) && { status: run.status }),
    ...(run.tags.length > 0 && { tags: run.tags }),
  };
  yield header;
  yield envelopeText(statementText(predicate, claim.text, claim.output), key);
  yield artifactLine(artifactKey(mediaType("claim"), claim.text), mediaType("claim"), claim.text);
  yield artifactLine(record.key, mediaType("run"), record.text);
  for await (const page of journal.pages())
    for (const entry of page) yield form === "full" ? entryLine(entry) : journalLine(entry, salt);
  if (form !== "full") return;
  for (const part of PARTS) for (const text of parts[part] ?? []) yield partLine(part, text);
}

function withoutChain<T extends { readonly chain?: string }>(value: T, salt: Buffer | undefined): T {
  if (salt === undefined) return value;
  const { chain: _chain, ...rest } = value;
  return rest as T;
}

/** statement.S2 */
function treesOf(parts: BundleSource["parts"], salt: Buffer | undefined): Partial<Record<Part, TreeHead>> {
  const heads = Object.entries(parts).map(([part, texts]): [string, TreeHead] => {
    const tree = new MerkleTree();
    for (const text of texts) tree.push(leafHash(text));
    const { size } = tree;
    return [part, { root: salt === undefined ? tree.root() : blindText(salt, part, tree.root()), size }];
  });
  return Object.fromEntries(heads);
}
