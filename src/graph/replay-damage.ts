// Damage: an entry that is not the one that was written, named by the call, the node and the attempt it belongs to.

import type { Entry, JournalFault } from "../kernel/index.ts";
import { decodeEntry, type ReplayDifference } from "../workflow/index.ts";
import { placeOfCommand } from "./recorded-io.ts";

export function damageDifference({ seq, problem }: JournalFault, entries: readonly Entry[]): ReplayDifference {
  const entry = entries.find((one) => one.seq === seq);
  const place = placeOfCommand(entry?.command ?? "");
  if (entry === undefined || place === undefined)
    return {
      where: `entry ${seq}`,
      message: `The journal is damaged: ${problem}.`,
      expected: "the entry as it was written",
      actual: problem,
    };
  const node = nodeAt(entries, place.step, place.position);
  const attempt = place.attempt ?? attemptIn(entry);
  return {
    where: entry.command,
    message: `What was recorded is not what is there: ${problem} (node ${node ?? "?"}, attempt ${attempt + 1}, step ${place.step}).`,
    expected: `mark ${hex(entry.mark)}`,
    actual: problem,
    step: place.step,
    ...(node !== undefined && { node }),
    attempt,
  };
}

function hex(mark: number): string {
  return mark.toString(16).padStart(12, "0");
}

function nodeAt(entries: readonly Entry[], step: number, position: number): string | undefined {
  for (const entry of entries) {
    if (entry.type !== "StepCommitted") continue;
    const data = dataOf(entry) as
      | { readonly step?: number; readonly frontier?: readonly { readonly node: string }[] }
      | undefined;
    if (data?.step === step - 1) return data.frontier?.[position]?.node;
  }
  return undefined;
}

function attemptIn(entry: Entry): number {
  return Number(dataOf(entry)?.["attempt"] ?? 0);
}

/** Undefined where damage has left nothing that can be read. */
function dataOf(entry: Entry): Readonly<Record<string, unknown>> | undefined {
  try {
    return decodeEntry(entry).data;
  } catch {
    return undefined;
  }
}
