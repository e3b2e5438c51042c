// Diff: compares two runs, from the first difference on: a graph step by step, a workflow by command, a flow by node.
//
// diff-runs.D1. Steps that both runs share, because one was forked from the other or both from a third, are not read.
// diff-runs.D2. A step is compared by its state, channel by channel, and by the nodes that run next. Keys contain the run's
//   id and times vary, so neither is compared.

import { inspect } from "node:util";
import { checkOptionNames, decode, encode, RepriseError } from "../base/index.ts";
import type { ChannelTexts, RunRecord, Store, FrontierItemData } from "../kernel/index.ts";
import type { WaitOptions } from "./abort.ts";
import { diffCommands, type WorkflowDiff } from "./diff-commands.ts";
import { diffNodes, type FlowDiff } from "./diff-nodes.ts";
import type { FlowBody } from "../flow/index.ts";
import { readLineage, type Lineage } from "../explain/index.ts";
import { readSteps, type CommittedStep } from "./run-checkpoints.ts";

/** The value of a channel in both runs; absent in a run that lacks the channel or the step. */
export interface ChannelDiff {
  readonly here?: unknown;
  readonly there?: unknown;
}
/** A step after which two runs differ, in `RunDiff.steps`. */
export interface StepDiff {
  readonly step: number;
  /** Which runs have this step; one of them may have ended or not reached it. */
  readonly in: "both" | "here" | "there";
  /** The channels that differ. */
  readonly channels: Readonly<Record<string, ChannelDiff>>;
  /** The nodes that run next, if they differ. */
  readonly next?: { readonly here?: readonly string[]; readonly there?: readonly string[] };
}
/** How two runs of a graph differ, as `run.diff` returns it. */
export interface RunDiff {
  /** The first step after which they differ; undefined if they do not. */
  readonly firstDivergence: number | undefined;
  /** The steps after which they differ. */
  readonly steps: readonly StepDiff[];
  /** True if further steps differ; raise the limit to read them. */
  readonly more: boolean;
}
/** Options of `run.diff`. */
export interface DiffOptions extends WaitOptions {
  /** At most this many steps, commands or nodes that differ; default 100. */
  limit?: number;
}

const LIMIT = 100;

/** What `run.diff` returns for a definition. Of a run whose kind is not known, `"steps" in diff` tells a graph. */
export type RunDiffOf<D> = D extends { readonly kind: "graph" }
  ? RunDiff
  : D extends { readonly kind: "flow" }
    ? FlowDiff
    : D extends { readonly kind: "workflow" }
      ? WorkflowDiff
      : RunDiff | WorkflowDiff | FlowDiff;

export interface Side {
  readonly store: Store;
  readonly record: RunRecord;
}

/** `findFlow`: the definition of a flow, if this process has it. */
export async function diffRuns(
  here: Side,
  there: Side,
  options: DiffOptions = {},
  findFlow: (record: RunRecord) => FlowBody | undefined,
): Promise<RunDiff | WorkflowDiff | FlowDiff> {
  checkOptionNames(options, ["limit", "signal"], "diff");
  const { limit = LIMIT } = options;
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new RepriseError("BAD_OPTIONS", `diff: expected a limit of 1 or more, got ${inspect(limit)}.`);
  const { kind, definition, id } = here.record;
  if (there.record.definition !== definition)
    throw new RepriseError(
      "USAGE",
      `Run ${id} is a run of ${definition}, run ${there.record.id} of ${there.record.definition}. Only runs of the same definition can be compared.`,
    );
  if (kind === "workflow" && there.record.kind === kind) return diffCommands(here, there, limit);
  if (kind === "flow" && there.record.kind === kind) return diffNodes(here, there, limit, findFlow(here.record));
  return diffSteps(here, there, limit);
}

async function diffSteps(here: Side, there: Side, limit: number): Promise<RunDiff> {
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

/** diff-runs.D1. The last step that both share; -1 if they share none. */
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

/** Pairs of steps with the same number; when one run has fewer, its part is undefined. */
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

/** diff-runs.D2. Undefined if they are the same. */
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
