// reprise eval: evaluates recorded runs with the code of a file, in a copy of their own. It writes nothing to the store, unless --save
// keeps the report there.
//
// eval.E1. Nothing is called that the runs did not call, except models that --model replaces: CI needs neither keys nor a store.

import { writeFile } from "node:fs/promises";
import { RepriseError, systemClock } from "../base/index.ts";
import {
  keepReport,
  openEvaluationEngine,
  type EvaluateOptions,
  type Evaluation,
  type EvaluationOptions,
  type EvaluationPlace,
  type EvaluationReport,
  type RunFilter,
  type TimeOrAge,
} from "../engine/index.ts";
import { isTask, type Definition } from "../kernel/index.ts";
import { copyRuns, type CopyOptions, type EvaluationCopy } from "./evaluation-copy.ts";
import { failuresOf, junitCases, printReport, reportJson, type Limit } from "./eval-report.ts";
import { EXIT } from "./exit-codes.ts";
import { callOf, readAnswers, readModels } from "./fork.ts";
import { junitSuite } from "./junit.ts";
import { loadDefinitions, loadEvaluations, type Loaded } from "./load-definitions.ts";
import { withStore } from "./open-store.ts";
import { printJson, remark } from "./output.ts";
import { payloadOptions } from "./payload-module.ts";
import { createProgress } from "./progress.ts";
import { checkStatuses } from "./select-runs.ts";
import { onInterrupt } from "./signals.ts";
import { plain } from "./text.ts";
import { defaultScores } from "./eval-scores.ts";

export interface EvalOptions extends CopyOptions {
  readonly only?: readonly string[];
  readonly definition?: string;
  readonly tag?: readonly string[];
  readonly status?: readonly string[];
  readonly createdAfter?: string;
  readonly limit?: number;
  readonly at?: string;
  readonly model?: readonly string[];
  readonly answer?: readonly string[];
  readonly effects?: "live" | "recorded";
  readonly budget?: readonly string[];
  readonly concurrency?: number;
  readonly timeout?: string;
  readonly failUnder?: readonly string[];
  readonly junit?: string;
  readonly save?: boolean;
}

/** What is evaluated: an export of the file, or a definition without one. */
interface Named {
  readonly name: string;
  readonly evaluation: Evaluation;
}

export async function evaluateRuns(file: string, targets: readonly string[], options: EvalOptions): Promise<number> {
  const limits = readLimits(options.failUnder);
  const changes = await readChanges(options);
  const definitions = await loadDefinitions(file);
  const selected = await selectEvaluations(file, definitions, options);
  await using copy = await copyRuns(targets, filtersOf(selected, options), options);
  const reports = await evaluateAll(copy, definitions, selected, changes, options);
  if (reports.every(({ runs }) => runs.length === 0)) {
    remark("No run matches, so nothing was evaluated.");
    return EXIT.problem;
  }
  const failures = failuresOf(reports, limits);
  if (options.junit !== undefined) await writeJunit(options.junit, reports, limits);
  if (options.save === true) await save(reports, options);
  const exitCode = failures.length === 0 ? EXIT.ok : EXIT.problem;
  if (options.json) await printJson({ exitCode, failures, evaluations: reports.map(reportJson) });
  else await printReport(reports, limits, failures);
  return exitCode;
}

async function evaluateAll(
  copy: EvaluationCopy,
  definitions: Loaded,
  selected: readonly Named[],
  changes: Partial<EvaluateOptions>,
  options: EvalOptions,
): Promise<readonly EvaluationReport[]> {
  const engine = await openEvaluationEngine({ path: copy.path, definitions, ...payloadOptions() });
  const stop = new AbortController();
  const progress = createProgress("evaluating", "runs", () => systemClock.monotonic());
  onInterrupt({
    cleanUp: async () => {
      stop.abort();
      progress.end();
      await engine.close({ grace: 0 });
      await copy[Symbol.asyncDispose]();
    },
    announce: () => {
      if (options.id !== undefined) remark(`stopped; the same command with --id ${plain(options.id)} continues`);
    },
  });
  const reports: EvaluationReport[] = [];
  try {
    for (const { name, evaluation } of selected) {
      const { definition, options: given } = evaluation;
      const { score = defaultScores, ...how } = given as EvaluationOptions<Definition>;
      reports.push(
        await engine.evaluate(definition.name, {
          ...how,
          ...changes,
          score,
          runs: copy.ids === undefined ? { limit: ALL, status: ENDED } : (copy.ids.get(definition.name) ?? []),
          id: selected.length === 1 ? (options.id ?? name) : `${options.id ?? "eval"}-${name}`,
          signal: stop.signal,
          onProgress: (done, total) => progress.at(done, total),
        } as EvaluateOptions<Definition>),
      );
    }
    return reports;
  } finally {
    progress.end();
    await engine.close();
  }
}

const ALL = 1_000_000;
const ENDED = ["completed", "failed", "cancelled"] as const;

/** The exports that the file has for evaluations; without one, its definitions. */
async function selectEvaluations(file: string, definitions: Loaded, options: EvalOptions): Promise<readonly Named[]> {
  const { only, definition } = options;
  const found = [...(await loadEvaluations(file))].map(([name, evaluation]) => ({ name, evaluation }));
  for (const name of only ?? [])
    if (!found.some((one) => one.name === name))
      throw new RepriseError(
        "USAGE",
        `--only: ${file} exports no evaluation named ${name}. It exports: ${found.map((one) => one.name).join(", ") || "none"}.`,
      );
  const evaluable = definitions.filter((one): one is Definition => !isTask(one));
  const all: readonly Named[] =
    found.length > 0
      ? found
      : evaluable.map((one) => ({
          name: one.name,
          evaluation: { "~kind": "evaluation", definition: one, options: {} },
        }));
  const fits = all.filter(
    ({ name, evaluation }) =>
      (only === undefined || only.includes(name)) &&
      (definition === undefined || evaluation.definition.name === definition),
  );
  if (fits.length > 0) return fits;
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    `${file} exports no workflow, graph or flow${definition === undefined ? "" : ` named ${definition}`} to evaluate. It exports: ${evaluable.map(({ name }) => name).join(", ") || "only tasks"}.`,
  );
}

/** Those of the command line, otherwise those of the evaluations. */
function filtersOf(selected: readonly Named[], options: EvalOptions): readonly RunFilter[] {
  const { tag, createdAfter, limit } = options;
  const status = checkStatuses(options.status);
  const given: RunFilter = {
    ...(tag !== undefined && { tag }),
    ...(createdAfter !== undefined && { createdAfter: createdAfter as TimeOrAge }),
    ...(status !== undefined && { status }),
    ...(limit !== undefined && { limit }),
  };
  return selected.map(({ evaluation: { definition, options: how } }) => {
    const own = Array.isArray(how.runs) ? {} : ((how.runs ?? {}) as RunFilter);
    return { ...own, ...given, definition: definition.name };
  });
}

async function readChanges(options: EvalOptions): Promise<Partial<EvaluateOptions>> {
  const { at, effects, concurrency, timeout } = options;
  const models = readModels(options.model);
  const answers = await readAnswers(options.answer);
  const budget = options.budget === undefined ? undefined : readNumbers("--budget", options.budget, "usd=5");
  return {
    ...(at !== undefined && { at: placeOf(at) }),
    ...(models !== undefined && { models }),
    ...(answers !== undefined && { answers }),
    ...(effects !== undefined && { effects }),
    ...(budget !== undefined && { budget }),
    ...(concurrency !== undefined && { concurrency }),
    ...(timeout !== undefined && { timeout: timeout as never }),
  };
}

/** `node=think`, `call=think:2`, `step=3`, `label=asked` or `command=Task:3`. */
function placeOf(text: string): EvaluationPlace {
  const [, what, value = ""] = /^(node|call|step|label|command)=([^]+)$/.exec(text) ?? [];
  switch (what) {
    case "node":
      return { node: value };
    case "call":
      return { call: callOf(value) };
    case "step":
      return { step: Number(value) };
    case "label":
      return { label: value };
    case "command":
      return { command: value.replace(/\b([A-Z]\w*):(\d+)$/, "$1($2)") };
    default:
      throw new RepriseError(
        "USAGE",
        `--at expects a place such as node=think, call=think:2, step=3, label=asked or command=Task:3, got ${plain(text)}.`,
      );
  }
}

function readLimits(given: readonly string[] = []): readonly Limit[] {
  return Object.entries(readNumbers("--fail-under", given, "same=0.9")).map(([name, least]) => ({ name, least }));
}

/** `same=0.9` */
function readNumbers(option: string, given: readonly string[], example: string): Record<string, number> {
  return Object.fromEntries(
    given.map((one) => {
      const [, name, text = ""] = /^([^=]+)=(.+)$/.exec(one) ?? [];
      const number = Number(text);
      if (name !== undefined && text.trim() !== "" && Number.isFinite(number)) return [name.trim(), number];
      throw new RepriseError("USAGE", `${option} expects a name and a number, such as ${example}, got ${plain(one)}.`);
    }),
  );
}

async function writeJunit(file: string, reports: readonly EvaluationReport[], limits: readonly Limit[]): Promise<void> {
  try {
    await writeFile(file, junitSuite("reprise eval", junitCases(reports, limits)));
  } catch (cause) {
    throw new RepriseError("USAGE", `--junit: ${file} cannot be written: ${(cause as Error).message}.`, { cause });
  }
}

/** The forks are in the copy, so the report that is kept names none. */
async function save(reports: readonly EvaluationReport[], options: EvalOptions): Promise<void> {
  await withStore(options.store, async (store) => {
    for (const report of reports) {
      const id = options.id === undefined ? `${report.id}-${new Date(store.now()).toISOString()}` : report.id;
      const runs = report.runs.map(({ fork: _fork, ...run }) => run);
      await keepReport({ store }, { ...report, id, runs });
    }
  });
}
