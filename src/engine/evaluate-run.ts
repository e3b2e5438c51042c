// One run of an evaluation: its fork, what became of the fork, and the scores (evaluate.V1 to evaluate.V4).

import { RepriseError, systemTimers } from "../base/index.ts";
import { decodeData, hasEnded, type BudgetOptions, type Cost, type RunRecord, type Store } from "../kernel/index.ts";
import type { Client, Run, RunInfo } from "./api.ts";
import type { EvaluatedDefinition } from "./evaluate.ts";
import type { EvaluatedRun, EvaluateOptions, OutcomeError, RunOutcome } from "./evaluation.ts";
import { evidenceOf, failureOf } from "./run-info.ts";

export interface EvaluationHost {
  readonly client: Client<any>;
  readonly store: Store;
  newId(): string;
}

export interface RunEvaluation {
  readonly definition: EvaluatedDefinition;
  readonly options: EvaluateOptions;
  /** As `run.fork` takes it. */
  readonly place: object;
  readonly version: number | undefined;
  readonly forkId: string;
  readonly tag: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** What is left of the budget; undefined: there is none. */
  readonly budget?: BudgetOptions;
}

/** A run for which these refuse a fork is skipped: it never came to the place, or its code is gone. */
const SKIPPED: ReadonlySet<unknown> = new Set(["CHECKPOINT_NOT_FOUND", "REPLAY_MISMATCH", "STORE_CORRUPT"]);

export async function evaluateRun(host: EvaluationHost, info: RunInfo, one: RunEvaluation): Promise<EvaluatedRun> {
  const { definition, budget } = one;
  const was = await readOutcome(host, info.id);
  const skip = (skipped: OutcomeError): EvaluatedRun => ({ run: info.id, was, scores: {}, same: false, skipped });
  const [used] = budget === undefined ? [] : (["usd", "tokens", "calls"] as const).filter((unit) => budget[unit] === 0);
  if (used !== undefined)
    return skip({
      name: "RepriseError",
      code: "BUDGET_REACHED",
      message: `The budget of the evaluation has no ${used} left.`,
    });
  const run = host.client.get(definition.name, info.id) as Run<any>;
  let fork: Run<any>;
  try {
    fork = await run.fork(forkOptions(one));
  } catch (error) {
    if (!SKIPPED.has((error as RepriseError).code)) throw error;
    return skip(errorOf(error));
  }
  await endOf(host, fork, one);
  const is = await readOutcome(host, fork.id);
  const { firstDivergence } = (await run.diff(fork, { limit: 1 })) as { readonly firstDivergence?: unknown };
  const cost = await costOf(fork);
  return {
    run: info.id,
    fork: fork.id,
    was,
    is,
    ...(await scoresOf(one.options.score, was, is)),
    ...(firstDivergence !== undefined && { firstDifference: differenceText(definition.kind, firstDivergence) }),
    same: firstDivergence === undefined && is.status === was.status,
    ...(cost !== undefined && { cost }),
  };
}

function forkOptions({ options, place, version, forkId, tag, budget }: RunEvaluation): never {
  const { models, answers, patch, effects = "recorded", signal } = options;
  return {
    ...place,
    id: forkId,
    tags: [tag],
    effects,
    ...(models !== undefined && { models }),
    ...(answers !== undefined && { answers }),
    ...(patch !== undefined && { patch }),
    ...(version !== undefined && { version }),
    ...(budget !== undefined && { budget: { ...budget, onReached: "fail" } }),
    ...(signal !== undefined && { signal }),
  } as never;
}

/** How often a fork that has not ended is read. */
const READ_MS = 250;

/** evaluate.V3. Waits for the end of the fork. */
async function endOf(host: EvaluationHost, fork: Run<any>, { timeoutMs, signal }: RunEvaluation): Promise<void> {
  const stopped = new AbortController();
  const watched = watch(host.store, fork.id, timeoutMs, stopped.signal);
  const ended = fork.result({ ...(signal && { signal }) }).then(
    () => undefined,
    (error: unknown): undefined => {
      signal?.throwIfAborted();
      const { code } = error as RepriseError;
      if (code === "ENGINE_CLOSED" || code === "RUN_NOT_FOUND") throw error;
      return undefined;
    },
  );
  let why: string | undefined;
  try {
    why = await Promise.race([ended, watched]);
  } finally {
    stopped.abort();
  }
  const record = await host.store.findRun(fork.id);
  if (record === undefined || hasEnded(record.status)) return;
  await fork.terminate(stopText(record, why)).catch((error: unknown) => {
    // It ended meanwhile.
    if ((error as RepriseError).code !== "RUN_ENDED") throw error;
  });
}

/** Says why the fork will not end, as soon as that is known. Never settles otherwise. */
async function watch(store: Store, id: string, timeoutMs: number, stop: AbortSignal): Promise<string> {
  const until = store.now() + timeoutMs;
  for (let before = ""; ;) {
    await new Promise<void>((resolve) => void systemTimers.set(READ_MS, resolve, { ref: false }));
    if (stop.aborted) return new Promise(() => {});
    const record = await store.findRun(id);
    if (record === undefined || hasEnded(record.status)) continue;
    if (store.now() >= until) return `It has not ended within ${timeoutMs} ms`;
    const { run, head, arrivals, status } = record;
    const now = `${head} ${arrivals} ${status}`;
    const { items = [] } = (status === "waiting" && now === before && (await store.readRunWork(run))) || {};
    const isDue = items.some(({ availableAt }) => availableAt < until);
    if (status === "waiting" && now === before && !isDue && (await store.countChildren(run)) === 0)
      return "It waits for a message that its run did not receive, or for a later time";
    before = now;
  }
}

/** The reason with which a fork is terminated. `readOutcome` reads it. */
function stopText(record: RunRecord, why: string | undefined): string {
  const { code = "EVALUATION_TIMEOUT", message = why ?? "It did not end" } = evidenceOf(record);
  return `evaluation: ${record.status} ${code}: ${message}`;
}
const STOP_TEXT = /^evaluation: (?<status>[a-z_]+) (?<code>[A-Z_]+): (?<message>[^]*)$/;

/** How the run ended, from its first and its last entry. */
async function readOutcome({ store }: EvaluationHost, id: string): Promise<RunOutcome> {
  const record = await store.findRun(id);
  if (record === undefined) throw new RepriseError("RUN_NOT_FOUND", `evaluate: run ${id} was deleted meanwhile.`);
  const { run, head, status } = record;
  const [first] = await store.readJournal(run, 0, 1);
  const [last] = await store.readJournal(run, head - 1, 1);
  const { input } = first?.type === "RunStarted" ? decodeData(first.type, first.data) : {};
  if (last?.type === "RunCompleted")
    return { id, input, status: "completed", output: decodeData(last.type, last.data).output };
  if (last?.type === "RunCancelled") {
    const { reason = "It was canceled." } = decodeData(last.type, last.data) as { readonly reason?: string };
    const { status: as, code, message = reason } = STOP_TEXT.exec(reason)?.groups ?? {};
    const error = { name: "CancelledError", message, ...(code !== undefined && { code }) };
    return { id, input, status: (as ?? status) as "cancelled", error };
  }
  const failure = last?.type === "RunFailed" ? failureOf(last) : undefined;
  return { id, input, status: status as "failed", error: errorOf(failure ?? new Error("No error was recorded.")) };
}

function errorOf(error: unknown): OutcomeError {
  const { name = "Error", message = String(error), code } = (error ?? {}) as Partial<RepriseError>;
  return { name, message, ...(typeof code === "string" && { code }) };
}

async function scoresOf(
  scorers: EvaluateOptions["score"] = {},
  was: RunOutcome,
  is: RunOutcome,
): Promise<Pick<EvaluatedRun, "scores" | "scoreErrors">> {
  const scores: Record<string, number> = {};
  const errors: Record<string, string> = {};
  for (const [name, scorer] of Object.entries(scorers))
    try {
      const score: unknown = await scorer(was, is);
      if (typeof score === "number" && Number.isFinite(score)) scores[name] = score;
      else errors[name] = `expected a number, got ${String(score)}`;
    } catch (error) {
      errors[name] = errorOf(error).message;
    }
  return { scores, ...(Object.keys(errors).length > 0 && { scoreErrors: errors }) };
}

function differenceText(kind: RunRecord["kind"], at: unknown): string {
  return kind === "graph" ? `step ${String(at)}` : String(at);
}

/** Undefined: the fork has no budget. A call whose end is unknown may have been paid for. */
async function costOf(fork: Run<any>): Promise<Cost | undefined> {
  const budget = await fork.budget();
  if (budget === undefined) return undefined;
  const { spent, lost } = budget;
  const total: Cost = {};
  for (const unit of ["usd", "tokens", "calls"] as const)
    if (spent[unit] !== undefined || lost[unit] !== undefined) total[unit] = (spent[unit] ?? 0) + (lost[unit] ?? 0);
  return total;
}
