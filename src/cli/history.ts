// What happened to the store as a whole, for people: it went back to an earlier state, or was restored.

import type { HistoryEvent } from "../kernel/index.ts";
import { isoOf } from "./shown-run.ts";
import { countOf, plain } from "./text.ts";

const SHOWN = 5;

/** Newest first, as they come. */
export function historyLines(history: readonly HistoryEvent[]): readonly string[] {
  const lines = history.slice(0, SHOWN).map((event) => `${isoOf(event.at)} ${eventText(event)}`);
  const others = history.length - lines.length;
  return others > 0 ? [...lines, `and ${countOf(others, "event", "events")} before`] : lines;
}

/** `restored from /data/shop-monday.db, …` */
export function eventText({ kind, detail }: HistoryEvent): string {
  return `${kind === "restored" ? "restored" : "the database went back:"} ${plain(detail)}`;
}

export function historyJson(history: readonly HistoryEvent[]): readonly object[] {
  return history.map(({ at, kind, detail }) => ({ at: isoOf(at), kind, detail }));
}
