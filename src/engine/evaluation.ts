// Evaluation: the options and the report of `engine.evaluate`. Types only.

import type { Duration } from "../base/index.ts";
import type { BudgetOptions, Cost, ForkEffects, InputOf, OutputOf, RunStatus, StateOf } from "../kernel/index.ts";
import type { WaitOptions } from "./abort.ts";
import type { RunFilter } from "./api.ts";
import type { ForkCall } from "./fork-call.ts";

/** Where the forks of an evaluation begin. */
export type EvaluationPlace =
  | {
      /** Of a graph: the step before the first execution of this node. Of a flow: this node. */
      node: string;
    }
  | {
      /** Before the nth call with this name, of a workflow or a graph. */
      call: ForkCall;
    }
  | {
      /** A committed step of a graph. */
      step: number;
    }
  | {
      /** The newest step of a graph with this label. */
      label: string;
    }
  | {
      /** A command of a workflow, such as `Task(3)`. */
      command: string;
    };

/** Why a run has no output. */
export interface OutcomeError {
  readonly name: string;
  readonly message: string;
  /** The `code` of the error, such as EFFECT_NOT_RECORDED. */
  readonly code?: string;
}

/** How a run ended, as a scorer sees it. */
export type RunOutcome<D = any> = {
  readonly id: string;
  readonly input: InputOf<D>;
} & (
  | { readonly status: "completed"; readonly output: OutputOf<D>; readonly error?: undefined }
  | { readonly status: Exclude<RunStatus, "completed">; readonly output?: undefined; readonly error: OutcomeError }
);

/**
 * Compares a run with its fork. Higher is better.
 *
 * @example
 * ```ts
 * import { workflow, type Scorer } from "reprise";
 * const answer = workflow("answer", async (ctx, question: string) => ctx.run("think", { question }, () => `about ${question}`));
 * export const short: Scorer<typeof answer> = (was, is) =>
 *   is.status === "completed" && was.status === "completed" ? Number(is.output.length <= was.output.length) : 0;
 * ```
 */
export type Scorer<D = any> = (was: RunOutcome<D>, is: RunOutcome<D>) => number | Promise<number>;

/**
 * Options of `engine.evaluate`.
 *
 * @example
 * ```ts
 * import { workflow, type EvaluateOptions } from "reprise";
 * const answer = workflow("answer", async (ctx, question: string) => ctx.run("think", { question }, () => `about ${question}`));
 * export const options: EvaluateOptions<typeof answer> = {
 *   runs: { tag: "prod", createdAfter: "1 day", limit: 200 },
 *   score: { same: (was, is) => Number(was.output === is.output) },
 * };
 * ```
 */
export interface EvaluateOptions<D = any> extends WaitOptions {
  /** The ended runs to fork: a filter, or their ids. A filter selects at most 100 runs unless it has a limit. */
  runs: RunFilter | readonly string[];
  /** The id of the evaluation. The same id again continues it: forks that have ended are not repeated. Default: a random one. */
  id?: string;
  /** Where the forks begin. Default: at the input, so that the whole run is repeated with the code of this process. */
  at?: EvaluationPlace;
  /** Models that the forks replace, by their name in the code. */
  models?: Readonly<Record<string, string>>;
  /** Values that replace recorded answers, by command. */
  answers?: Readonly<Record<string, unknown>>;
  /** Values that replace those of the checkpoint, by channel. Of a graph. */
  patch?: Partial<StateOf<D>>;
  /** `"recorded"` (default) calls nothing that the run did not call, except replaced models. `"live"` executes everything. */
  effects?: ForkEffects;
  /** The version of the definition. Default: that of the definition, for forks at the input; otherwise that of each run. */
  version?: number;
  /** How each fork is compared with its run, by name. */
  score?: Readonly<Record<string, Scorer<D>>>;
  /** What all forks together may cost. With a budget, one fork runs at a time. */
  budget?: BudgetOptions;
  /** How many forks run at once; default 16. */
  concurrency?: number;
  /** How long a fork may take; default 60 seconds. A fork that waits for something that cannot come ends earlier. */
  timeout?: Duration;
  /** Called after each run with how many of them are evaluated. */
  onProgress?: (done: number, total: number) => void;
}

/** A run, its fork and their comparison, in a report. */
export interface EvaluatedRun<D = any> {
  readonly run: string;
  /** The id of the fork; absent if the run was skipped. */
  readonly fork?: string;
  readonly was: RunOutcome<D>;
  /** Absent if the run was skipped. */
  readonly is?: RunOutcome<D>;
  readonly scores: Readonly<Record<string, number>>;
  /** The scorers that threw, or returned no number. */
  readonly scoreErrors?: Readonly<Record<string, string>>;
  /** The first step, command or node that differs; absent if the fork did the same as the run. */
  readonly firstDifference?: string;
  /** Whether the fork did the same, with the same result. */
  readonly same: boolean;
  /** What the fork spent, if it has a budget. */
  readonly cost?: Cost;
  /** Why there is no fork: the run never reached the place, or the budget was reached before. */
  readonly skipped?: OutcomeError;
}

/** What the values of one score say together. */
export interface ScoreSummary {
  readonly mean: number;
  readonly min: number;
  readonly max: number;
  /** How many runs were scored. */
  readonly count: number;
  /** How many scorers failed. */
  readonly failed: number;
  /** The runs with the lowest scores, the lowest first; at most five, and none with the highest score. */
  readonly worst: readonly string[];
}

/**
 * What `engine.evaluate` found.
 *
 * @example
 * ```ts
 * import type { EvaluationReport } from "reprise";
 * function printWorst({ scores, runs }: EvaluationReport): void {
 *   for (const [name, { mean, worst }] of Object.entries(scores)) console.log(name, mean, worst);
 *   for (const { run, is } of runs) if (is?.error !== undefined) console.log(run, is.error.message);
 * }
 * ```
 */
export interface EvaluationReport<D = any> {
  readonly id: string;
  readonly definition: string;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly effects: ForkEffects;
  readonly at?: EvaluationPlace;
  readonly models?: Readonly<Record<string, string>>;
  readonly runs: readonly EvaluatedRun<D>[];
  /** By the name of the score. */
  readonly scores: Readonly<Record<string, ScoreSummary>>;
  readonly counts: EvaluationCounts;
  /** What all forks spent, if the evaluation has a budget. */
  readonly cost?: Cost;
}

/** How many runs of an evaluation have which outcome. */
export interface EvaluationCounts {
  readonly total: number;
  /** Forks that did the same as their run. */
  readonly same: number;
  /** Forks that ended and did something else. */
  readonly changed: number;
  /** Forks that were stopped before their end: by a call without a recorded answer, a changed order or a timeout. */
  readonly stopped: number;
  readonly skipped: number;
}
