// Restore: where a run stands, from a whole checkpoint and the steps since, instead of its whole journal (CP4).

import { encode, RepriseError } from "../base/index.ts";
import { applyDelta, readWhole, type ChannelTexts, type Delta, type Told } from "../kernel/index.ts";
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
  return { position: { ...positionAt(channels, texts, last), unkept }, told };
}

/** Where a run stands with this step, from the state before it. */
export function positionAfter(channels: Channels, before: ChannelTexts, step: RecordedEntry): Position {
  return positionAt(channels, applyDelta(before, step.data["delta"] as Delta), step);
}

function positionAt(channels: Channels, texts: ChannelTexts, { data, at }: RecordedEntry): Position {
  const { step, frontier, waiting = [] } = data as unknown as StepEntry;
  return { step, state: GraphState.of(texts, channels), items: frontier.map(itemFrom), waiting, unkept: 0, at };
}

interface StepEntry {
  readonly step: number;
  readonly frontier: readonly Record<string, unknown>[];
  readonly waiting?: readonly WaitingJoin[];
}
