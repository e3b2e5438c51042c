// News: what processes tell each other about their commits, where they can. Hints and no more: whoever looks for himself from
// time to time finds everything without them.

import type { RunNumber } from "./run.ts";

/** What there may be to do for a worker. */
export const WORK_KINDS = ["starts", "turns", "items", "due", "messages", "schedules"] as const;
export type WorkKind = (typeof WORK_KINDS)[number];

export interface ChangeNotice {
  readonly work: ReadonlySet<WorkKind>;
  /** Runs that something was done to which whoever holds them or waits for them may want to know. */
  readonly runs: ReadonlySet<RunNumber>;
}
