// Suspects: work that was taken over several times in a row without a commit, and how workers isolate it (store.S5).
//
// When a worker dies, every run it holds is taken over, although at most one of them caused the crash. The level of a suspect
// is the number of its takeovers in a row. With each level workers claim it in a smaller group, until it is alone: the run that
// crashes its workers ends up alone, and the others commit on the way.
//
// suspects.S1. A group contains one level; workers claim the highest level first.
// suspects.S2. A worker that claimed a group claims nothing else until every member has committed, or the window has passed.
// suspects.S3. A worker that holds an isolated suspect claims no other suspect until that one has committed. So two suspects
//   never share a takeover that can block one of them.
// suspects.S4. A claim reads a bounded number of suspects.

/** The first level. A single crash isolates nothing. */
export const SUSPECT_AFTER = 2;
/** From this level on a worker claims a suspect alone. */
export const ALONE_AFTER = 5;
/** suspects.S3. The second time alone, and the third. */
export const ISOLATED_AFTER = 6;
/** After three takeovers alone the store blocks the run. */
export const MAX_TAKEOVERS = 8;

interface Isolation {
  /** How many suspects are claimed together. */
  readonly size: number;
  /** suspects.S2. How long the worker claims nothing else. */
  readonly windowMs: number;
}

/**
 * By level. A process holds some hundreds of runs at once: after two crashes 1,000 healthy runs resume immediately, after three
 * within a second. A faulty run is in a group of 256, then of 64, then of 8, then alone.
 *
 * Code that crashes its worker mostly does so as soon as it runs. 250 ms are enough to load a group and start its code. Small
 * groups load faster, and there may be many: after five crashes with 1,000 runs, 619 were on level 4. That is 20 groups for each
 * of four workers: 5 s at 250 ms each, 2 s at 100 ms. A faulty run that crashes after the window only shares the next level with
 * more runs, and with none on the last two (suspects.S3). Those levels may block a run, and have a longer window.
 */
const ISOLATION: readonly (Isolation | undefined)[] = [
  undefined,
  undefined,
  { size: 256, windowMs: 250 },
  { size: 64, windowMs: 250 },
  { size: 8, windowMs: 100 },
  { size: 1, windowMs: 100 },
];
const ISOLATED: Isolation = { size: 1, windowMs: 1_000 };

function isolationOf(level: number): Isolation | undefined {
  return level >= ISOLATED_AFTER ? ISOLATED : ISOLATION[level];
}

/** How many suspects of a level are claimed together; 0: not a suspect. */
export function groupSize(level: number): number {
  return isolationOf(level)?.size ?? 0;
}

/** How long a worker that claimed a group of this level claims nothing else. */
export function quarantineMs(level: number): number {
  return isolationOf(level)?.windowMs ?? 0;
}

/** suspects.S4. Per name. Twice the largest group, so that workers that claim at the same time find different suspects. */
export const SUSPECTS_SEEN = 512;

/** suspects.S1. The existing levels, highest first. */
export function levelsOf(suspects: readonly { readonly takeovers: number }[]): readonly number[] {
  return [...new Set(suspects.map(({ takeovers }) => takeovers))].toSorted((a, b) => b - a);
}
