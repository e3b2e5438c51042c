// Restore: the position of a run, from a snapshot and the steps since, without the journal before it (checkpoint.C4).

import { encode, invariant, RepriseError } from "../base/index.ts";
import {
  applyDelta,
  readSnapshot,
  type ChannelTexts,
  type DecodedEntry,
  type DeliveredMessage,
} from "../kernel/index.ts";
import type { Channels } from "./channel.ts";
import { readItem } from "./step-item.ts";
import type { Position } from "./interpreter.ts";
import { GraphState } from "./state.ts";

export interface RestoredGraph {
  readonly position: Position;
  /** To deliver before anything else. */
  readonly delivered: readonly DeliveredMessage[];
}

type StepEntry = DecodedEntry<"StepCommitted">;

/** `steps`: in order, starting with the entry of the snapshot. */
export function restore(channels: Channels, snapshot: string, steps: readonly StepEntry[]): RestoredGraph {
  const last = steps.at(-1);
  if (last === undefined)
    throw new RepriseError("STORE_CORRUPT", "A checkpoint has no entry in the journal. Run `reprise doctor`.");
  const { delivered, texts: first } = readSnapshot(snapshot);
  let texts = first;
  let lengthSinceSnapshot = 0;
  let step = last.data.step - steps.length + 1;
  for (const [index, { data }] of steps.entries()) {
    // interpreter.I5
    invariant(data.step === step, "The steps since a snapshot are consecutive.");
    step += 1;
    if (index === 0) continue;
    texts = applyDelta(texts, data.delta);
    lengthSinceSnapshot += encode(data).length;
  }
  return { position: { ...positionAt(channels, texts, last), lengthSinceSnapshot }, delivered };
}

/** The position after this step, from the state before it. */
export function positionAfter(channels: Channels, before: ChannelTexts, step: StepEntry): Position {
  return positionAt(channels, applyDelta(before, step.data.delta), step);
}

function positionAt(channels: Channels, texts: ChannelTexts, { data, at }: StepEntry): Position {
  const { step, frontier, waiting = [] } = data;
  return {
    step,
    state: GraphState.of(texts, channels),
    items: frontier.map(readItem),
    waiting,
    lengthSinceSnapshot: 0,
    at,
  };
}
