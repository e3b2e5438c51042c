// Random: one random stream per purpose, all from one seed, so that draws for one purpose do not shift the others.

import type { RandomSource } from "../replay/random-source.ts";

/** sfc32, started from the seed and the name of the purpose. */
export function stream(seed: number, purpose: string): RandomSource {
  let a = hash(purpose, seed);
  let b = hash(purpose, seed ^ 0x9e3779b9);
  let c = hash(purpose, 0x85ebca6b);
  let counter = 1;
  const next = (): number => {
    const mixed = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + mixed) | 0;
    return mixed >>> 0;
  };
  for (let warm = 0; warm < 12; warm += 1) next();
  const unit = (): number => next() / 2 ** 32;
  const below = (max: number): number => Math.floor(unit() * max);
  return {
    unit,
    below,
    happens: (probability) => unit() < probability,
    pick: (from) => {
      if (from.length === 0) throw new Error("Nothing to pick from.");
      return from[below(from.length)]!;
    },
  };
}

/** FNV-1a. */
export function hash(text: string, start = 0x811c9dc5): number {
  let state = start >>> 0;
  for (let at = 0; at < text.length; at += 1) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return state;
}
