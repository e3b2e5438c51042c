// Evaluation report: the summary of an evaluation, and where it is kept.
//
// evaluation-report.R1. A report is kept as the output of a run that has ended, of a definition that no process registers. So every store,
//   the retention of runs, bundles and access rules apply to it without a table of its own.
// evaluation-report.R2. It names the runs and their forks and does not contain their outputs: a reader with the rights to them reads them in the runs.

import { InvariantError, RepriseError, systemRandom } from "../base/index.ts";
import { chainAfter, decodeData, hasEnded, markOf, type Cost, type RunRecord, type Store } from "../kernel/index.ts";
import { newRun } from "../process/index.ts";
import { entryData } from "../workflow/index.ts";
import type { EvaluatedRun, EvaluationCounts, EvaluationReport, RunOutcome, ScoreSummary } from "./evaluation.ts";

/** evaluation-report.R1 */
export const EVALUATION = "reprise.evaluation";

/** The tag of the reports of a definition. */
export function evaluationTag(definition: string): string {
  return `evaluates:${definition}`;
}

const WORST = 5;
const LEASE_MS = 60_000;

export function summaryOf(
  runs: readonly EvaluatedRun[],
  names: readonly string[],
): Pick<EvaluationReport, "runs" | "scores" | "counts" | "cost"> {
  const cost = runs.reduce<Cost | undefined>(
    (sum, run) => (run.cost === undefined ? sum : add(sum, run.cost)),
    undefined,
  );
  return {
    runs,
    scores: Object.fromEntries(names.map((name) => [name, scoreOf(runs, name)])),
    counts: countsOf(runs),
    ...(cost !== undefined && { cost }),
  };
}

function scoreOf(runs: readonly EvaluatedRun[], name: string): ScoreSummary {
  const scored = runs.flatMap(({ run, scores }) => (scores[name] === undefined ? [] : [{ run, score: scores[name] }]));
  const values = scored.map(({ score }) => score);
  const best = Math.max(...values);
  const worst = scored.filter(({ score }) => score < best).toSorted((a, b) => a.score - b.score);
  return {
    mean: values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length,
    min: values.length === 0 ? 0 : Math.min(...values),
    max: values.length === 0 ? 0 : best,
    count: values.length,
    failed: runs.filter(({ scoreErrors }) => scoreErrors?.[name] !== undefined).length,
    worst: worst.slice(0, WORST).map(({ run }) => run),
  };
}

function countsOf(runs: readonly EvaluatedRun[]): EvaluationCounts {
  const skipped = runs.filter(({ is }) => is === undefined).length;
  const same = runs.filter((run) => run.same).length;
  const stopped = runs.filter(({ is }) => is !== undefined && isStopped(is)).length;
  return { total: runs.length, same, changed: runs.length - same - stopped - skipped, stopped, skipped };
}

/** A fork that was stopped: its status is the one that it had then, or its cancellation says why. */
function isStopped({ status, error }: RunOutcome): boolean {
  return !hasEnded(status) || (status === "cancelled" && error.code !== undefined);
}

function add(sum: Cost | undefined, cost: Cost): Cost {
  const total: Cost = { ...sum };
  for (const unit of ["usd", "tokens", "calls"] as const)
    if (cost[unit] !== undefined) total[unit] = (total[unit] ?? 0) + cost[unit];
  return total;
}

/** evaluation-report.R2 */
function storedReport({ runs, ...report }: EvaluationReport): EvaluationReport {
  const short = ({ id, status, error }: RunOutcome): RunOutcome =>
    ({ id, status, ...(error !== undefined && { error }) }) as RunOutcome;
  return {
    ...report,
    runs: runs.map(({ was, is, ...run }) => ({ ...run, was: short(was), ...(is && { is: short(is) }) })),
  };
}

/** evaluation-report.R1. An evaluation that is repeated keeps its first report. */
export async function keepReport({ store }: { readonly store: Store }, report: EvaluationReport): Promise<void> {
  const { id, definition, models = {}, effects } = report;
  const run = newRun(
    { kind: "workflow", name: EVALUATION, version: 1 },
    {
      id,
      input: entryData.encodeInput({ definition, models, effects }),
      tags: [evaluationTag(definition)],
      runtime: "",
      budget: "none",
    },
  );
  const token = systemRandom.token();
  const claim = { worker: await store.registerWorker("evaluation", LEASE_MS), token };
  const [started] = await store.write([{ write: "start", run, claim }]);
  if (started.status !== "started") {
    if (started.record.definition === EVALUATION) return;
    throw new RepriseError(
      "START_CONFLICT",
      `evaluate: ${id} is a run of ${started.record.definition}, so no report can have this id. Use another id.`,
    );
  }
  const data = entryData.runCompletedData(entryData.encodeInput(storedReport(report)));
  const { record } = started;
  const chain = chainAfter(record.chain, "RunCompleted", "", data);
  const at = store.now();
  const [written] = await store.write([
    {
      write: "turn",
      run: record.run,
      token,
      head: 1,
      previousChain: record.chain,
      entries: [{ seq: 2, type: "RunCompleted", command: "", data, at, mark: markOf(chain) }],
      chain,
      read: 0,
      finished: [],
      items: [],
      dropped: [],
      children: [],
      messages: [],
      chunks: [],
      outgoing: [],
      then: "completed",
    },
  ]);
  if (written.status !== "committed") throw new InvariantError(`The report ${id} was not written: ${written.status}.`);
}

/** Undefined: the run is no report, or its report was not written. */
export async function readReport(
  store: Store,
  { run, head, definition }: RunRecord,
): Promise<EvaluationReport | undefined> {
  if (definition !== EVALUATION || head < 2) return undefined;
  const [last] = await store.readJournal(run, head - 1, 1);
  return last?.type === "RunCompleted" ? (decodeData(last.type, last.data).output as EvaluationReport) : undefined;
}
