// Replay flags: numbered changes of our own behaviour that replayed code could notice.
//
// Adding an await, a command or a different delivery order inside the engine is a format change. A new behaviour gets
// the next number; a run records the numbers in force when it started and keeps them for life, so that an old journal
// is always replayed by the rules it was written under. A number is never reused.

export const REPLAY_FLAGS = {
  /** One completion at a time, in journal order, with a macrotask between. */
  deliverOneAtATime: 1,
} as const;

export const CURRENT_FLAGS: readonly number[] = Object.values(REPLAY_FLAGS);

/** Flags this build does not know: the run was started by a newer one. */
export function unknownFlags(flags: readonly number[]): readonly number[] {
  return flags.filter((flag) => !CURRENT_FLAGS.includes(flag));
}
