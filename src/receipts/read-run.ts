// Read run: a run in a store, as a bundle has it.
//
// read-run.R1. The row is read first, then the journal up to its head (write-bundle.W3). A payload that the codec cannot decode ends
//   the reading: a bundle never has another text in its place.
// read-run.R2. Entries that do not have the chain of the row are damage in the store, and end the reading as well: a statement that is
//   signed is never about them. Times are in no chain, so a changed time is found only by a statement that was signed before.
// read-run.R3. Counters of a flow's nodes are in no journal, and without the code they do not follow from it. `uses` has a text per node
//   that got arrivals: its counters, and the entries that its inputs came from. The items of a spread are entries themselves, so a
//   barrier has counters only (docs/decisions/0138).

import { canonicalJson, RepriseError, unreadableReason } from "../base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  commandForkOriginOf,
  decodeData,
  forkOriginOf,
  hasEnded,
  markOf,
  runtimesOf,
  type AttemptRecord,
  type Entry,
  type RunRecord,
  type RunStartedData,
  type Store,
} from "../kernel/index.ts";
import type { BundledRun, ParentReference } from "./bundled-run.ts";
import { storeJournal, type JournalSource } from "./journal-source.ts";
import type { BundleSource } from "./write-bundle.ts";

/** The run of a row, to be bundled. Refuses a run that has no entry yet. */
export async function readRun(store: Store, record: RunRecord): Promise<BundleSource> {
  const { run, id, generation, head, chain, evidence } = record;
  const journal = intact(storeJournal(store, record), record);
  const started = await readStarted(journal, record);
  const [parent, previous] = [await findParent(store, record), await findPrevious(store, id, generation)];
  const forked = forkOriginOf(started) ?? commandForkOriginOf(started);
  const attempts = (await store.readAttempts(run)).map(attemptText);
  const uses = record.kind === "flow" ? await readUses(store, record) : [];
  return {
    run: bundledRun(record, parent),
    head,
    chain,
    runtimes: runtimesOf(record),
    journal,
    ...(started.salt !== undefined && { salt: started.salt }),
    ...(previous && { previous }),
    ...(forked && { forked: { chain: forked.chain, run: forked.run, seq: forked.seq } }),
    parts: {
      ...(uses.length > 0 && { uses }),
      ...(evidence !== undefined && { evidence: [readableText(evidence)] }),
      ...(attempts.length > 0 && { attempts }),
    },
  };
}

function bundledRun(record: RunRecord, parent: ParentReference | undefined): BundledRun {
  const { id, generation, definition, kind, version, status, priority, tags } = record;
  const { arrivals, read, unread, lostTurns, createdAt, endedAt, errorCode } = record;
  return {
    id,
    generation,
    definition,
    kind,
    version,
    status,
    priority,
    tags,
    arrivals,
    read,
    unread,
    lostTurns,
    createdAt,
    ...(parent && { parent }),
    ...(hasEnded(status) && endedAt !== undefined && { endedAt }),
    ...(errorCode !== undefined && { errorCode }),
  };
}

// ── the journal ──

async function readStarted(journal: JournalSource, { id }: RunRecord): Promise<RunStartedData> {
  for await (const [first] of journal.pages()) if (first !== undefined) return decodeData("RunStarted", first.data);
  throw new RepriseError("BAD_OPTIONS", `Run ${id} has not started: it has no entry, and nothing to prove.`, {
    details: { run: id },
  });
}

/** read-run.R1, read-run.R2 */
function intact(journal: JournalSource<Entry>, { id, chain: expected }: RunRecord): JournalSource<Entry> {
  const corrupt = (what: string): RepriseError =>
    new RepriseError("STORE_CORRUPT", `${what} of run ${id} does not match its hash chain. Run \`reprise doctor\`.`, {
      details: { run: id },
    });
  return {
    async *pages() {
      let chain = CHAIN_START;
      for await (const page of journal.pages()) {
        for (const { seq, type, command, data, mark } of page) {
          chain = chainAfter(chain, type, command, readableText(data));
          if (markOf(chain) !== mark) throw corrupt(`Entry ${seq}`);
        }
        yield page;
      }
      if (chain !== expected) throw corrupt("The journal");
    },
  };
}

function readableText(text: string): string {
  const reason = unreadableReason(text);
  if (reason !== undefined) throw reason;
  return text;
}

// ── what no journal has ──

function attemptText(record: AttemptRecord): string {
  const { step, execution, attempt, outcome, at, seq, worker, startedAt, data } = record;
  return canonicalJson({
    at,
    attempt,
    ...(data !== undefined && { data: readableText(data) }),
    execution,
    outcome,
    seq,
    ...(startedAt !== undefined && { startedAt }),
    step,
    ...(worker !== undefined && { worker }),
  });
}

/** read-run.R3. One node at a time, because inputs can be large. */
async function readUses(store: Store, { run, head }: RunRecord): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const { node, required, completed, queued } of await store.readReadiness(run)) {
    const isBarrier = queued !== undefined;
    const [arrived = []] = isBarrier ? [] : await store.readInputs([{ run, targets: [node] }]);
    const inputs = arrived
      .filter(({ seq }) => seq <= head)
      .map(({ edge, index, kind, seq }) => ({ edge, index, kind, seq }));
    texts.push(canonicalJson({ completed, inputs, node, ...(isBarrier && { queued }), required }));
  }
  return texts;
}

// ── other runs ──

/** The row of a run by its number, which pages of a list are ordered by. */
async function findParent(store: Store, { parent, parentCommand }: RunRecord): Promise<ParentReference | undefined> {
  if (parent === undefined || parentCommand === undefined) return undefined;
  const [found] = await store.listRuns({ before: parent + 1, limit: 1 });
  if (found?.run !== parent) return undefined;
  return { run: found.id, generation: found.generation, command: parentCommand };
}

async function findPrevious(store: Store, id: string, generation: number): Promise<BundleSource["previous"]> {
  if (generation === 0) return undefined;
  const found = await store.findRun(id, generation - 1);
  return { generation: generation - 1, ...(found && { chain: found.chain }) };
}
