// Checkpoints of a run: the steps it has committed, and the state after any of them.
//
// run-checkpoints.T1. To read one step, the nearest snapshot before it and the steps since are read (checkpoint.C3), however
//   long the run is.
// run-checkpoints.T2. Everything comes from committed rows, nothing from the memory of a worker.

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import {
  createCheckpoint,
  recordedIO as recordedCalls,
  stateValue,
  type Checkpoint,
  type CheckpointParts,
  type RecordedIO,
} from "../graph/index.ts";
import {
  decodeData,
  applyDelta,
  journalEntryOf,
  readSnapshot,
  type ChannelTexts,
  type Delta,
  type Entry,
  type RunNumber,
  type RunRecord,
  type Store,
  type DeliveredMessage,
  type StepCommittedData,
} from "../kernel/index.ts";
import type { WaitOptions } from "./abort.ts";
import {
  getCheckpoint,
  readLineage,
  type CheckpointAt,
  type FoundCheckpoint,
  type Lineage,
  type LineageRange,
} from "../explain/index.ts";

/** Options of `run.checkpoints`. */
export interface CheckpointsOptions extends WaitOptions {
  /** Skips the steps up to this one. */
  after?: number;
  /** Includes the recorded calls of each step's nodes. */
  recordedIO?: boolean;
}

const PAGE = 32;
const ENTRIES = 256;

export async function stateAt(
  store: Store,
  record: RunRecord,
  at: unknown,
): Promise<Readonly<Record<string, unknown>>> {
  const where = checkAt(at, "stateAt");
  const { range, row } = await getCheckpoint(store, await readLineage(store, record), where);
  return stateValue((await readTextsAt(store, range.run, row.step)).texts);
}

/** One checkpoint with everything it holds. */
export async function checkpoint(store: Store, record: RunRecord, at: unknown): Promise<Checkpoint<any>> {
  const where = checkAt(at, "checkpoint");
  const lineage = await readLineage(store, record);
  const found = await getCheckpoint(store, lineage, where);
  const { texts, data, entry } = await readStepAt(store, found);
  const recordedIO = await readIO(store, lineage, found.range, { ...entry, step: data.step });
  return createCheckpoint(partsOf(lineage, found.range, data, entry, texts, recordedIO));
}

/** In the order of their steps; those of a fork's origin come first. */
export async function* checkpoints(
  store: Store,
  record: RunRecord,
  options: CheckpointsOptions = {},
): AsyncIterable<Checkpoint<any>> {
  checkOptionNames(options, ["after", "recordedIO", "signal"], "checkpoints");
  const { after = -1, recordedIO = false } = options;
  if (!Number.isSafeInteger(after) || after < -1)
    throw new RepriseError("BAD_OPTIONS", `checkpoints: expected a step of 0 or more as after, got ${inspect(after)}.`);
  if (typeof recordedIO !== "boolean")
    throw new RepriseError(
      "BAD_OPTIONS",
      `checkpoints: expected true or false as recordedIO, got ${inspect(recordedIO)}.`,
    );
  const lineage = await readLineage(store, record);
  for (const range of lineage.ranges)
    for await (const { entry, data, texts } of readSteps(store, range, after)) {
      const calls = recordedIO ? await readIO(store, lineage, range, { ...entry, step: data.step }) : undefined;
      yield createCheckpoint(partsOf(lineage, range, data, entry, texts, calls));
    }
}

export interface CommittedStep {
  readonly entry: Entry;
  readonly data: StepCommittedData & { readonly delta: Delta };
  readonly texts: ChannelTexts;
}

/** The steps of a range after one of them, page by page, each with the state after it. */
export async function* readSteps(
  store: Store,
  { run, from, upTo }: LineageRange,
  after = -1,
): AsyncIterable<CommittedStep> {
  if (after >= upTo) return;
  const isWithin = after >= from;
  let texts: ChannelTexts = isWithin ? (await readTextsAt(store, run, after)).texts : new Map();
  for (let last = isWithin ? after : from - 1; ;) {
    const page = await store.readSteps(run, last, upTo, PAGE);
    for (const entry of page) {
      const data = decodeData("StepCommitted", entry.data);
      texts = applyDelta(texts, data.delta);
      last = data.step;
      yield { entry, data, texts };
    }
    if (page.length < PAGE) return;
  }
}

interface TextsAt {
  readonly texts: ChannelTexts;
  /** The messages delivered before the snapshot, and the `seq` of its entry. */
  readonly delivered: readonly DeliveredMessage[];
  readonly deliveredUpTo: number;
  /** The entry of the step; undefined if the snapshot belongs to this step. */
  readonly entry: Entry | undefined;
}

/** run-checkpoints.T1 */
async function readTextsAt(store: Store, run: RunNumber, step: number): Promise<TextsAt> {
  const whole = await store.findCheckpoint(run, step, true);
  if (whole?.state === undefined)
    throw new RepriseError(
      "STORE_CORRUPT",
      `Run number ${run} has no snapshot at or before step ${step}. Run \`reprise doctor\`.`,
    );
  const { delivered, texts } = readSnapshot(whole.state);
  let state = texts;
  let entry: Entry | undefined;
  for (const next of await store.readSteps(run, whole.step, step)) {
    state = applyDelta(state, decodeData("StepCommitted", next.data).delta);
    entry = next;
  }
  return { texts: state, delivered, deliveredUpTo: whole.seq, entry };
}

/** A committed step with its entry, its state and the messages delivered before it. */
export async function readStepAt(
  store: Store,
  { range, row }: FoundCheckpoint,
): Promise<CommittedStep & Omit<TextsAt, "entry">> {
  const { entry: last, ...at } = await readTextsAt(store, range.run, row.step);
  const entry = last ?? (await store.readSteps(range.run, row.step - 1, row.step))[0];
  if (entry === undefined)
    throw new RepriseError(
      "STORE_CORRUPT",
      `Step ${row.step} of run ${range.id} has no entry. Run \`reprise doctor\`.`,
    );
  return { ...at, entry, data: decodeData("StepCommitted", entry.data) };
}

function partsOf(
  { rngSeed }: Lineage,
  { id }: LineageRange,
  data: StepCommittedData,
  { at }: Entry,
  texts: ChannelTexts,
  recordedIO: readonly RecordedIO[] | undefined,
): CheckpointParts {
  return { runId: id, rngSeed, data, at, texts, ...(recordedIO && { recordedIO }) };
}

/** The calls recorded between the previous step's entry and this one's. A fork's first step made no calls itself. */
async function readIO(
  store: Store,
  { ranges }: Lineage,
  range: LineageRange,
  { step, seq }: { readonly step: number; readonly seq: number },
): Promise<readonly RecordedIO[]> {
  if (step === 0) return [];
  if (step === range.from) {
    const before = ranges[ranges.indexOf(range) - 1];
    if (before === undefined) return [];
    const origin = await store.findCheckpoint(before.run, step, false);
    if (origin?.step !== step) return [];
    return callsOf(store, before.run, step, origin.seq);
  }
  return callsOf(store, range.run, step, seq);
}

async function callsOf(store: Store, run: RunNumber, step: number, seq: number): Promise<readonly RecordedIO[]> {
  const [before] = await store.readSteps(run, step - 2, step - 1);
  if (before === undefined) return [];
  const entries = [before];
  for (let after = before.seq; after < seq - 1;) {
    const page = await store.readJournal(run, after, Math.min(ENTRIES, seq - 1 - after));
    entries.push(...page.filter(({ type }) => type === "OperationCompleted" || type === "OperationFailed"));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.seq;
  }
  return recordedCalls(entries.map(journalEntryOf));
}

export function checkAt(at: unknown, what: string): CheckpointAt {
  if (Number.isSafeInteger(at) && (at as number) >= 0) return at as number;
  if (typeof at === "object" && at !== null && !Array.isArray(at)) {
    checkOptionNames(at, ["label"], what);
    return { label: checkName((at as { label?: unknown }).label, `${what}: label`) };
  }
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected a step of 0 or more, or { label: "…" }, got ${inspect(at, { depth: 1 })}.`,
  );
}
