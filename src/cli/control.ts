// Control: the work of cancel, terminate, pause, resume and retry, for one run, several, or all that a filter selects.
//
// cli.C1. The command counts the selected runs and, if a filter selected them, asks for confirmation before it writes.
// cli.C2. A run whose status has changed in the meantime is skipped and reported; the others are changed.
// cli.C3. A named run that was skipped is a problem for the caller (exit code 1); a filter that selects nothing is not.

import { RepriseError, systemClock } from "../base/index.ts";
import type { Run } from "../engine/index.ts";
import { hasEnded, RUN_STATUSES, type RunRecord, type RunStatus } from "../kernel/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import { confirm } from "./confirm.ts";
import { withStore } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { checkSelection, checkStatuses, selectRuns, type SelectOptions } from "./select-runs.ts";
import type { Loaded } from "./load-definitions.ts";
import { createProgress } from "./progress.ts";
import { pluralize, plain } from "./text.ts";
import { exitCodeOf, remarkSkipped } from "./unchanged.ts";

export interface ControlOptions extends SelectOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly reason?: string;
}

export interface ControlAction {
  readonly verb: string;
  /** `requested cancellation of`, `resumed` */
  readonly past: string;
  /** The statuses in which it has an effect. */
  readonly statuses: readonly RunStatus[];
  apply(run: Run<unknown>, options: ControlOptions): Promise<void>;
  /** Checks a run without changing it. Absent: a dry run lists the selected runs. */
  check?(run: Run<unknown>): Promise<void>;
  /** Why a selected run needs no change; undefined: it does. */
  isDone?(record: RunRecord): string | undefined;
  /** The code that the action needs. Absent: none. */
  readonly definitions?: Loaded;
  /** How many runs are changed at once. */
  readonly batchSize?: number;
}

/** A run with the status `expected` has not been started. */
export const LIVE: readonly RunStatus[] = RUN_STATUSES.filter((status) => !hasEnded(status) && status !== "expected");

export const CONTROL_ACTIONS = {
  cancel: {
    verb: "cancel",
    past: "requested cancellation of",
    statuses: LIVE,
    apply: (run, { reason }) => run.cancel(reason),
  },
  terminate: {
    verb: "terminate",
    past: "terminated",
    statuses: LIVE,
    apply: (run, { reason }) => run.terminate(reason),
  },
  pause: {
    verb: "pause",
    past: "paused",
    statuses: ["queued", "running", "waiting"],
    apply: (run) => run.pause(),
  },
  resume: {
    verb: "resume",
    past: "resumed",
    statuses: ["paused", "blocked", "determinism_violation"],
    apply: (run) => run.resume(),
  },
  retry: {
    verb: "retry",
    past: "retried",
    statuses: ["failed"],
    apply: (run) => run.retry(),
  },
} as const satisfies Record<string, ControlAction>;

/** Runs that are changed at once, so that their writes share a batch. */
const BATCH_SIZE = 100;
const SHOWN = 20;

interface SkippedRun {
  readonly id: string;
  readonly status: RunStatus;
  readonly reason: string;
  /** The journal does not fit the code. */
  readonly isMisfit?: boolean;
}

export function controlRuns(
  name: keyof typeof CONTROL_ACTIONS,
  ids: readonly string[],
  options: ControlOptions,
): Promise<number> {
  return applyControl(CONTROL_ACTIONS[name], ids, options);
}

export async function applyControl(
  control: ControlAction,
  ids: readonly string[],
  options: ControlOptions,
): Promise<number> {
  checkSelection(control.verb, ids, options);
  checkStatuses(options.status);
  return withStore(options.store, async (store) => {
    const all = await selectRuns(store, ids, options, control.statuses);
    const selected = ids.length > 0 ? all : all.filter((record) => control.isDone?.(record) === undefined);
    const applicable = selected.filter(
      (record) => control.statuses.includes(record.status) && control.isDone?.(record) === undefined,
    );
    const skipped = selected
      .filter((record) => !applicable.includes(record))
      .map((record) => skippedRun(record, control));
    // cli.C3
    const exitCode = (): number =>
      skipped.some(({ isMisfit }) => isMisfit) ? EXIT.determinism : exitCodeOf(ids.length > 0 ? skipped.length : 0);
    if (options.dryRun === true && control.check === undefined) {
      await report(control, applicable, skipped, options);
      return exitCode();
    }
    // cli.C1
    const question = `${capital(control.verb)} ${pluralize(applicable.length, "run", "runs")}?`;
    const isAsked = ids.length === 0 && applicable.length > 0 && options.dryRun !== true;
    if (isAsked && !(await confirm(question, options.yes))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const definitions =
      control.definitions ??
      [...new Set(applicable.map(({ definition }) => definition))].map((name) => placeholderDefinition(name));
    const { batchSize = BATCH_SIZE } = control;
    const change = (run: Run<unknown>): Promise<void> =>
      options.dryRun === true && control.check !== undefined ? control.check(run) : control.apply(run, options);
    const done: RunRecord[] = [];
    await withClient(store, definitions, async (engine) => {
      const progress = createProgress(control.verb, "runs", () => systemClock.monotonic());
      for (let from = 0; from < applicable.length; from += batchSize) {
        const batch = applicable.slice(from, from + batchSize);
        const outcomes = await Promise.all(
          batch.map((record) => findRefusal(() => change(engine.get(record.definition, record.id)))),
        );
        for (const [index, record] of batch.entries()) {
          const refusal = outcomes[index];
          if (refusal === undefined) done.push(record);
          else skipped.push({ id: record.id, status: record.status, ...refusal });
        }
        progress.at(from + batch.length, applicable.length);
      }
      progress.end();
    });
    await report(control, done, skipped, options);
    return exitCode();
  });
}

/** cli.C2. The reason why this run was refused; other errors are thrown. */
async function findRefusal(work: () => Promise<void>): Promise<Pick<SkippedRun, "reason" | "isMisfit"> | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    if (error.code === "MIGRATION_REFUSED") return { reason: error.message, isMisfit: true };
    if (error.family === "usage") return { reason: error.message };
    throw error;
  }
}

function skippedRun(record: RunRecord, control: ControlAction): SkippedRun {
  const { id, status } = record;
  const { past, statuses } = control;
  const reason =
    hasEnded(status) || status === past
      ? `already ${status}`
      : (control.isDone?.(record) ?? `it is ${status}; this command applies to runs that are ${statuses.join(", ")}`);
  return { id, status, reason };
}

async function report(
  control: ControlAction,
  done: readonly RunRecord[],
  skipped: readonly SkippedRun[],
  options: ControlOptions,
): Promise<void> {
  const dryRun = options.dryRun === true;
  if (options.json) {
    const ids = done.map(({ id }) => id);
    const listed = skipped.map(({ id, status, reason }) => ({ id, status, reason }));
    await printJson({ action: control.verb, dryRun, count: ids.length, ids, skipped: listed });
    return;
  }
  const past = dryRun ? `would ${control.verb}` : control.past;
  for (const { id, definition } of done.slice(0, SHOWN))
    await print(`${paint("green", past)} ${paint("bold", plain(id))} ${paint("dim", plain(definition))}`);
  if (done.length > SHOWN) await print(paint("dim", `… and ${done.length - SHOWN} more`));
  for (const { id, reason } of skipped.slice(0, SHOWN)) remarkSkipped(id, reason);
  if (skipped.length > SHOWN) remark(paintError("dim", `… and ${skipped.length - SHOWN} more`));
  if (done.length !== 1 || skipped.length > 0) remark(`${past} ${pluralize(done.length, "run", "runs")}`);
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
