// Shared history: the journal of a fork as its code sees it, with the entries that it shares with its origin (fork.F5).
//
// shared-history.S1. The entries of a run are numbered from 1, those that it shares end with 0. So a number tells whose entry
//   it is, and the order stays ascending.
// shared-history.S2. Entries that a retry of an origin voided are left out, and the retry too: nothing after the fork depends
//   on it.
// shared-history.S3. The first entry of each run in the history is part of it: the first says what the code starts with, and
//   each later one ends what its run shares.

import { invariant, RepriseError } from "../base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  commandForkOriginOf,
  decodeData,
  findJournalFault,
  type CommandForkOrigin,
  type Entry,
  type JournalFault,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { effectiveEntries, runRetriesOf } from "./recorded-journal.ts";

export interface SharedHistory {
  /** Empty: the run is not a fork at a command. */
  readonly entries: readonly Entry[];
  /** The origins no longer have the entries that the run was forked from. */
  readonly fault: JournalFault | undefined;
}

/** The entries that a fork shares with one of its origins, as that run has them. */
export interface SharedEntries {
  readonly run: string;
  readonly generation: number;
  readonly entries: readonly Entry[];
}

/** What a store, or the runs of a bundle, must answer to read a history. */
export type HistorySource = Pick<Store, "readJournal"> & {
  findRun(id: string, generation: number): Promise<Pick<RunRecord, "run" | "id" | "generation"> | undefined>;
};

const NOTHING: SharedHistory = { entries: [], fault: undefined };

/** The journal of a run, after the entries that it shares with its origin. */
export async function readHistory(store: Store, run: RunNumber): Promise<readonly Entry[]> {
  const own = await store.readJournal(run, 0);
  const { entries } = await readShared(store, own[0]);
  return entries.length === 0 ? own : [...entries, ...own];
}

/** The entries that the run with this first entry shares with its origin. */
export async function readShared(store: HistorySource, first: Entry | undefined): Promise<SharedHistory> {
  const origin = originIn(first);
  if (origin === undefined) return NOTHING;
  const parts = await readParts(store, origin);
  return { entries: joinShared(parts), fault: parts.find(({ fault }) => fault !== undefined)?.fault };
}

/** The same entries as their runs have them, the oldest run first. */
export async function readSharedAsWritten(store: Store, first: Entry | undefined): Promise<readonly SharedEntries[]> {
  const origin = originIn(first);
  return origin === undefined ? [] : readParts(store, origin);
}

/** shared-history.S1, shared-history.S2 */
export function joinShared(parts: readonly Pick<SharedEntries, "entries">[]): readonly Entry[] {
  let shift = -parts.reduce((sum, { entries }) => sum + entries.length, 0);
  const joined: Entry[] = [];
  for (const { entries } of parts) {
    for (const entry of effectiveEntries(entries, runRetriesOf(entries)))
      joined.push({ ...entry, seq: entry.seq + shift });
    shift += entries.length;
  }
  return joined;
}

/** The chain value after an entry of the history of a run (shared-history.S1). */
export async function readChainAt(store: Store, run: RunNumber, seq: number): Promise<string> {
  const own = await store.readJournal(run, 0, Math.max(seq, 1));
  if (seq >= 1)
    return own.reduce((chain, { type, command, data }) => chainAfter(chain, type, command, data), CHAIN_START);
  const origin = originIn(own[0]);
  invariant(origin !== undefined, "shared-history.S1: only a fork has entries before its first one");
  return readChainAt(store, (await getOrigin(store, origin)).run, seq + origin.seq);
}

/** The origin of a fork at a command. A text search is enough for most runs. */
export function originIn(first: Entry | undefined): CommandForkOrigin | undefined {
  if (first?.data.includes('"forked"') !== true) return undefined;
  return commandForkOriginOf(decodeData("RunStarted", first.data));
}

interface Part extends SharedEntries {
  readonly fault: JournalFault | undefined;
}

/** `forks`: the runs that this origin was reached from. An imported run may name itself. */
async function readParts(
  store: HistorySource,
  origin: CommandForkOrigin,
  forks: ReadonlySet<RunNumber> = new Set(),
): Promise<readonly Part[]> {
  const { run, id, generation } = await getOrigin(store, origin);
  if (forks.has(run)) throw circular(id);
  const own = await store.readJournal(run, 0, Math.max(origin.seq, 1));
  const before = originIn(own[0]);
  const parts = before === undefined ? [] : await readParts(store, before, new Set([...forks, run]));
  if (origin.seq < 1) return cutParts(parts, origin);
  const fault = findJournalFault(own, { head: origin.seq, chain: origin.chain });
  return [...parts, { run: id, generation, entries: own, fault }];
}

/** The origin shares the place of the fork with its own origin. */
function cutParts(parts: readonly Part[], { seq, chain, run, at }: CommandForkOrigin): readonly Part[] {
  let left = parts.reduce((sum, { entries }) => sum + entries.length, seq);
  const kept: Part[] = [];
  for (const part of parts) {
    const entries = part.entries.slice(0, left);
    left -= entries.length;
    if (entries.length > 0) kept.push({ ...part, entries });
  }
  const last = kept.at(-1);
  if (last === undefined) return kept;
  // Of the last run fewer entries are shared than its own fork shares: they have the chain of this fork's place.
  const { entries } = last;
  const found = findJournalFault(entries, { head: entries.length, chain });
  const problem = `run ${run} has another history before ${at} than when it was forked`;
  const fault = found && { ...found, problem: `${problem}: ${found.problem}` };
  return [...kept.slice(0, -1), { ...last, fault }];
}

async function getOrigin(
  store: HistorySource,
  { run, generation }: CommandForkOrigin,
): Promise<Pick<RunRecord, "run" | "id" | "generation">> {
  const record = await store.findRun(run, generation);
  if (record !== undefined) return record;
  throw new RepriseError(
    "STORE_CORRUPT",
    `A run is a fork of run ${run}, which no longer exists. Run \`reprise doctor\`.`,
    { details: { origin: run, generation } },
  );
}

function circular(id: string): RepriseError {
  return new RepriseError("STORE_CORRUPT", `Run ${id} is a fork of itself. Run \`reprise doctor\`.`, {
    details: { run: id },
  });
}
