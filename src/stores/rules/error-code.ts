// Error code: what a list of failed runs can be filtered by, without reading their journals.
//
// It is stored as it is, also in a store with a codec: a code or a class of errors is not a payload.

import { decode } from "../../base/index.ts";
import type { Entry } from "../../kernel/index.ts";

/** As long as a name may be: a thrown object can have anything as its code. */
const MAX_LENGTH = 200;

/** The `code` of the error in the entry that fails a run, otherwise its name; null: the run threw something else. */
export function errorCodeOf(entries: readonly Pick<Entry, "type" | "data">[]): string | null {
  const last = entries.findLast(({ type }) => type === "RunFailed");
  const error = last && thrownIn(last.data);
  if (typeof error !== "object" || error === null) return null;
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  for (const text of [typeof code === "number" ? String(code) : code, name])
    if (typeof text === "string" && text !== "" && isStorable(text)) return text.slice(0, MAX_LENGTH).toWellFormed();
  return null;
}

/** No database stores a zero in text. */
function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

/** Undefined: the entry cannot be decoded. A damaged entry must not keep a run from ending. */
function thrownIn(data: string): unknown {
  try {
    return (decode(data) as { readonly error?: unknown } | null | undefined)?.error;
  } catch {
    return undefined;
  }
}
