// Replay damage: describes a journal entry that has changed since it was written, with its call, node and attempt.

import { decodeData, type Entry, type EntryType, type EntryData, type JournalFault } from "../kernel/index.ts";
import type { ReplayDifference } from "../workflow/index.ts";
import { parseNodeCommand } from "./recorded-io.ts";

export function describeDamage({ seq, problem }: JournalFault, entries: readonly Entry[]): ReplayDifference {
  const entry = entries.find((one) => one.seq === seq);
  const place = parseNodeCommand(entry?.command ?? "");
  if (entry === undefined || place === undefined)
    return {
      where: `entry ${seq}`,
      message: `The journal is damaged: ${problem}.`,
      expected: "the entry as it was written",
      actual: problem,
    };
  const node = nodeAt(entries, place.step, place.position);
  // The journal counts attempts from 0, people from 1.
  const attempt = (place.attempt ?? attemptIn(entry)) + 1;
  return {
    where: entry.command,
    message: `A recorded entry has changed since it was written: ${problem} (node ${node ?? "?"}, attempt ${attempt}, step ${place.step}).`,
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
    const data = findData("StepCommitted", entry);
    if (data?.step === step - 1) return data.frontier?.[position]?.node;
  }
  return undefined;
}

function attemptIn(entry: Entry): number {
  return findData("NodeCompleted", entry)?.attempt ?? 0;
}

/** Undefined if the damaged text cannot be decoded. */
function findData<T extends EntryType>(type: T, entry: Entry): Partial<EntryData[T]> | undefined {
  try {
    return decodeData(type, entry.data);
  } catch {
    return undefined;
  }
}
