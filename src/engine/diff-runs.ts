// Diff: two runs step by step, from the first step after which they differ.
//
// DF1. Steps that two runs have in common, because one was forked from the other or both from a third, are not read at all.
// DF2. Compared is what a step left behind: the state, channel by channel, and what runs next. Keys hold the run's id and
//      times are chance, so neither counts.

import { inspect } from "node:util";
import { checkOptionNames, decode, encode, RepriseError } from "../base/index.ts";
import type { ChannelTexts, RunRecord, Store, FrontierItemData } from "../kernel/index.ts";
import { readLineage, type Lineage } from "./lineage.ts";
import { readSteps, type CommittedStep } from "./run-checkpoints.ts";

/** What a channel holds in either run; absent where it has no such channel, or has ended. */
export interface ChannelDiff {
  readonly here?: unknown;
  readonly there?: unknown;
}
/** A step after which two runs differ. */
export interface StepDiff {
  readonly step: number;
  /** Which of the runs have this step: one may have ended, or not come so far. */
  readonly in: "both" | "here" | "there";
  /** Those that differ. */
  readonly channels: Readonly<Record<string, ChannelDiff>>;
  /** The nodes that run next, where those differ. */
  readonly next?: { readonly here?: readonly string[]; readonly there?: readonly string[] };
}
/** How two runs differ. */
export interface RunDiff {
  /** The first step after which they do; undefined where they do not. */
  readonly firstDivergence: number | undefined;
  /** The steps after which they differ, from that one on. */
  readonly steps: readonly StepDiff[];
  /** There are further steps that differ; ask with a higher limit. */
  readonly more: boolean;
}
/** Options of `run.diff`. */
export interface DiffOptions {
  /** At most this many steps that differ; default 100. */
  limit?: number;
}

const LIMIT = 100;

export interface Side {
  readonly store: Store;
  readonly record: RunRecord;
}

export async function diffRuns(here: Side, there: Side, options: DiffOptions = {}): Promise<RunDiff> {
  checkOptionNames(options, ["limit"], "diff");
  const { limit = LIMIT } = options;
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new RepriseError("BAD_OPTIONS", `diff: expected a limit of 1 or more, got ${inspect(limit)}.`);
  const lineages = await Promise.all([readLineage(here.store, here.record), readLineage(there.store, there.record)]);
  const shared = here.store === there.store ? sharedUpTo(...lineages) : -1;
  const steps: StepDiff[] = [];
  for await (const [a, b] of pairs(walk(here.store, lineages[0], shared), walk(there.store, lineages[1], shared))) {
    const diff = stepDiff(a, b);
    if (diff === undefined) continue;
    if (steps.length === limit) return { firstDivergence: steps[0]?.step, steps, more: true };
    steps.push(diff);
  }
  return { firstDivergence: steps[0]?.step, steps, more: false };
}

/** DF1. The last step of which both have the same row; -1 where there is none. */
function sharedUpTo(a: Lineage, b: Lineage): number {
  let shared = -1;
  for (const [index, one] of a.ranges.entries()) {
    const other = b.ranges[index];
    if (other?.run !== one.run) return shared;
    shared = Math.min(one.upTo, other.upTo);
    if (one.upTo !== other.upTo) return shared;
  }
  return shared;
}

async function* walk(store: Store, { ranges }: Lineage, after: number): AsyncGenerator<CommittedStep> {
  for (const range of ranges) if (after < range.upTo) yield* readSteps(store, range, after);
}

type Pair<T> = readonly [T | undefined, T | undefined];

/** Both have a step of each number until one is at its end. */
async function* pairs<T>(a: AsyncGenerator<T>, b: AsyncGenerator<T>): AsyncIterable<Pair<T>> {
  try {
    for (;;) {
      const [one, other] = [await a.next(), await b.next()];
      if (one.done === true && other.done === true) return;
      yield [one.done === true ? undefined : one.value, other.done === true ? undefined : other.value];
    }
  } finally {
    await Promise.all([a.return(undefined), b.return(undefined)]);
  }
}

/** DF2. Undefined where they are the same. */
function stepDiff(a: CommittedStep | undefined, b: CommittedStep | undefined): StepDiff | undefined {
  const step = (a ?? b)!.data.step;
  const channels = channelsOf(a?.texts ?? new Map(), b?.texts ?? new Map());
  const next = nextOf(a?.data.frontier, b?.data.frontier);
  if (a !== undefined && b !== undefined && Object.keys(channels).length === 0 && next === undefined) return undefined;
  const where = b === undefined ? "here" : a === undefined ? "there" : "both";
  return { step, in: where, channels, ...(next && { next }) };
}

function channelsOf(a: ChannelTexts, b: ChannelTexts): Record<string, ChannelDiff> {
  const channels: Record<string, ChannelDiff> = {};
  for (const name of [...new Set([...a.keys(), ...b.keys()])].sort()) {
    const [here, there] = [a.get(name), b.get(name)];
    if (here === there) continue;
    channels[name] = {
      ...(here !== undefined && { here: decode(here) }),
      ...(there !== undefined && { there: decode(there) }),
    };
  }
  return channels;
}

function nextOf(a?: readonly FrontierItemData[], b?: readonly FrontierItemData[]): StepDiff["next"] {
  if (a !== undefined && b !== undefined && encode(a) === encode(b)) return undefined;
  const nodes = (items: readonly FrontierItemData[]): string[] => items.map(({ node }) => node);
  return { ...(a && { here: nodes(a) }), ...(b && { there: nodes(b) }) };
}
