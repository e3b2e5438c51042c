// engine.evaluate: forks recorded runs, waits for the forks, and compares each with its run.
//
// evaluate.V1. The id of a fork is derived from the evaluation and its run. So the same evaluation again finds the forks that have
//   ended, and a process that was killed loses no more than the forks under way, which a worker continues.
// evaluate.V2. Forks carry the tag of their evaluation (fork.F9) and are never evaluated themselves.
// evaluate.V3. A fork that stops or waits in vain is terminated, so that no operator is called for it. Its last entry keeps why.
// evaluate.V4. With a budget, forks run one after the other, each with what is left: together they cannot spend more.

import { inspect } from "node:util";
import { checkOptionNames, checkRunId, digestOf, RepriseError, toMs } from "../base/index.ts";
import {
  checkBudget,
  EVALUATION_TAG,
  hasEnded,
  type BudgetOptions,
  type Cost,
  type RunRecord,
} from "../kernel/index.ts";
import { checkSignal, unlessAborted } from "./abort.ts";
import type { RunInfo } from "./api.ts";
import { evaluateRun, type EvaluationHost, type RunEvaluation } from "./evaluate-run.ts";
import type { EvaluateOptions, EvaluationPlace, EvaluationReport } from "./evaluation.ts";
import { INPUT, isPlain } from "./fork-outcome.ts";
import { keepReport, summaryOf } from "./evaluation-report.ts";

const OPTIONS = [
  "answers",
  "at",
  "budget",
  "concurrency",
  "effects",
  "id",
  "models",
  "onProgress",
  "patch",
  "runs",
  "score",
  "signal",
  "timeout",
  "version",
];
const CONCURRENCY = 16;
const MAX_CONCURRENCY = 1_000;
const LIMIT = 100;
const TIMEOUT_MS = 60_000;
const MAX_FORK_ID = 200;

/** The definition that is evaluated. */
export interface EvaluatedDefinition {
  readonly name: string;
  readonly kind: RunRecord["kind"];
  readonly version: number;
}

export async function evaluate(
  host: EvaluationHost,
  definition: EvaluatedDefinition,
  given: EvaluateOptions,
): Promise<EvaluationReport> {
  const options = checkOptions(given);
  const signal = checkSignal(options.signal, "evaluate");
  signal?.throwIfAborted();
  const id = options.id === undefined ? `eval-${host.newId()}` : checkRunId(options.id);
  const startedAt = new Date(host.store.now());
  const runs = await selectRuns(host, definition, options);
  const one: Omit<RunEvaluation, "forkId" | "budget"> = {
    definition,
    options,
    place: placeOf(definition, options.at),
    version: options.version ?? (options.at === undefined ? definition.version : undefined),
    tag: `${EVALUATION_TAG}${id}`,
    timeoutMs: options.timeout === undefined ? TIMEOUT_MS : toMs(options.timeout, "evaluate: timeout"),
    signal,
  };
  const left = options.budget === undefined ? undefined : { ...options.budget };
  let done = 0;
  const rows = await inParallel(runs, left === undefined ? (options.concurrency ?? CONCURRENCY) : 1, async (run) => {
    signal?.throwIfAborted();
    const row = await unlessAborted(
      signal,
      evaluateRun(host, run, { ...one, forkId: forkIdOf(id, run.id), ...(left && { budget: { ...left } }) }),
    );
    if (left !== undefined) subtract(left, row.cost);
    done += 1;
    options.onProgress?.(done, runs.length);
    return row;
  });
  const report: EvaluationReport = {
    id,
    definition: definition.name,
    startedAt,
    endedAt: new Date(host.store.now()),
    effects: options.effects ?? "recorded",
    ...(options.at !== undefined && { at: options.at }),
    ...(options.models !== undefined && { models: options.models }),
    ...summaryOf(rows, Object.keys(options.score ?? {})),
  };
  await keepReport(host, report);
  return report;
}

function checkOptions(given: unknown): EvaluateOptions {
  if (!isPlain(given))
    throw new RepriseError("BAD_OPTIONS", `evaluate: expected { runs }, got ${inspect(given, { depth: 0 })}.`);
  checkOptionNames(given, OPTIONS, "evaluate");
  const options = given as unknown as EvaluateOptions;
  const { runs, score = {}, concurrency = CONCURRENCY, onProgress, budget } = options;
  const bad = (message: string): RepriseError => new RepriseError("BAD_OPTIONS", `evaluate: ${message}`);
  const isList = Array.isArray(runs) && runs.every((run) => typeof run === "string");
  if (!isPlain(runs) && !isList)
    throw bad(`expected a filter or ids of runs as runs, such as { tag: "prod" }, got ${inspect(runs, { depth: 0 })}.`);
  if (!isPlain(score) || !Object.values(score).every((scorer) => typeof scorer === "function"))
    throw bad(`expected functions by name as score, got ${inspect(score, { depth: 0 })}.`);
  if (!Number.isSafeInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY)
    throw bad(`expected a concurrency of 1 to ${MAX_CONCURRENCY}, got ${inspect(concurrency)}.`);
  if (onProgress !== undefined && typeof onProgress !== "function")
    throw bad(`expected a function as onProgress, got ${inspect(onProgress, { depth: 0 })}.`);
  if (budget !== undefined) checkBudget(budget, "evaluate");
  return options;
}

/** What `run.fork` calls the place, by the kind of the definition. */
function placeOf({ kind, name }: EvaluatedDefinition, at: EvaluationPlace | undefined): object {
  if (at === undefined) return kind === "graph" ? { step: 0 } : { at: INPUT };
  if (!isPlain(at) || Object.keys(at).length !== 1)
    throw new RepriseError(
      "BAD_OPTIONS",
      `evaluate: expected one place such as { node: "think" } as at, got ${inspect(at, { depth: 1 })}.`,
    );
  if (kind === "graph" && !("command" in at)) return at;
  if (kind === "workflow" && "call" in at) return at;
  if (kind === "workflow" && "command" in at) return { at: at["command"] };
  if (kind === "flow" && "node" in at) return { at: at["node"] };
  const [what] = Object.keys(at);
  throw new RepriseError("BAD_OPTIONS", `evaluate: ${what} is no place of ${name}, which is a ${kind}.`);
}

/** The runs to fork, newest first as `engine.list` gives them. */
async function selectRuns(
  host: EvaluationHost,
  { name }: EvaluatedDefinition,
  { runs }: EvaluateOptions,
): Promise<readonly RunInfo[]> {
  if (Array.isArray(runs)) return Promise.all([...new Set(runs as string[])].map((id) => getEnded(host, name, id)));
  const {
    limit = LIMIT,
    status = ["completed", "failed"],
    ...filter
  } = runs as Exclude<typeof runs, readonly string[]>;
  if (filter.definition !== undefined && filter.definition !== name)
    throw new RepriseError("BAD_OPTIONS", `evaluate: runs of ${filter.definition} are no runs of ${name}.`);
  const selected: RunInfo[] = [];
  if (limit === 0) return selected;
  for await (const info of host.client.list({ ...filter, status, definition: name })) {
    if (!hasEnded(info.status) || info.tags.some((tag) => tag.startsWith(EVALUATION_TAG))) continue;
    selected.push(info);
    if (selected.length >= limit) break;
  }
  return selected;
}

async function getEnded({ client }: EvaluationHost, definition: string, id: string): Promise<RunInfo> {
  const info = await client.find(id);
  if (info === undefined) throw new RepriseError("RUN_NOT_FOUND", `evaluate: there is no run ${id}.`);
  if (info.definition !== definition)
    throw new RepriseError("BAD_OPTIONS", `evaluate: run ${id} is a run of ${info.definition}, not of ${definition}.`);
  if (hasEnded(info.status)) return info;
  throw new RepriseError(
    "BAD_OPTIONS",
    `evaluate: run ${id} is ${info.status}. Only runs that have ended are evaluated.`,
  );
}

/** evaluate.V1 */
export function forkIdOf(evaluation: string, run: string): string {
  const id = `${evaluation}/${run}`;
  return id.length <= MAX_FORK_ID ? id : `${evaluation.slice(0, MAX_FORK_ID - 65)}/${digestOf(evaluation, run)}`;
}

/** evaluate.V4 */
function subtract(left: { -readonly [K in keyof BudgetOptions]: BudgetOptions[K] }, cost: Cost = {}): void {
  for (const unit of ["usd", "tokens", "calls"] as const)
    if (left[unit] !== undefined) left[unit] = Math.max(0, left[unit] - (cost[unit] ?? 0));
}

/** In the order of the items. The first error ends it. */
async function inParallel<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const next = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, next));
  return results;
}
