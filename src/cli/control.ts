// Control: the work of cancel, terminate, pause, resume and retry, for one run, several, or all that a filter selects.
//
// cli.C1. The command counts the selected runs and, if a filter selected them, asks for confirmation before it writes.
// cli.C2. A run whose status has changed in the meantime is skipped and reported; the others are changed.

import { RepriseError, systemClock } from "../base/index.ts";
import type { Run } from "../engine/index.ts";
import { hasEnded, RUN_STATUSES, type RunRecord, type RunStatus } from "../kernel/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import { confirm } from "./confirm.ts";
import { withStore } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { checkSelection, checkStatuses, selectRuns, type SelectOptions } from "./select-runs.ts";
import { createProgress } from "./progress.ts";
import { pluralize, plain } from "./text.ts";

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
}

/** A run with the status `expected` has not been started. */
const LIVE = RUN_STATUSES.filter((status) => !hasEnded(status) && status !== "expected");

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
  readonly reason: string;
}

export async function controlRuns(
  name: keyof typeof CONTROL_ACTIONS,
  ids: readonly string[],
  options: ControlOptions,
): Promise<number> {
  const control: ControlAction = CONTROL_ACTIONS[name];
  checkSelection(control.verb, ids, options);
  checkStatuses(options.status);
  return withStore(options.store, async (store) => {
    const selected = await selectRuns(store, ids, options, control.statuses);
    const applicable = selected.filter(({ status }) => control.statuses.includes(status));
    const skipped = selected
      .filter((record) => !applicable.includes(record))
      .map((record) => skippedRun(record, control));
    // A named run that was skipped is a problem for the caller; a filter that selects nothing is not.
    const exitCode = (done: readonly RunRecord[]): number =>
      ids.length > 0 && done.length === 0 ? EXIT.problem : EXIT.ok;
    if (options.dryRun === true) {
      await report(control, applicable, skipped, options);
      return exitCode(applicable);
    }
    // cli.C1
    const question = `${capital(control.verb)} ${pluralize(applicable.length, "run", "runs")}?`;
    if (ids.length === 0 && applicable.length > 0 && !(await confirm(question, options.yes))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const definitions = [...new Set(applicable.map(({ definition }) => definition))].map((name) =>
      placeholderDefinition(name),
    );
    const done: RunRecord[] = [];
    await withClient(store, definitions, async (engine) => {
      const progress = createProgress(control.verb, "runs", () => systemClock.monotonic());
      for (let from = 0; from < applicable.length; from += BATCH_SIZE) {
        const batch = applicable.slice(from, from + BATCH_SIZE);
        const outcomes = await Promise.all(
          batch.map((record) => findRefusal(() => control.apply(engine.get(record.definition, record.id), options))),
        );
        for (const [index, record] of batch.entries()) {
          const reason = outcomes[index];
          if (reason === undefined) done.push(record);
          else skipped.push({ id: record.id, reason });
        }
        progress.at(from + batch.length, applicable.length);
      }
      progress.end();
    });
    await report(control, done, skipped, options);
    return exitCode(done);
  });
}

/** cli.C2. The reason why this run was refused; other errors are thrown. */
async function findRefusal(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof RepriseError && error.family === "usage") return error.message;
    throw error;
  }
}

function skippedRun({ id, status }: RunRecord, { statuses }: ControlAction): SkippedRun {
  const reason = hasEnded(status)
    ? `already ${status}`
    : `it is ${status}; this command applies to runs that are ${statuses.join(", ")}`;
  return { id, reason };
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
    await printJson({ action: control.verb, dryRun, count: ids.length, ids, skipped });
    return;
  }
  const past = dryRun ? `would ${control.verb}` : control.past;
  for (const { id, definition } of done.slice(0, SHOWN))
    await print(`${paint("green", past)} ${paint("bold", plain(id))} ${paint("dim", plain(definition))}`);
  if (done.length > SHOWN) await print(paint("dim", `… and ${done.length - SHOWN} more`));
  for (const { id, reason } of skipped.slice(0, SHOWN))
    remark(`${paintError("yellow", "skipped")} ${plain(id)}: ${plain(reason)}`);
  if (skipped.length > SHOWN) remark(paintError("dim", `… and ${skipped.length - SHOWN} more`));
  if (done.length !== 1 || skipped.length > 0) remark(`${past} ${pluralize(done.length, "run", "runs")}`);
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
