// Change notice: what a process publishes about its commits, so that others poll only what changed. A hint: a process that
// polls everything from time to time finds all work without notices.

import type { RunNumber } from "./run.ts";

/** The kinds of work that may be ready for a worker. */
export const WORK_KINDS = ["starts", "turns", "items", "due", "messages", "schedules"] as const;
export type WorkKind = (typeof WORK_KINDS)[number];

/** The kinds of work that may be ready, and the affected runs. */
export interface ChangeNotice {
  readonly work: ReadonlySet<WorkKind>;
  /** The affected runs: a process that holds one of them, or waits for it, reads it again. */
  readonly runs: ReadonlySet<RunNumber>;
}
