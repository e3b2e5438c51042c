// Fork step: the first step of a fork, made from a checkpoint of another run (fork.F2, fork.F3).

import { encode } from "../base/index.ts";
import { stateParts, type ChannelTexts, type StepCommittedData } from "../kernel/index.ts";
import { checkpointKeyOf } from "./checkpoint-key.ts";
import type { OrderKey, Path } from "./order-key.ts";

export interface ForkStep {
  /** The text of the entry's data. */
  readonly data: string;
  readonly key: string;
  /** Joined, the text of the state. */
  readonly parts: readonly string[];
}

/** The fork keeps the frontier of the step: a patch of the state does not change which nodes run next. */
export function forkStep(
  id: string,
  { step, label, frontier, waiting }: StepCommittedData,
  texts: ChannelTexts,
): ForkStep {
  const parts = stateParts(texts);
  const items = frontier.map((item) => ({
    ...item,
    path: item.path as Path,
    orderKey: item.orderKey as OrderKey,
  }));
  const key = checkpointKeyOf(id, step, items, parts);
  // Built from texts, because a state can be larger than the payload limit of one entry. Keys are in canonical order.
  const fields: readonly (readonly [string, string | undefined])[] = [
    ["delta", `{"set":${parts.join("")}}`],
    ["frontier", encode(frontier)],
    ["key", encode(key)],
    ["label", label === undefined ? undefined : encode(label)],
    ["step", String(step)],
    ["waiting", waiting === undefined ? undefined : encode(waiting)],
  ];
  const present = fields.filter(([, text]) => text !== undefined).map(([name, text]) => `"${name}":${text}`);
  return { data: `{${present.join(",")}}`, key, parts };
}
