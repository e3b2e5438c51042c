// The step a fork begins with: a checkpoint of another run as its own (FK2, FK3).

import { encode } from "../base/index.ts";
import { stateParts, type ChannelTexts } from "../kernel/index.ts";
import type { StepData } from "./checkpoint.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import type { OrderKey, Path } from "./order-key.ts";

export interface ForkStep {
  /** The data of the entry. */
  readonly data: string;
  readonly key: string;
  /** Together the text of the state. */
  readonly parts: readonly string[];
}

/** The frontier stays that of the step: where the run goes on was decided before anything was changed. */
export function forkStep(id: string, { step, label, frontier, waiting }: StepData, texts: ChannelTexts): ForkStep {
  const parts = stateParts(texts);
  const items = frontier.map((item) => ({
    ...item,
    path: item.path as Path,
    orderKey: item.orderKey as OrderKey,
  }));
  const key = idempotencyKeyOf(id, step, items, parts);
  // Put together from texts, because a state may have grown larger than what is recorded at once. Keys in order.
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
