// Restore: where a run stands, from a whole checkpoint and the steps since, instead of its whole journal (CP4).

import { encode, RepriseError } from "../base/index.ts";
import { applyDelta, readWhole, type Delta, type Told } from "../kernel/index.ts";
import type { RecordedEntry } from "../workflow/index.ts";
import type { Channels } from "./channel.ts";
import { itemFrom } from "./item.ts";
import type { Position } from "./interpreter.ts";
import type { WaitingJoin } from "./route.ts";
import { GraphState } from "./state.ts";

export interface Restored {
  readonly position: Position;
  /** To be delivered before everything else. */
  readonly told: readonly Told[];
}

/** `steps`: from the whole checkpoint's own entry on, in order. */
export function restore(channels: Channels, whole: string, steps: readonly RecordedEntry[]): Restored {
  const last = steps.at(-1);
  if (last === undefined)
    throw new RepriseError("STORE_CORRUPT", "A checkpoint has no entry in the journal; run reprise doctor.");
  const { told, texts: first } = readWhole(whole);
  let texts = first;
  let unkept = 0;
  for (const { data } of steps.slice(1)) {
    texts = applyDelta(texts, data["delta"] as Delta);
    unkept += encode(data).length;
  }
  const { step, frontier, waiting = [] } = last.data as unknown as StepEntry;
  const state = GraphState.of(texts, channels);
  return { position: { step, state, items: frontier.map(itemFrom), waiting, unkept }, told };
}

interface StepEntry {
  readonly step: number;
  readonly frontier: readonly Record<string, unknown>[];
  readonly waiting?: readonly WaitingJoin[];
}
