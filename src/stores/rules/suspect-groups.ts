// Suspect groups: chooses the suspects a claim selects (suspects.S1) from a bounded sample of those there are (suspects.S4).

import { groupSize, levelsOf } from "../../kernel/index.ts";

export interface SampledSuspect {
  readonly takeovers: number;
  /** Its queue has no free slot. */
  readonly isHeldBack?: boolean;
}

/** The sampled suspects of one name. */
export interface SampledSuspects<K> {
  readonly of: K;
  readonly suspects: readonly SampledSuspect[];
}

export interface SuspectGroup<K> {
  readonly level: number;
  readonly size: number;
  /** How many suspects to select, by name. A higher limit would scan suspects of other levels. */
  readonly parts: readonly { readonly of: K; readonly limit: number }[];
}

/** suspects.S1. Highest level first. A claim takes one group, and the next only when other workers took the first. */
export function suspectGroups<K>(seen: readonly SampledSuspects<K>[], tokens: number): readonly SuspectGroup<K>[] {
  const free = seen.flatMap(({ suspects }) => suspects.filter(({ isHeldBack }) => isHeldBack !== true));
  return levelsOf(free).map((level) => {
    const size = Math.min(groupSize(level), tokens);
    const parts = seen.map(({ of, suspects }) => ({ of, limit: limitOf(suspects, level, size) }));
    return { level, size, parts: parts.filter(({ limit }) => limit > 0) };
  });
}

/** Suspects that are held back may come first in the index, so the limit covers them too. */
function limitOf(suspects: readonly SampledSuspect[], level: number, size: number): number {
  let free = 0;
  let heldBack = 0;
  for (const { takeovers, isHeldBack } of suspects) {
    if (takeovers !== level) continue;
    if (isHeldBack === true) heldBack += 1;
    else free += 1;
  }
  return free === 0 ? 0 : Math.min(size, free) + heldBack;
}
