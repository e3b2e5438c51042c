// Take own: brings the log of this site's store into its home, under a checkpoint of its own key, with the contents that rules publish.
//
// take-own.T1. A run is published when a rule first gives it to some reader: its statement is logged, and its contents go into the home.
//   Until then nothing of it leaves the store but the key of its run record.
// take-own.T2. The home is what is pushed and served. So a run whose contents are in the home needs no pin in the store any more, unless
//   it is to be archived.
// take-own.T3. A checkpoint is signed for the home only if its log extends the one that is there (F-12). A store that lost records,
//   because it was restored from a backup, is healed from the home first (`meet-own.ts`).
// take-own.T4. It may stop anywhere and be repeated: a statement is logged after its contents are in the home, and the store's log says
//   which runs have one.

import { canonicalJson, RepriseError } from "../../base/index.ts";
import type { RunRecord, Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Home } from "../home/home.ts";
import type { IngestOutcome } from "../home/ingest.ts";
import { signCheckpoint } from "../log/checkpoint.ts";
import { contentOf } from "../log/content.ts";
import { batchLength } from "../log/key-history.ts";
import type { Origin } from "../log/origin.ts";
import type { LogRecord } from "../log/record.ts";
import { evidenceToLog } from "./evidence.ts";
import { appendOwn, readOwnEnd } from "./own-log.ts";
import { EVIDENCE_TYPE, payloadsFor, type PublicationRule } from "./publish.ts";
import { publishRuns } from "./publish-runs.ts";
import type { SyncState } from "./sync-state.ts";

export interface TakeOwnOptions {
  readonly rules: readonly PublicationRule[];
  /** Runs stay pinned until they are archived (take-own.T2). */
  readonly archives?: boolean;
  /** Remembers up to where the log was read under which rules. Without it every call reads the whole log. */
  readonly state?: SyncState | undefined;
  readonly signal?: AbortSignal;
}

export interface TakenOwn {
  readonly origin: Origin;
  /** Records that came into the home. */
  readonly records: number;
  /** Runs that were published for the first time. */
  readonly published: number;
  /** The number of records in the log. */
  readonly size: number;
}

const PAGE = 1_000;

/** Brings the log of a store into the home of its site, and publishes by the rules. */
export async function takeOwn(store: Store, home: Home, key: SigningKey, options: TakeOwnOptions): Promise<TakenOwn> {
  const published = await publishByRules(store, home, key, options);
  await logEvidence(store, home, key);
  const { origin, records, size } = await copyLog(store, home, key);
  return { origin, records, published, size };
}

// ── the log ──

/** Copies the rows of the epoch in force that the home lacks. */
export async function copyLog(
  store: Store,
  home: Home,
  key: SigningKey,
  /** `stopAtKey`: leaves the records that the next key signs. */
  { stopAtKey = false }: { readonly stopAtKey?: boolean } = {},
): Promise<{ readonly origin: Origin; readonly records: number; readonly size: number }> {
  const { origin, size, rows: count } = await readOwnEnd(store, key);
  const signer = key.forOrigin(origin);
  const state = home.origin(origin) ?? home.admit(signer.vkey, { own: true });
  let at = state.cursor;
  while (at < size) {
    const page = await store.readLog(count - size + at, Math.min(PAGE, size - at));
    if (page.length === 0) break;
    const records = page.map(({ rec }) => JSON.parse(rec) as LogRecord);
    // key-history.H2. The key before signs the record that names the next one.
    const texts = page.slice(0, batchLength(records)).map(({ rec }) => rec);
    const tree = home.tree(origin);
    for (const text of texts) tree.append(text);
    if (stopAtKey && home.keys(origin).keyAt(tree.size).vkey !== signer.vkey) break;
    checkSigner(home, origin, tree.size, signer);
    const checkpoint = signCheckpoint(signer, origin, tree.size, tree.root());
    const outcome = home.ingest({ origin, records: texts, checkpoint, contents: [], journals: [] });
    if (outcome.status === "refused" || outcome.status === "forked") throw notTaken(origin, outcome);
    at = home.origin(origin)!.cursor;
  }
  return { origin, records: at - state.cursor, size };
}

function checkSigner(home: Home, origin: Origin, size: number, { vkey, id }: SigningKey): void {
  const inForce = home.keys(origin).keyAt(size);
  if (inForce.vkey === vkey) return;
  throw new RepriseError(
    "NOT_ADMITTED",
    `The log of ${origin} is signed by ${inForce.id} at ${size} records; the key here is ${id}. Use the key file of this site, or finish its rotation with \`reprise key rotate\`.`,
    { details: { origin, size, key: id, expected: inForce.id } },
  );
}

function notTaken(origin: Origin, outcome: IngestOutcome): RepriseError {
  const why = outcome.status === "refused" ? `${outcome.code}: ${outcome.reason}` : "the log has two branches";
  return new RepriseError("FORKED", `The log of ${origin} in the store does not extend the one in the home. ${why}`, {
    details: { origin },
  });
}

// ── publication ──

async function publishByRules(store: Store, home: Home, key: SigningKey, options: TakeOwnOptions): Promise<number> {
  const { rules, archives = false, state, signal } = options;
  const { published, runs, done } = await publishRuns(store, home, key, {
    rules: canonicalJson({ archives, rules }),
    isWanted: (record) => isPublished(rules, record),
    state,
    ...(signal && { signal }),
  });
  // take-own.T2
  if (!archives && runs.length > 0) await store.write([{ write: "release", runs }]);
  done();
  return published;
}

function isPublished(rules: readonly PublicationRule[], { definition, tags }: RunRecord): boolean {
  const readers = new Set(rules.flatMap(({ to }) => to));
  return [...readers].some((reader) => payloadsFor(rules, reader, { definition, tags }) !== "none");
}

// ── evidence (meet-fork.M2) ──

async function logEvidence(store: Store, home: Home, key: SigningKey): Promise<void> {
  for (const text of evidenceToLog(home)) {
    const content = contentOf(EVIDENCE_TYPE, text);
    home.putContents([content]);
    if (home.cell(`a:${content.key}`) !== undefined) continue;
    await appendOwn(store, key, async () => ({ records: [{ body: { op: "put", k: content.key } }] }));
  }
}
