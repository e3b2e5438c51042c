// Diff items: what two runs requested and got, by command or node.
//
// diff-items.I1. An item is compared by its name, its input and its answer. Attempts, stacks, ids of children and times vary, so
//   none of them is compared.
// diff-items.I2. Of a command that was requested before the point that both runs share, only the answer is known and compared.

import { encode } from "../base/index.ts";

/** One value in both runs; absent in a run that does not have it. */
export interface ValueDiff<T = unknown> {
  readonly here?: T;
  readonly there?: T;
}
/** How a command or a node ended. */
export type StepAnswer =
  | { readonly status: "completed"; readonly value: unknown }
  | { readonly status: "failed"; readonly error: unknown }
  | { readonly status: "cancelled" | "skipped" | "timed_out" };

/** What a run has of one command or node. */
export interface DiffItem {
  /** diff-items.I2. False: only its answer was read. */
  readonly isRequested: boolean;
  readonly name?: string | undefined;
  readonly input?: unknown;
  readonly answer?: StepAnswer | undefined;
}
export interface ItemDiff {
  readonly key: string;
  readonly in: "both" | "here" | "there";
  readonly name?: ValueDiff<string>;
  readonly input?: ValueDiff;
  readonly answer?: ValueDiff<StepAnswer>;
}

/** The first `limit` items that differ, in the order of `keys`; `more`: further ones do. */
export function diffItems(
  keys: Iterable<string>,
  here: ReadonlyMap<string, DiffItem>,
  there: ReadonlyMap<string, DiffItem>,
  limit: number,
): { readonly items: readonly ItemDiff[]; readonly more: boolean } {
  const items: ItemDiff[] = [];
  for (const key of keys) {
    const found = itemDiff(key, here.get(key), there.get(key));
    if (found === undefined) continue;
    if (items.length === limit) return { items, more: true };
    items.push(found);
  }
  return { items, more: false };
}

function itemDiff(key: string, a: DiffItem | undefined, b: DiffItem | undefined): ItemDiff | undefined {
  const areRequested = a?.isRequested !== false && b?.isRequested !== false;
  const name = areRequested ? valueDiff(a?.name, b?.name) : undefined;
  const input = areRequested ? valueDiff(a?.input, b?.input) : undefined;
  const answer = valueDiff(a?.answer, b?.answer);
  const where = b === undefined ? "here" : a === undefined ? "there" : "both";
  if (where === "both" && name === undefined && input === undefined && answer === undefined) return undefined;
  return { key, in: where, ...(name && { name }), ...(input && { input }), ...(answer && { answer }) };
}

function valueDiff<T>(a: T | undefined, b: T | undefined): ValueDiff<T> | undefined {
  if (textOf(a) === textOf(b)) return undefined;
  return { ...(a !== undefined && { here: a }), ...(b !== undefined && { there: b }) };
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : encode(value);
}
