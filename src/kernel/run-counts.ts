// Run counts: how many runs have which status, and how long ended ones took, for people. Reads are bounded.

import type { EpochMs } from "../base/index.ts";
import type { EndedRunStatus, RunStatus } from "./run.ts";

/** Runs by status. */
export interface StatusCounts {
  readonly counts: Readonly<Record<RunStatus, number>>;
  /** Statuses of which there may be more runs than were counted. */
  readonly atLeast: readonly RunStatus[];
}

/** Which ended runs `readRunTimes` reads. */
export interface RunTimesFilter {
  readonly definition: string;
  readonly status: EndedRunStatus;
  /** At this time or later. */
  readonly endedAfter: EpochMs;
  readonly limit: number;
}

/** When a run was created and when it ended. */
export interface RunTimes {
  readonly createdAt: EpochMs;
  readonly endedAt: EpochMs;
}
