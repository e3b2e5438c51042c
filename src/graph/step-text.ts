// Step text: the data of a step's entry.
//
// step-text.T1. The text is that of `encode`, byte for byte. For a step of the usual shape it is composed from texts that exist
//   already, which takes a third of the time: every step pays for it.

import { encode, MAX_PAYLOAD_BYTES } from "../base/index.ts";
import type { ChannelTexts, Delta } from "../kernel/index.ts";
import { storedItem, type StepItem } from "./step-item.ts";
import type { WaitingJoin } from "./joins.ts";

export interface StepParts {
  readonly step: number;
  readonly delta: Delta;
  /** After the step: they hold the texts of the values that it set. */
  readonly texts: ChannelTexts;
  readonly items: readonly StepItem[];
  readonly waiting: readonly WaitingJoin[];
  readonly key: string;
  readonly label: string | undefined;
}

export function stepText(parts: StepParts): string {
  const text = composed(parts);
  // A code unit has at most three bytes. The codec names the part that is too large.
  return text !== undefined && text.length * 3 <= MAX_PAYLOAD_BYTES ? text : encode(entryOf(parts));
}

/** Keys are in canonical order, which saves sorting them. */
function entryOf({ delta, items, key, label, step, waiting }: StepParts): object {
  return {
    delta,
    frontier: items.map(storedItem),
    key,
    ...(label !== undefined && { label }),
    step,
    ...(waiting.length > 0 && { waiting }),
  };
}

/** Undefined if the step has another shape. */
function composed({ delta, texts, items, waiting, key, label, step }: StepParts): string | undefined {
  if (waiting.length > 0 || delta.append !== undefined || delta.merge !== undefined) return undefined;
  const set = delta.set === undefined ? "{}" : setText(delta.set, texts);
  if (set === undefined) return undefined;
  let frontier = "";
  for (const item of items) {
    if (item.spread !== undefined) return undefined;
    const text = (item.text ??= itemText(item));
    frontier = frontier === "" ? text : `${frontier},${text}`;
  }
  const named = label === undefined ? "" : `,"label":${encode(label)}`;
  return `{"delta":${set},"frontier":[${frontier}],"key":"${key}"${named},"step":${step}}`;
}

function itemText({ node, path, orderKey, parent, edge }: StepItem): string {
  return `{"edge":${edge},"node":${encode(node)},"orderKey":"${orderKey}","parent":${encode(parent)},"path":"${path}"}`;
}

/** A text of this length is nested less deeply than the codec's limit, also inside the entry. */
const SHALLOW_LENGTH = 400;

function setText(set: NonNullable<Delta["set"]>, texts: ChannelTexts): string | undefined {
  let text = "";
  let previous = "";
  for (const name in set) {
    const value = texts.get(name);
    // The codec sorts names, and escapes those that start like its tags.
    if (value === undefined || value.length > SHALLOW_LENGTH || name < previous || name[0] === "$") return undefined;
    text += `${text === "" ? "" : ","}${encode(name)}:${value}`;
    previous = name;
  }
  return `{"set":{${text}}}`;
}
