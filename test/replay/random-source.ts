// Random source: seeded random numbers, so one seed reproduces a whole test.

export interface RandomSource {
  /** In [0, 1). */
  unit(): number;
  /** A whole number in [0, max). */
  below(max: number): number;
  /** True with this probability. */
  happens(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
}

/** mulberry32: small and fast, and good enough for choices in tests. */
export function randomSource(seed: number): RandomSource {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (max: number): number => Math.floor(unit() * max);
  return {
    unit,
    below,
    happens: (probability) => unit() < probability,
    pick: (from) => {
      const picked = from[below(from.length)];
      if (picked === undefined) throw new Error("Nothing to pick from.");
      return picked;
    },
  };
}
