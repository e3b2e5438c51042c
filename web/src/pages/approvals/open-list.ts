// Open list: the rows of open promises as the person saw them. A refresh patches rows in place; it never moves one under the pointer.
//
// open-list.O1. A promise that was answered stays in its place, marked, and new ones are counted, until the person asks for the list anew.

import type { OpenPromiseBody } from "../../../../src/contract/run.ts";
import { idOf } from "./promise-text.ts";

export interface OpenRow {
  readonly id: string;
  readonly promise: OpenPromiseBody;
  /** It is no longer open. */
  readonly gone: boolean;
}

export interface OpenList {
  readonly rows: readonly OpenRow[];
  /** How many open promises have no row yet. */
  readonly fresh: number;
}

/** `shown` undefined: the rows are those of the answer. */
export function patchList(shown: readonly OpenRow[] | undefined, items: readonly OpenPromiseBody[]): OpenList {
  const current = new Map(items.map((promise) => [idOf(promise), promise]));
  if (shown === undefined)
    return { rows: [...current].map(([id, promise]) => ({ id, promise, gone: false })), fresh: 0 };
  const known = new Set(shown.map(({ id }) => id));
  return {
    rows: shown.map(({ id, promise }) => ({ id, promise: current.get(id) ?? promise, gone: !current.has(id) })),
    fresh: [...current.keys()].filter((id) => !known.has(id)).length,
  };
}
