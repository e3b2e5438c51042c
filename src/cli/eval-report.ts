// Eval report: the report of an evaluation as text for people, as one JSON document, and as cases of JUnit.

import type { EvaluatedRun, EvaluationReport } from "../engine/index.ts";
import type { Cost } from "../kernel/index.ts";
import type { JunitCase } from "./junit.ts";
import { paint, print } from "./output.ts";
import { Table, type Cell } from "./table.ts";
import { plain, pluralize } from "./text.ts";

/** `--fail-under same=0.9` */
export interface Limit {
  readonly name: string;
  readonly least: number;
}

/** What does not reach its limit, as sentences. `same` is the share of forks that did the same as their run. */
export function failuresOf(reports: readonly EvaluationReport[], limits: readonly Limit[]): readonly string[] {
  const failures: string[] = [];
  for (const { id, scores, counts } of reports) {
    for (const { name, least } of limits) {
      const score = scores[name];
      const mean = score?.mean ?? (name === "same" && counts.total > 0 ? counts.same / counts.total : undefined);
      if (mean === undefined) failures.push(`${id}: there is no score ${name}; the scores are: ${namesOf(scores)}`);
      else if (mean < least) failures.push(`${id}: ${name} is ${numberText(mean)}, below ${numberText(least)}`);
    }
    for (const [name, { failed }] of Object.entries(scores))
      if (failed > 0) failures.push(`${id}: the scorer ${name} failed for ${pluralize(failed, "run", "runs")}`);
  }
  return failures;
}

function namesOf(scores: EvaluationReport["scores"]): string {
  return [...new Set([...Object.keys(scores), "same"])].join(", ");
}

const MAX_ROWS = 40;

export async function printReport(
  reports: readonly EvaluationReport[],
  limits: readonly Limit[],
  failures: readonly string[],
): Promise<void> {
  for (const report of reports) await printOne(report, limits);
  for (const failure of failures) await print(`${paint("red", "failed")} ${plain(failure)}`);
}

async function printOne(report: EvaluationReport, limits: readonly Limit[]): Promise<void> {
  const { id, definition, runs, scores, counts, cost, models } = report;
  const changed = Object.entries(models ?? {}).map(([name, model]) => ` ${plain(name)}=${plain(model)}`);
  await print(
    `${paint("bold", plain(id))}: ${plain(definition)}, ${pluralize(counts.total, "run", "runs")}${changed.join("")}`,
  );
  const rows = runs.filter((run) => !run.same);
  if (rows.length > 0) await printRows(rows.slice(0, MAX_ROWS), Object.keys(scores));
  if (rows.length > MAX_ROWS) await print(paint("dim", `… and ${rows.length - MAX_ROWS} more; --json has all of them`));
  const parts = [
    paint("green", `${counts.same} same`),
    `${counts.changed} changed`,
    paint(counts.stopped > 0 ? "yellow" : "dim", `${counts.stopped} stopped`),
    paint("dim", `${counts.skipped} skipped`),
    ...(cost === undefined ? [] : [`cost ${costText(cost)}`]),
  ];
  await print(parts.join(" · "));
  const least = new Map(limits.map((limit) => [limit.name, limit.least]));
  if (Object.keys(scores).length === 0) return;
  const table = new Table(
    [
      { title: "score" },
      { title: "mean", right: true },
      { title: "min", right: true },
      { title: "limit", right: true, dropOrder: 1 },
      { title: "worst", minWidth: 10, dropOrder: 2 },
    ],
    undefined,
  );
  const lines = Object.entries(scores).map(([name, { mean, min, worst, count }]): readonly Cell[] => {
    const limit = least.get(name);
    const isUnder = limit !== undefined && mean < limit;
    return [
      plain(name),
      count === 0 ? "–" : { text: numberText(mean), paint: (text) => (isUnder ? paint("red", text) : text) },
      count === 0 ? "–" : numberText(min),
      limit === undefined ? "" : numberText(limit),
      plain(worst.join(", ")),
    ];
  });
  for (const line of table.render(lines)) await print(line);
}

async function printRows(runs: readonly EvaluatedRun[], scores: readonly string[]): Promise<void> {
  const table = new Table([
    { title: "run", minWidth: 12, clipsMiddle: true },
    { title: "was" },
    { title: "is" },
    ...scores.map((title) => ({ title: plain(title), right: true })),
    { title: "first difference", minWidth: 12 },
  ]);
  const lines = table.render(
    runs.map((run): readonly Cell[] => [
      plain(run.run),
      run.was.status,
      statusCell(run),
      ...scores.map((name) => (run.scores[name] === undefined ? "–" : numberText(run.scores[name]))),
      plain(differenceText(run)),
    ]),
  );
  for (const line of lines) await print(line);
}

function statusCell({ is, was }: EvaluatedRun): Cell {
  const text = is?.status ?? "skipped";
  return { text, paint: (shown) => (is?.status === was.status ? shown : paint("yellow", shown)) };
}

function differenceText({ firstDifference, is, skipped }: EvaluatedRun): string {
  if (skipped !== undefined) return skipped.message;
  return [firstDifference, is?.error?.code ?? is?.error?.message].filter((part) => part !== undefined).join(": ");
}

/** At least two digits, and never rounded up to a limit that the value does not reach. */
function numberText(value: number): string {
  const text = (Math.floor(value * 10_000) / 10_000).toFixed(4).replace(/0{1,2}$/, "");
  return Math.abs(value) >= 100 ? text.replace(/\.00$/, "") : text;
}

export function costText({ usd, tokens, calls }: Cost): string {
  return [
    ...(usd === undefined ? [] : [`$${usd.toFixed(4)}`]),
    ...(tokens === undefined ? [] : [pluralize(tokens, "token", "tokens")]),
    ...(calls === undefined ? [] : [pluralize(calls, "call", "calls")]),
  ].join(", ");
}

export function reportJson({ startedAt, endedAt, ...report }: EvaluationReport): Record<string, unknown> {
  return { ...report, startedAt: startedAt.toISOString(), endedAt: endedAt.toISOString() };
}

/** A run is a failure if its fork was stopped, a scorer failed, or a score is below its limit. */
export function junitCases(reports: readonly EvaluationReport[], limits: readonly Limit[]): readonly JunitCase[] {
  return reports.flatMap(({ id, definition, runs }) =>
    runs.map((run): JunitCase => ({
      name: `${id} ${run.run}`,
      classname: definition,
      failure: failureOf(run, limits),
    })),
  );
}

function failureOf(run: EvaluatedRun, limits: readonly Limit[]): JunitCase["failure"] {
  const { is, was, scores, scoreErrors = {}, skipped } = run;
  const detail = differenceText(run);
  if (skipped !== undefined) return undefined;
  if (is !== undefined && is.status !== was.status)
    return { type: is.status, message: is.error?.message ?? `it is ${is.status}, it was ${was.status}`, detail };
  const [failed] = Object.entries(scoreErrors);
  if (failed !== undefined) return { type: "scorer", message: `${failed[0]}: ${failed[1]}`, detail };
  const under = limits.find(
    ({ name, least }) => (scores[name] ?? (name === "same" ? Number(run.same) : least)) < least,
  );
  if (under === undefined) return undefined;
  return { type: "score", message: `${under.name} is ${numberText(scores[under.name] ?? 0)}`, detail };
}
