// Verify a run of a store: reads its journal once, page by page, and replays it if there is code.

import { encode, RepriseError, valueKey } from "../base/index.ts";
import { runtimeText, type JournalReplayer, type RecordedRun } from "../engine/index.ts";
import {
  decodeData,
  findHeadFault,
  followChain,
  runtimesOf,
  type ChainPlace,
  type DefinitionKind,
  type Entry,
  type JournalFault,
  type RunRecord,
  type Runtime,
  type Store,
} from "../kernel/index.ts";
import {
  earlierGenerations,
  namedRunsIn,
  storeJournal,
  verdictOf,
  type Finding,
  type NamedById,
  type NamedRun,
  type Verdict,
  type VerifyLevel,
} from "../receipts/index.ts";
import { readShared, type HistorySource } from "../workflow/index.ts";

/** What to check, and with which code. */
export interface Checks {
  readonly levels: readonly VerifyLevel[];
  readonly replayer: JournalReplayer | undefined;
  readonly codeFile: string | undefined;
}

/** A run as it was read, with what reading it found. */
export interface ReadRun extends RecordedRun {
  readonly kind: DefinitionKind;
  readonly head: number;
  readonly fault: JournalFault | undefined;
  /** Runs that the journal names and that are not at hand. */
  readonly missing: readonly NamedRun[];
  /** What else is wrong with it. */
  readonly findings?: readonly Finding[];
  readonly runtimes: readonly Runtime[];
  /** The key of the output, of a run that completed. */
  readonly output?: string;
  /** The bundle it is in; undefined: it is in a store. */
  readonly file?: string;
  /** Who signed it. */
  readonly signer?: string;
}

/** A run with its verdict. */
export interface VerifiedRun {
  readonly id: string;
  readonly generation: number;
  readonly definition: string;
  readonly entries: number;
  readonly chain: string;
  readonly output?: string;
  readonly file?: string;
  readonly signer?: string;
  readonly levels: readonly VerifyLevel[];
  readonly verdict: Verdict;
}

/** Levels 0 and 2; keeps the entries for level 3. */
export async function readStoredRun(store: Store, record: RunRecord, levels: readonly VerifyLevel[]): Promise<ReadRun> {
  const journal = await readJournal(store, record, levels);
  const { fault, entries, named } = journal;
  // The first entry can be replaced until the run starts.
  const now = fault === undefined ? undefined : await store.findRun(record.id, record.generation);
  if (now !== undefined && (now.head !== record.head || now.chain !== record.chain))
    return readStoredRun(store, now, levels);
  const { id, generation } = record;
  if (fault?.code !== undefined)
    throw new RepriseError(fault.code, `The journal of run ${id} cannot be read: ${fault.problem}.`, {
      details: { run: id, seq: fault.seq },
    });
  const missing = levels.includes(2) ? await findMissing(store, [...earlierGenerations(id, generation), ...named]) : [];
  const { last } = journal;
  const history = fault === undefined ? await readFork(store, record.kind, entries) : { entries };
  return { ...record, fault, missing, runtimes: runtimesOf(record), ...(last && outputOf(last)), ...history };
}

/** Level 3, and the verdict of all levels. */
export async function verdictOfRun(run: ReadRun, checks: Checks): Promise<VerifiedRun> {
  const { id, generation, definition, head, chain, output, file, signer, fault, findings, missing, runtimes } = run;
  const replayed = fault === undefined ? await replay(run, checks) : {};
  const here = JSON.parse(runtimeText()) as Runtime;
  const verdict = verdictOf({ fault, missing, findings: findings ?? [], ...replayed, runtimes, here });
  return {
    id,
    generation,
    definition,
    entries: head,
    chain,
    ...(output !== undefined && { output }),
    ...(file !== undefined && { file }),
    ...(signer !== undefined && { signer }),
    levels: checks.levels,
    verdict,
  };
}

async function replay(
  run: RecordedRun,
  { levels, replayer, codeFile }: Checks,
): Promise<Pick<Parameters<typeof verdictOf>[0], "noCode" | "replay" | "pure">> {
  // The journal of a run that was not started has nothing to replay.
  if (replayer === undefined || !levels.includes(3) || run.entries.length === 0) return {};
  if (replayer.has(run)) {
    const replay = await replayer.replay(run);
    return { replay, pure: levels.includes(4) && replay.status === "same" ? await replayer.repeatPure(run) : [] };
  }
  return { noCode: `${codeFile} does not export ${run.definition} version ${run.version}.` };
}

/** What a fork at a command shares with its origin. Without it there is nothing to replay. */
export async function readFork(
  source: HistorySource,
  kind: DefinitionKind,
  entries: readonly Entry[],
): Promise<Pick<ReadRun, "entries" | "shared" | "findings">> {
  if (kind !== "workflow") return { entries };
  const finding = (status: "damaged" | "incomplete", message: string): Pick<ReadRun, "entries" | "findings"> => ({
    entries: [],
    findings: [{ status, message }],
  });
  try {
    const { entries: shared, fault } = await readShared(source, entries[0]);
    return fault === undefined ? { entries, shared } : finding("damaged", `${fault.problem}.`);
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code !== "STORE_CORRUPT") throw error;
    return finding(
      "incomplete",
      "it is a fork, and the run that it was forked from is not here. `reprise bundle --family` includes it.",
    );
  }
}

/** As the claim of the run has it. */
function outputOf({ type, data }: Entry): { readonly output?: string } {
  const { output } = type === "RunCompleted" ? decodeData("RunCompleted", data) : {};
  return output === undefined ? {} : { output: valueKey(encode(output)) };
}

interface ReadJournal {
  readonly fault: JournalFault | undefined;
  /** Only for a replay. */
  readonly entries: readonly Entry[];
  readonly named: readonly NamedById[];
  readonly last?: Entry | undefined;
}

async function readJournal(store: Store, record: RunRecord, levels: readonly VerifyLevel[]): Promise<ReadJournal> {
  const entries: Entry[] = [];
  const named: NamedById[] = [];
  let place = followChain([]) as ChainPlace;
  let last: Entry | undefined;
  for await (const page of storeJournal(store, record).pages()) {
    const next = followChain(page, place);
    if ("problem" in next) return { fault: next, entries: [], named: [] };
    last = page.at(-1);
    if (levels.includes(3)) entries.push(...page);
    if (levels.includes(2)) named.push(...namedRunsIn(page));
    place = next;
  }
  return { fault: findHeadFault(place, record), entries, named, last };
}

async function findMissing(store: Store, named: readonly NamedById[]): Promise<readonly NamedRun[]> {
  const missing: NamedById[] = [];
  for (const one of named) if ((await store.findRun(one.id, one.generation)) === undefined) missing.push(one);
  return missing;
}
