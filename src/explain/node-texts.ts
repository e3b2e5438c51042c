// Node texts: sentences about the nodes and steps of graphs and flows.

import { formatMs, plain, pluralize, showValue, sizeText } from "../base/index.ts";
import { parseItemName, type StepCommittedData } from "../kernel/index.ts";
import { changesOf, tallyOf, tallyText, type ChannelChange, type NodeTally } from "./step-changes.ts";
import { attemptOf, type TypedEntry } from "./typed-entry.ts";

/** `2.1`: the second item of step 2. */
export function placeText(command: string): string {
  return command.slice(command.indexOf("(") + 1, command.indexOf(")"));
}

/** `node 2.1, took 12 ms, attempt 2 → { found: [ 'x' ] }, goto write, label first` */
export function completedText({ command = "", tookMs, data }: TypedEntry<"NodeCompleted">): string {
  const { change, goto: to, label } = (data.result ?? {}) as { change?: unknown; goto?: unknown; label?: unknown };
  const parts = [`node ${placeText(command)}`];
  if (tookMs !== undefined) parts.push(`took ${formatMs(tookMs)}`);
  if (data.attempt !== undefined) parts.push(`attempt ${attemptOf(data)}`);
  const targets = Array.isArray(to)
    ? `, goto ${to.map((one) => (one === null ? "END" : plain(String(one)))).join(", ")}`
    : "";
  const labeled = typeof label === "string" ? `, label ${plain(label)}` : "";
  return `${parts.join(", ")}${change === undefined ? "" : ` → ${showValue(change)}`}${targets}${labeled}`;
}

/** `node, attempt 2 → 'a value', rows = 3, skips allWell` */
export function flowCompletedText({ command = "", data }: TypedEntry<"NodeCompleted">): string {
  if (parseItemName(command).kind === "spread")
    return `spread, ${pluralize(Number(data.result ?? 0), "item", "items")}`;
  const parts = ["node"];
  if (data.reused !== undefined) parts.push("reused");
  if (data.attempt !== undefined) parts.push(`attempt ${attemptOf(data)}`);
  if ("caught" in data) parts.push(`caught ${showValue(data.caught)}`);
  const derived = Object.entries(data.kept ?? {}).map(([name, value]) => `, ${plain(name)} = ${showValue(value)}`);
  const skipped = Array.isArray(data.skipped) ? `, skips ${data.skipped.map(String).map(plain).join(", ")}` : "";
  const value = "result" in data ? ` → ${showValue(data.result)}` : "";
  return `${parts.join(", ")}${value}${derived.join("")}${skipped}`;
}

/** `node failed, attempt 3: Error: no` */
export function flowFailedText({ data }: TypedEntry<"NodeFailed">): string {
  return `node failed${data.attempt === undefined ? "" : `, attempt ${attemptOf(data)}`}: ${showValue(data.error)}`;
}

/** `node 2.1 failed, attempt 3: Error: no` */
export function failedText({ command = "", data }: TypedEntry<"NodeFailed">): string {
  const attempt = data.attempt === undefined ? "" : `, attempt ${attemptOf(data)}`;
  return `node ${placeText(command)} failed${attempt}: ${showValue(data.error)}`;
}

/** `node 2.1, attempt 1 failed, retry in 5 ms` */
export function retriedText({ command = "", data }: TypedEntry<"NodeRetried">): string {
  return `node ${placeText(command)}, attempt ${attemptOf(data)} failed, retry in ${formatMs(Number(data.delay ?? 0))}`;
}

/** `found +2, draft (58 bytes), next write` */
export function stepText({ delta = {}, frontier = [], waiting = [], label }: Partial<StepCommittedData>): string {
  const changed = changesOf(delta);
  const parts = [changed.length === 0 ? "no changes" : `${changedText(changed)} (${bytesText(bytesOf(changed))})`];
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

/** `found +2, facts ~1, draft`: items appended, keys merged, or the channel replaced. */
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
  return bytes < 10_000 ? pluralize(bytes, "byte", "bytes") : sizeText(bytes);
}
