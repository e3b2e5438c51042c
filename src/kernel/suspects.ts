// Suspects: work that was taken over several times in a row without a commit, and how it is isolated (S5).
//
// A worker that dies takes everything it holds along, so one takeover accuses hundreds of runs of what at most one of them
// did. The level of a suspect is the number of its takeovers in a row. With each level the group it is claimed in gets
// smaller, until it is alone: what kills its worker again and again ends up alone, everything else commits on the way.
//
// SU1. A group holds one level only, and the highest level goes first.
// SU2. A worker that took a group claims nothing else until every member has committed, or the window has passed.
// SU3. A worker that holds an isolated suspect is given no other suspect before that one has committed, however long that
//      takes. So two suspects never share a takeover that can block one of them.
// SU4. A claim looks at a bounded number of suspects, however many there are.

/** The first level. An ordinary crash, and one more by accident, isolate nothing. */
export const SUSPECT_AFTER = 2;
/** From this level on a suspect is claimed alone. */
export const ALONE_AFTER = 5;
/** SU3. The second time alone, and the third. */
export const ISOLATED_AFTER = 6;
/** After three takeovers alone its run is blocked. */
export const MAX_TAKEOVERS = 8;

interface Isolation {
  /** How many suspects are claimed together. */
  readonly size: number;
  /** SU2. How long their worker claims nothing else. */
  readonly windowMs: number;
}

/**
 * By level. A process is expected to work on some hundreds of runs at once: after two crashes 1,000 innocent ones are back at
 * work at once, after three within a second. A culprit among 256 is among 64 next, then among 8, then alone.
 *
 * What kills its worker mostly does so as soon as it is run. 250 ms are enough to load a group and start its code. Small
 * groups are loaded sooner, and there may be many of them: after five crashes of 1,000 runs, hundreds were in groups of eight
 * (with 250 ms for them, 5.7 s; with 100 ms, 2.5 s). A culprit that takes longer than the window only has more company on the
 * next level, and none on the last two (SU3). Those may block a run, and are given more time.
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

/** How many suspects of a level are claimed together; 0 for what is no suspect. */
export function groupSize(level: number): number {
  return isolationOf(level)?.size ?? 0;
}

/** How long a worker that took a group of this level claims nothing else. */
export function quarantineMs(level: number): number {
  return isolationOf(level)?.windowMs ?? 0;
}

/** SU4. Per name. Twice the largest group: workers that claim at the same moment do not all see the same. */
export const SUSPECTS_SEEN = 512;

/** SU1. The levels there are, highest first. */
export function levelsOf(suspects: readonly { readonly takeovers: number }[]): readonly number[] {
  return [...new Set(suspects.map(({ takeovers }) => takeovers))].toSorted((a, b) => b - a);
}
