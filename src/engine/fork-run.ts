// Fork: another run from a committed step, with a changed state where that is wanted.
//
// FR1. Everything is checked before anything is written: the step is committed, the channels exist, the values can be kept.
// FR2. No code takes part but in saying what a channel may hold: whoever has the store alone can fork.
// FR3. The same id with the same content again is the same fork; with other content it is refused.

import { inspect } from "node:util";
import { checkName, checkOptionNames, checkRunId, decode, encode, RepriseError, type Duration } from "../base/index.ts";
import { forkStep, type StepData } from "../graph/index.ts";
import {
  checkDeadline,
  forkedOf,
  isCancel,
  isTold,
  toldAfter,
  wholeText,
  type ChannelTexts,
  type Entry,
  type Forked,
  type ForkOutcome,
  type Line,
  type RunRecord,
  type Store,
  type Told,
} from "../kernel/index.ts";
import { newRun } from "../worker/index.ts";
import { entryData, type WorkflowBody } from "../workflow/index.ts";
import { getCheckpoint, readLineage, type Found, type Lineage } from "./lineage.ts";
import { checkAt, standAt } from "./run-checkpoints.ts";
import type { HandleHost } from "./run-handle.ts";
import { checkStart } from "./start-options.ts";

/** How a fork differs from the run it comes from. */
export interface ForkSettings<State> {
  /** Values that replace those of the checkpoint, by channel; no reducer is asked. */
  patch?: Partial<State>;
  /** Default: a random one. */
  id?: string;
  tags?: readonly string[];
  priority?: number;
  /** Counted from now; default: that of the run it comes from. */
  deadline?: Duration;
  /** Of the definition; default: that of the run it comes from. */
  version?: number;
}
/** From which step, and how the fork differs. */
export type ForkOptions<State> = ForkSettings<State> &
  ({ step: number; label?: never } | { label: string; step?: never });

const ENTRIES = 256;
const OPTIONS = ["step", "label", "patch", "id", "tags", "priority", "deadline", "version"];

export async function forkRun(host: HandleHost, record: RunRecord, given: unknown): Promise<RunRecord> {
  const { store, worker } = host;
  const options = checkOptions(given);
  const { tags, priority } = checkStart(options);
  const id = options.id === undefined ? host.newId() : checkRunId(options.id);
  const deadlineMs = options.deadline === undefined ? undefined : checkDeadline(options.deadline, "fork");
  const version = checkVersion(host, record, options.version);
  const lineage = await readLineage(store, record);
  const found = await getCheckpoint(store, lineage, options.at);
  const stood = await standAt(store, found);
  const body = host.registry.findWorkflow(record.definition, version);
  const texts = patched(stood.texts, options.patch, record, body, host);
  const told = await toldBy(store, found, stood.told, stood.toldUpTo);
  const { data, key, parts } = forkStep(id, stood.data as StepData, texts);
  const { stretch, row } = found;
  const forked: Forked = { run: stretch.id, step: row.step, seq: row.seq, chain: row.chain };
  const run = newRun(
    { kind: "graph", name: record.definition, version, ports: body?.ports ?? {} },
    {
      id,
      input: undefined,
      tags,
      priority,
      // It stands in the queue its origin stood in, under the same key.
      line: lineage.started["line"] as Line | undefined,
      runtime: host.runtime,
      payloadLimit: host.limits?.maxBytes,
      salt: host.newSalt?.(),
      deadlineMs: deadlineMs ?? inheritedDeadline(lineage),
      forked: encode({ ...forked, ...(told.length > 0 && { told }) }),
      seed: lineage.rngSeed,
    },
  );
  const outcome = await worker.pump.submit({
    write: "fork",
    run,
    origin: { run: stretch.run, step: row.step, key: row.key },
    data,
    checkpoint: { step: row.step, key, label: row.label, state: wholeText(told, parts) },
    settled: told.map(({ data: { promiseId } }) => String(promiseId)),
  });
  const made = checkOutcome(outcome, id, record, forked, data);
  worker.wake();
  if (run.deadlineMs !== undefined) worker.dueAt(made.createdAt + run.deadlineMs);
  return made;
}

type Checked = ForkSettings<Record<string, unknown>> & { readonly at: number | { readonly label: string } };

function checkOptions(given: unknown): Checked {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new RepriseError("BAD_OPTIONS", `fork: expected { step } or { label }, got ${inspect(given, { depth: 0 })}.`);
  checkOptionNames(given, OPTIONS, "fork");
  const options = given as ForkSettings<Record<string, unknown>> & { step?: unknown; label?: unknown };
  if ((options.step === undefined) === (options.label === undefined))
    throw new RepriseError("BAD_OPTIONS", "fork: expected a step or a label to begin from, and not both.");
  const at =
    options.label === undefined ? checkAt(options.step, "fork") : { label: checkName(options.label, "fork: label") };
  const { patch } = options;
  if (patch !== undefined && !isPlain(patch))
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: expected an object of values by channel as patch, got ${inspect(patch, { depth: 0 })}.`,
    );
  return { ...options, at };
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function checkVersion({ registry }: HandleHost, { definition, version }: RunRecord, wanted: unknown): number {
  if (wanted === undefined) return version;
  if (!Number.isSafeInteger(wanted) || (wanted as number) < 1)
    throw new RepriseError("BAD_OPTIONS", `fork: expected a version of 1 or more, got ${inspect(wanted)}.`);
  return registry.getWorkflow(definition, wanted as number).version;
}

/** FR1 */
function patched(
  before: ChannelTexts,
  patch: Readonly<Record<string, unknown>> = {},
  { id, definition }: RunRecord,
  body: WorkflowBody | undefined,
  host: HandleHost,
): ChannelTexts {
  const known = new Set([...before.keys(), ...(body?.channels ?? [])]);
  const after = new Map(before);
  for (const [name, value] of Object.entries(patch)) {
    if (!known.has(name))
      throw new RepriseError(
        "BAD_INPUT",
        `fork: ${definition} has no channel ${name}; its channels are: ${[...known].join(", ") || "none"}.`,
        { details: { run: id, channel: name } },
      );
    const problem =
      body?.checkChannel === undefined ? otherShape(before.get(name), value) : body.checkChannel(name, value);
    if (problem !== undefined)
      throw new RepriseError("BAD_INPUT", `fork: the channel ${name} of ${definition} ${problem}.`, {
        details: { run: id, channel: name },
      });
    after.set(name, entryData.encodeNamed(`The patch of ${name}`, value, host.limits) ?? encode(undefined));
  }
  return new Map([...after].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** FR2. Without the code: a list stays a list, and an object an object, because a channel may build on it. */
function otherShape(before: string | undefined, value: unknown): string | undefined {
  const shape = (one: unknown): string => (Array.isArray(one) ? "list" : isPlain(one) ? "object" : "value");
  const now = before === undefined ? undefined : decode(before);
  const expected = shape(now);
  if (expected === "value" || shape(value) === expected) return undefined;
  return `holds a${expected === "object" ? "n" : ""} ${expected}, got ${inspect(value, { depth: 0 })}; with the graph's code at hand its own rule is asked`;
}

/** What the run had been told by then and later steps may still ask for; that it was to stop is not handed on. */
async function toldBy(
  store: Store,
  { stretch, row }: Found,
  kept: readonly Told[],
  keptUpTo: number,
): Promise<readonly Told[]> {
  let told = kept;
  for (let after = keptUpTo; after < row.seq;) {
    const page = await store.readJournal(stretch.run, after, Math.min(ENTRIES, row.seq - after));
    for (const { type, data } of page) {
      if (isTold(type)) told = [...told, { type, data: decode(data) as Told["data"] }];
      if (type === "RunRetried") told = toldAfter(told, decode(data) as Told["data"]);
    }
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.seq;
  }
  return told.filter(({ type }) => !isCancel(type));
}

function inheritedDeadline({ started }: Lineage): number | undefined {
  return typeof started["deadline"] === "number" ? started["deadline"] : undefined;
}

/** FR3 */
function checkOutcome(outcome: ForkOutcome, id: string, origin: RunRecord, forked: Forked, data: string): RunRecord {
  if (outcome.status === "started") return outcome.record;
  const from = `step ${forked.step} of run ${forked.run}`;
  if (outcome.status === "no-checkpoint")
    throw new RepriseError("CHECKPOINT_NOT_FOUND", `${from} was pruned before the fork could be made.`, {
      details: { run: origin.id, at: forked.step },
    });
  if (outcome.status === "exists" && isSame(outcome.first, outcome.second, forked, data)) return outcome.record;
  const is = outcome.status === "exists" ? describe(outcome.first) : `expected to follow ${outcome.record.definition}`;
  const wanted = is === `a fork from ${from}` ? "this one with another patch" : `a fork from ${from}`;
  throw new RepriseError("START_CONFLICT", `Run ${id} is ${is}; it cannot become ${wanted}. Use another id.`, {
    details: { run: id, expected: is, actual: `a fork from ${from}` },
  });
}

function isSame(first: Entry, second: Entry | undefined, forked: Forked, data: string): boolean {
  const there = forkedOf(decode(first.data));
  return there !== undefined && there.run === forked.run && there.step === forked.step && second?.data === data;
}

function describe(first: Entry): string {
  const there = forkedOf(decode(first.data));
  return there === undefined ? "there already, and is no fork" : `a fork from step ${there.step} of run ${there.run}`;
}
