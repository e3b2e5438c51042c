// Run attempts: the executions of a run's steps, in the order in which they ended.

import type { RunAttemptBody } from "../../contract/index.ts";
import { AttemptReader, journalEntryOf, type RunAttempt, type RunRecord, type Store } from "../../kernel/index.ts";
import { thrownErrorOf } from "../../picture/index.ts";
import { isoOf, type View } from "./view.ts";

const PAGE = 1_000;

export interface AttemptRange {
  readonly limit: number;
  /** How many are skipped. */
  readonly after: number;
  readonly step?: string | undefined;
}

export async function listAttempts(
  store: Store,
  { run, head }: RunRecord,
  view: View,
  { limit, after, step }: AttemptRange,
): Promise<{ items: RunAttemptBody[]; next?: string }> {
  const reader = new AttemptReader(await store.readAttempts(run));
  const items: RunAttemptBody[] = [];
  let skipped = 0;
  /** Whether the page is full, and there is one more. */
  const add = (attempts: readonly RunAttempt[]): boolean => {
    for (const attempt of attempts) {
      if (step !== undefined && attempt.step !== step) continue;
      skipped += 1;
      if (skipped <= after) continue;
      if (items.length === limit) return true;
      items.push(attemptBody(attempt, view));
    }
    return false;
  };
  const next = String(after + limit);
  for (let seq = 0; seq < head;) {
    const page = await store.readJournal(run, seq, Math.min(PAGE, head - seq));
    for (const entry of page) if (add(reader.read(journalEntryOf(entry)))) return { items, next };
    if (page.length === 0) break;
    seq = page.at(-1)!.seq;
  }
  return add(reader.rest()) ? { items, next } : { items };
}

function attemptBody(attempt: RunAttempt, view: View): RunAttemptBody {
  const { step, name, execution, attempt: number, outcome, endedAt, startedAt, tookMs, worker, error } = attempt;
  return {
    ...(step !== undefined && { step }),
    ...(name !== undefined && { name }),
    ...(execution !== undefined && { execution }),
    ...(number !== undefined && { attempt: number }),
    outcome,
    endedAt: isoOf(endedAt),
    ...(startedAt !== undefined && { startedAt: isoOf(startedAt) }),
    ...(tookMs !== undefined && { tookMs }),
    ...(worker !== undefined && { worker }),
    ...(error !== undefined && view.showsPayloads && { error: thrownErrorOf(error, view) }),
  };
}
