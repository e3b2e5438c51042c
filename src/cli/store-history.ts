// Store history: texts and JSON of events that affect the whole store: a restore, or a database that was rolled back.

import type { HistoryEvent } from "../kernel/index.ts";
import { isoOf } from "./run-format.ts";
import { pluralize, plain } from "./text.ts";

const SHOWN = 5;

/** Newest first, like `history`. */
export function historyLines(history: readonly HistoryEvent[]): readonly string[] {
  const lines = history.slice(0, SHOWN).map((event) => `${isoOf(event.at)} ${eventText(event)}`);
  const others = history.length - lines.length;
  return others > 0 ? [...lines, `and ${pluralize(others, "earlier event", "earlier events")}`] : lines;
}

/** `restored from /data/shop-monday.db, …` */
export function eventText({ kind, detail }: HistoryEvent): string {
  return `${kind === "restored" ? "restored" : "rolled back:"} ${plain(detail)}`;
}

export function historyJson(history: readonly HistoryEvent[]): readonly object[] {
  return history.map(({ at, kind, detail }) => ({ at: isoOf(at), kind, detail }));
}
