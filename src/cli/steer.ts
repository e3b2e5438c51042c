// reprise cancel, terminate, pause, resume, retry: one run, several, or all that a filter finds.
//
// T1. What is to be done is counted and, when a filter chose it, confirmed before anything is written.
// T2. A run that has moved on meanwhile is passed over and said so; the others are done.

import { RepriseError, systemClock } from "../base/index.ts";
import type { Run } from "../engine/index.ts";
import { hasEnded, STATUSES, type RunRecord, type Status } from "../kernel/index.ts";
import { standIn, withClient } from "./client.ts";
import { confirm } from "./confirm.ts";
import { reading } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { checkPick, checkStatuses, pickRuns, type PickOptions } from "./pick-runs.ts";
import { progressOf } from "./progress.ts";
import { countOf, plain } from "./text.ts";

export interface SteerOptions extends PickOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly reason?: string;
}

export interface Steering {
  readonly verb: string;
  /** `asked to stop`, `resumed` */
  readonly past: string;
  /** Where it has an effect. */
  readonly statuses: readonly Status[];
  apply(run: Run<unknown>, options: SteerOptions): Promise<void>;
}

/** A run that is only expected is not there yet. */
const LIVE = STATUSES.filter((status) => !hasEnded(status) && status !== "expected");

export const STEERINGS = {
  cancel: {
    verb: "cancel",
    past: "asked to stop",
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
} as const satisfies Record<string, Steering>;

/** Runs whose writes share a batch. */
const AT_ONCE = 100;
const SHOWN = 20;

interface PassedOver {
  readonly id: string;
  readonly reason: string;
}

export async function steer(
  name: keyof typeof STEERINGS,
  ids: readonly string[],
  options: SteerOptions,
): Promise<number> {
  const steering: Steering = STEERINGS[name];
  checkPick(steering.verb, ids, options);
  checkStatuses(options.status);
  return reading(options.store, async (store) => {
    const picked = await pickRuns(store, ids, options, steering.statuses);
    const able = picked.filter(({ status }) => steering.statuses.includes(status));
    const passed = picked.filter((record) => !able.includes(record)).map((record) => passedOver(record, steering));
    if (options.dryRun === true) return report(steering, able, passed, options);
    // T1
    const question = `${capital(steering.verb)} ${countOf(able.length, "run", "runs")}?`;
    if (ids.length === 0 && able.length > 0 && !(await confirm(question, options.yes))) {
      remark("Nothing was done.");
      return EXIT.problem;
    }
    const definitions = [...new Set(able.map(({ definition }) => definition))].map((name) => standIn(name));
    const done: RunRecord[] = [];
    await withClient(store, definitions, async (engine) => {
      const progress = progressOf(steering.verb, "runs", () => systemClock.monotonic());
      for (let from = 0; from < able.length; from += AT_ONCE) {
        const batch = able.slice(from, from + AT_ONCE);
        const outcomes = await Promise.all(
          batch.map((record) => attempt(() => steering.apply(engine.run(record.definition, record.id), options))),
        );
        for (const [index, record] of batch.entries()) {
          const reason = outcomes[index];
          if (reason === undefined) done.push(record);
          else passed.push({ id: record.id, reason });
        }
        progress.at(from + batch.length, able.length);
      }
      progress.end();
    });
    return report(steering, done, passed, options);
  });
}

/** T2. Why it was not done; anything but a refusal of this one run is thrown. */
async function attempt(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof RepriseError && error.family === "usage") return error.message;
    throw error;
  }
}

function passedOver({ id, status }: RunRecord, { statuses }: Steering): PassedOver {
  const reason = hasEnded(status)
    ? `it has ended (${status})`
    : `it is ${status}; this is for runs that are ${statuses.join(", ")}`;
  return { id, reason };
}

async function report(
  steering: Steering,
  done: readonly RunRecord[],
  passed: readonly PassedOver[],
  options: SteerOptions,
): Promise<number> {
  const dryRun = options.dryRun === true;
  if (options.json) {
    const ids = done.map(({ id }) => id);
    await printJson({ action: steering.verb, dryRun, count: ids.length, ids, passedOver: passed });
    return EXIT.ok;
  }
  const past = dryRun ? `would be ${steering.past}` : steering.past;
  for (const { id, definition } of done.slice(0, SHOWN))
    await print(`${paint("green", past)} ${paint("bold", plain(id))} ${paint("dim", plain(definition))}`);
  if (done.length > SHOWN) await print(paint("dim", `… and ${done.length - SHOWN} more`));
  for (const { id, reason } of passed.slice(0, SHOWN))
    remark(`${paintError("yellow", "passed over")} ${plain(id)}: ${plain(reason)}`);
  if (passed.length > SHOWN) remark(paintError("dim", `… and ${passed.length - SHOWN} more`));
  if (done.length !== 1 || passed.length > 0) remark(`${countOf(done.length, "run", "runs")} ${past}`);
  return EXIT.ok;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
