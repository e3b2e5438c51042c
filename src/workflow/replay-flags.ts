// Replay flags: numbered changes of the engine's behavior that replayed code could notice.
//
// An additional await or command, or another delivery order, inside the engine is a format change and gets the next number. A
// run records the numbers that are current when it starts, so an old journal is always replayed by the rules it was written
// under. A number is never reused.

export const REPLAY_FLAGS = {
  /** One completion at a time, in journal order, with a macrotask between. */
  deliverOneAtATime: 1,
} as const;

export const CURRENT_FLAGS: readonly number[] = Object.values(REPLAY_FLAGS);

/** Flags that this version does not know: a newer version started the run. */
export function unknownFlags(flags: readonly number[]): readonly number[] {
  return flags.filter((flag) => !CURRENT_FLAGS.includes(flag));
}
