// Retention: how long ended runs of a definition are kept.
//
// retention.R1. The policy of a family is that of its root, by the status of the root's last generation; its age counts from the end
//   of its last run. A status without a time is kept.

import { checkOptionNames, formatMs, RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";
import type { EndedRunStatus, RunStatus } from "./run.ts";

/** The statuses of a run that has ended for good. */
export type FinalStatus = Exclude<EndedRunStatus, "continued">;

export const FINAL_STATUSES: readonly FinalStatus[] = ["completed", "failed", "cancelled"];

/**
 * How long ended runs are kept: one time for all, or a time per status; a status without a time is kept forever.
 *
 * @example
 * ```ts
 * import { workflow, type Retention } from "reprise";
 * const retention: Retention = { completed: "7 days", failed: "90 days" };
 * const order = workflow("order", { retention }, async (ctx) => ctx.run("charge", () => 1));
 * ```
 */
export type Retention = Duration | { readonly [S in FinalStatus]?: Duration };

/** In milliseconds, by status. */
export type RetentionMs = { readonly [S in FinalStatus]?: number };

/** Callers in other processes must have the time to read the result. */
const LEAST_MS = 60_000;

export function checkRetention(retention: unknown, what: string): RetentionMs {
  const isPerStatus = typeof retention === "object" && retention !== null;
  if (isPerStatus) checkOptionNames(retention, FINAL_STATUSES, `${what}: retention`);
  const checked: { [S in FinalStatus]?: number } = {};
  for (const status of FINAL_STATUSES) {
    const given = isPerStatus ? (retention as Readonly<Record<string, unknown>>)[status] : retention;
    if (given === undefined && isPerStatus) continue;
    const name = isPerStatus ? `${what}: retention.${status}` : `${what}: retention`;
    const ms = toMs(given as Duration, name);
    if (ms < LEAST_MS)
      throw new RepriseError(
        "BAD_OPTIONS",
        `${name}: expected at least 1 minute, so that callers can read the result of a run that has ended; got ${formatMs(ms)}.`,
      );
    checked[status] = ms;
  }
  return checked;
}

/** The runs of one definition with one status that ended before a time. */
export interface ExpireRequest {
  readonly definition: string;
  readonly status: FinalStatus;
  readonly endedBefore: EpochMs;
  /** Only runs that ended after this time. */
  readonly after?: EpochMs | undefined;
}

/** What one batch of a retention policy did. */
export interface Expired {
  /** How many runs were deleted. */
  readonly runs: number;
  /** How many runs of the batch stay: a run of their family lives or is too young, sends messages, has a fork, or is noted. */
  readonly kept: number;
  /** The next batch starts after this time; undefined: this was the last one. */
  readonly after: EpochMs | undefined;
  /** The end of the oldest run that did not end before the requested time. */
  readonly nextEndedAt: EpochMs | undefined;
}

/**
 * `child`: it belongs to the run `of`. `live`, `sending`, `forked`, `logging`, `pinned`: this run of its family keeps it from being
 * deleted. `logging`: its end is not in the log yet. `pinned`: it is kept until it is published or archived (log.L4).
 */
export type DeleteOutcome =
  | { readonly status: "deleted"; readonly runs: number }
  | { readonly status: "no_run" }
  | { readonly status: "child"; readonly of: string }
  | { readonly status: "live"; readonly run: string; readonly as: RunStatus }
  | { readonly status: "sending"; readonly run: string }
  | { readonly status: "logging"; readonly run: string }
  | { readonly status: "pinned"; readonly run: string }
  | { readonly status: "forked"; readonly run: string; readonly by: string };
