// Explain: why a run does not move. The facts are read first (facts.ts); the decision is a pure function of them (decide.ts).

import type { RunRecord, Store } from "../kernel/index.ts";
import { decide, holdingWorker } from "./decide.ts";
import { readFacts, type ExplainOptions, type RunFacts } from "./facts.ts";
import type { HoldingWorker, WaitReason } from "./reasons.ts";
import { withAdvice } from "./sentences.ts";

const MAX_DEPTH = 5;

/** Empty: the run has ended, or no longer exists. The most decisive reason comes first. */
export async function explain(
  store: Store,
  record: RunRecord,
  options: ExplainOptions = {},
): Promise<readonly WaitReason[]> {
  return (await explainRun(store, record, options)).waitsFor;
}

export interface ExplainedRun {
  readonly waitsFor: readonly WaitReason[];
  /** The worker that holds the run's turn. */
  readonly worker: HoldingWorker | undefined;
  /** The id of its parent. */
  readonly parent: string | undefined;
}

export async function explainRun(store: Store, record: RunRecord, options: ExplainOptions = {}): Promise<ExplainedRun> {
  const facts = await factsAt(store, record, options, 0);
  if (facts === undefined) return { waitsFor: [], worker: undefined, parent: undefined };
  const { work, workers, now } = facts;
  const { worker } = work.turn;
  return {
    waitsFor: reasonsOf(facts),
    worker: worker === undefined ? undefined : holdingWorker(worker, workers, now),
    parent: work.parent,
  };
}

function factsAt(
  store: Store,
  record: RunRecord,
  options: ExplainOptions,
  depth: number,
): Promise<RunFacts | undefined> {
  if (depth >= MAX_DEPTH) return readFacts(store, record, options, undefined);
  return readFacts(store, record, options, async (child) => {
    const facts = await factsAt(store, child, {}, depth + 1);
    return facts === undefined ? [] : reasonsOf(facts);
  });
}

/** Pure. */
export function reasonsOf(facts: RunFacts): readonly WaitReason[] {
  const { id, arrivals, read } = facts.record;
  const advised = { id, now: facts.now, hasUnread: arrivals > read };
  return decide(facts).map((reason) => withAdvice(reason, advised));
}
