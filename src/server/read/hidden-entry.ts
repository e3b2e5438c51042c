// Hidden entry: an entry without its payloads, for a caller without the role reader: names, numbers and times stay (run.R1).

import { inspect } from "node:util";
import type { JournalEntry } from "../../kernel/index.ts";

/** Printed as `(hidden)` where a sentence quotes a payload. */
const HIDDEN = { [inspect.custom]: (): string => "(hidden)" };

const PAYLOADS: ReadonlySet<string> = new Set([
  "args",
  "input",
  "output",
  "payload",
  "result",
  "show",
  "value",
  "actual",
  "expected",
]);
const REMOVED: ReadonlySet<string> = new Set(["failures", "stack"]);
const ERRORS: ReadonlySet<string> = new Set(["caught", "error"]);

export function withoutPayload(entry: JournalEntry): JournalEntry {
  if (typeof entry.data !== "object" || entry.data === null) return entry;
  const isCount = entry.type === "NodeCompleted" && entry.command?.endsWith("[]") === true;
  const fields = Object.entries(entry.data).flatMap(([name, value]): [string, unknown][] => {
    if (REMOVED.has(name)) return [];
    if (ERRORS.has(name)) return [[name, hiddenError(value)]];
    if (name === "kept") return [[name, Object.fromEntries(Object.keys(value as object).map((key) => [key, HIDDEN]))]];
    if (name === "delta") return [[name, hiddenDelta(value)]];
    return [[name, PAYLOADS.has(name) && !isCount ? HIDDEN : value]];
  });
  return { ...entry, data: Object.fromEntries(fields) };
}

/** The name of an error is what it is searched by; its message may quote a payload. */
function hiddenError(error: unknown): Error {
  const hidden = new Error("(hidden)");
  if (error instanceof Error) hidden.name = error.name;
  return hidden;
}

/** The channels, and how many items they got. */
function hiddenDelta(delta: unknown): unknown {
  const { append = {}, merge = {}, set = {} } = delta as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  return {
    append: Object.fromEntries(
      Object.entries(append).map(([name, items]) => [name, (items as unknown[]).map(() => 0)]),
    ),
    merge: Object.fromEntries(
      Object.entries(merge).map(([name, laid]) => [
        name,
        Object.fromEntries(Object.keys(laid as object).map((_, at) => [`${at}`, 0])),
      ]),
    ),
    set: Object.fromEntries(Object.keys(set).map((name) => [name, 0])),
  };
}
