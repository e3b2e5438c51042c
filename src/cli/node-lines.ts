// What the entries of nodes say, in words: those of graphs with the steps they make, those of flows.

import { formatMs } from "../base/index.ts";
import type { JournalEntry } from "../kernel/index.ts";
import { changesOf, tallyOf, tallyText, type ChannelChange, type NodeTally, type StepData } from "./graph-run.ts";
import { type Fields } from "./steps.ts";
import { countOf, plain, showValue, sizeText } from "./text.ts";

/** `2.1`: the second item of step 2. */
export function placeText(command: string): string {
  return command.slice(command.indexOf("(") + 1, command.indexOf(")"));
}

/** `node 2.1, took 12 ms, attempt 2 → { found: [ 'x' ] }, goto write, label first` */
export function completedText({ command = "", tookMs }: JournalEntry, fields: Fields): string {
  const { change, goto: to, label } = (fields["result"] ?? {}) as { change?: unknown; goto?: unknown; label?: unknown };
  const parts = [`node ${placeText(command)}`];
  if (tookMs !== undefined) parts.push(`took ${formatMs(tookMs)}`);
  if ("attempt" in fields) parts.push(`attempt ${Number(fields["attempt"]) + 1}`);
  const went = Array.isArray(to)
    ? `, goto ${to.map((one) => (one === null ? "END" : plain(String(one)))).join(", ")}`
    : "";
  const named = typeof label === "string" ? `, label ${plain(label)}` : "";
  return `${parts.join(", ")}${change === undefined ? "" : ` → ${showValue(change)}`}${went}${named}`;
}

/** `node, attempt 2 → 'a value', keeps rows, skips allWell` */
export function flowCompletedText(command: string, fields: Fields): string {
  const isSpread = command.endsWith("[]");
  const items = Number(fields["result"] ?? 0);
  if (isSpread) return `spread, ${countOf(items, "item", "items")}`;
  const parts = ["node"];
  if ("attempt" in fields) parts.push(`attempt ${Number(fields["attempt"]) + 1}`);
  if ("caught" in fields) parts.push(`caught ${showValue(fields["caught"])}`);
  const kept = Object.entries((fields["kept"] ?? {}) as object).map(
    ([name, value]) => `, ${plain(name)} = ${showValue(value)}`,
  );
  const skipped = Array.isArray(fields["skipped"])
    ? `, skips ${fields["skipped"].map(String).map(plain).join(", ")}`
    : "";
  const value = "result" in fields ? ` → ${showValue(fields["result"])}` : "";
  return `${parts.join(", ")}${value}${kept.join("")}${skipped}`;
}

/** `node failed, attempt 3: Error: no` */
export function flowFailedText(fields: Fields): string {
  return `node failed${"attempt" in fields ? `, attempt ${Number(fields["attempt"]) + 1}` : ""}: ${showValue(fields["error"])}`;
}

/** `node 2.1, attempt 1 failed, next in 5 ms` or `node 2.1 failed, attempt 3: Error: no` */
export function failedText({ type, command = "" }: JournalEntry, fields: Fields): string {
  const attempt = Number(fields["attempt"] ?? 0) + 1;
  const node = `node ${placeText(command)}`;
  if (type === "NodeRetried")
    return `${node}, attempt ${attempt} failed, next in ${formatMs(Number(fields["delay"] ?? 0))}`;
  return `${node} failed${"attempt" in fields ? `, attempt ${attempt}` : ""}: ${showValue(fields["error"])}`;
}

/** `found +2, draft (58 bytes), next write` */
export function stepText(fields: Fields): string {
  const { delta = {}, frontier = [], waiting = [], label } = fields as unknown as Partial<StepData>;
  const changed = changesOf(delta);
  const parts = [changed.length === 0 ? "nothing changed" : `${changedText(changed)} (${bytesText(bytesOf(changed))})`];
  if (label !== undefined) parts.push(`label ${plain(label)}`);
  if (frontier.length > 0) parts.push(`next ${nodesText(tallyOf(frontier))}`);
  for (const { node, arrived } of waiting)
    parts.push(`${plain(node)} waits, has ${arrived.map((one) => plain(one.node)).join(", ")}`);
  return parts.join(", ");
}

export function nodesText(tallies: readonly NodeTally[]): string {
  return tallies
    .map((tally) => `${plain(tallyText(tally))}${tally.attempts > 1 ? ` (${tally.attempts} attempts)` : ""}`)
    .join(", ");
}

/** `found +2, facts ~1, draft`: items added, keys laid over, or written anew. */
export function changedText(changed: readonly ChannelChange[]): string {
  const signs = { append: "+", merge: "~", set: "" } as const;
  return changed
    .map(({ channel, how, count }) => `${plain(channel)}${how === "set" ? "" : ` ${signs[how]}${count}`}`)
    .join(", ");
}

export function bytesOf(changed: readonly ChannelChange[]): number {
  return changed.reduce((sum, { bytes }) => sum + bytes, 0);
}

export function bytesText(bytes: number): string {
  return bytes < 10_000 ? countOf(bytes, "byte", "bytes") : sizeText(bytes);
}
