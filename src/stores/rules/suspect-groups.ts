// Suspect groups: which suspects a claim asks for (SU1), from a bounded look at those there are (SU4).

import { groupSize, levelsOf } from "../../kernel/index.ts";

export interface SeenSuspect {
  readonly takeovers: number;
  /** Its queue has no room for it. */
  readonly isHeldBack?: boolean;
}

/** Suspects of one name, as a claim sees them. */
export interface Seen<K> {
  readonly of: K;
  readonly suspects: readonly SeenSuspect[];
}

export interface SuspectGroup<K> {
  readonly level: number;
  readonly size: number;
  /** By name, how many to ask for. More would walk over suspects of other levels to find them. */
  readonly parts: readonly { readonly of: K; readonly limit: number }[];
}

/** SU1. Highest level first. A claim takes one of them: the next one only if others were quicker. */
export function suspectGroups<K>(seen: readonly Seen<K>[], tokens: number): readonly SuspectGroup<K>[] {
  const free = seen.flatMap(({ suspects }) => suspects.filter(({ isHeldBack }) => isHeldBack !== true));
  return levelsOf(free).map((level) => {
    const size = Math.min(groupSize(level), tokens);
    const parts = seen.map(({ of, suspects }) => ({ of, limit: limitOf(suspects, level, size) }));
    return { level, size, parts: parts.filter(({ limit }) => limit > 0) };
  });
}

/** Those that are held back may stand before the others. */
function limitOf(suspects: readonly SeenSuspect[], level: number, size: number): number {
  let free = 0;
  let heldBack = 0;
  for (const { takeovers, isHeldBack } of suspects) {
    if (takeovers !== level) continue;
    if (isHeldBack === true) heldBack += 1;
    else free += 1;
  }
  return free === 0 ? 0 : Math.min(size, free) + heldBack;
}
