// Step changes: what a committed step of a graph changed, and its nodes by name.

import { encode, textOf } from "../base/index.ts";
import type { Delta } from "../kernel/index.ts";

export interface ChannelChange {
  readonly channel: string;
  readonly how: "append" | "merge" | "set";
  /** Appended items or merged keys. */
  readonly count: number;
  readonly bytes: number;
}

/** The executions of one node in a step. */
export interface NodeTally {
  readonly node: string;
  readonly count: number;
  /** The highest number of attempts among them. */
  readonly attempts: number;
}

export function tallyOf(
  items: readonly { readonly node: string }[],
  attemptsAt: (index: number) => number = () => 1,
): readonly NodeTally[] {
  const tallies = new Map<string, NodeTally>();
  for (const [index, { node }] of items.entries()) {
    const { count = 0, attempts = 1 } = tallies.get(node) ?? {};
    tallies.set(node, { node, count: count + 1, attempts: Math.max(attempts, attemptsAt(index)) });
  }
  return [...tallies.values()];
}

export function changesOf({ append = {}, merge = {}, set = {} }: Delta): readonly ChannelChange[] {
  const change = (how: ChannelChange["how"], channel: string, value: unknown, count: number): ChannelChange => ({
    channel,
    how,
    count,
    bytes: Buffer.byteLength(encode(value)),
  });
  return [
    ...Object.entries(append).map(([name, items]) => change("append", name, items, items.length)),
    ...Object.entries(merge).map(([name, laid]) => change("merge", name, laid, Object.keys(laid).length)),
    ...Object.entries(set).map(([name, value]) => change("set", name, value, 1)),
  ];
}

/** `search`, or `search ×3`. */
export function tallyText({ node, count }: NodeTally): string {
  return `${textOf(node, "?")}${count > 1 ? ` ×${count}` : ""}`;
}
