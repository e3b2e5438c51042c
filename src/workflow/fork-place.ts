// Fork place: where the journal of a run is cut so that one of its commands is answered again (fork.F5).

import {
  END_ENTRIES,
  isCancel,
  isOfType,
  isTerminal,
  type DecodedEntry,
  type Entry,
  type EntryType,
} from "../kernel/index.ts";
import { decodeEffectiveEntries } from "./recorded-journal.ts";

export type ForkPlace =
  /** `seq`: the last entry before the answer; `answer`: undefined while the command has none. */
  | { readonly status: "found"; readonly seq: number; readonly answer: DecodedEntry | undefined }
  | { readonly status: "not_requested"; readonly requested: readonly string[] }
  /** The command is answered by nothing, such as `State(0)`. */
  | { readonly status: "no_answer" };

const WITHOUT_ANSWER: ReadonlySet<EntryType> = new Set<EntryType>([
  "StateSet",
  "StateCleared",
  "MessageSent",
  "UpdateRequested",
]);

/** `entries`: the whole history of the run, with what it shares (shared-history.S1). */
export function findForkPlace(entries: readonly Entry[], command: string): ForkPlace {
  const settled = new Map<string, DecodedEntry>();
  const requested = new Set<string>();
  let isOpen = false;
  let shielded = false;
  let port: string | undefined;
  for (const entry of decodeEffectiveEntries(entries)) {
    if (entry.command !== "") requested.add(entry.command);
    if (isOfType(entry, "PromiseResolved", "PromiseRejected")) settled.set(entry.data.promiseId, entry);
    const isAnswer =
      (entry.command === command && isTerminal(entry.type)) ||
      (isOfType(entry, "PromiseResolved", "PromiseRejected") && isOpen && entry.data.promiseId === port) ||
      (isOpen && ((isCancel(entry.type) && !shielded) || END_ENTRIES.includes(entry.type)));
    if (isAnswer) return { status: "found", seq: entry.seq - 1, answer: entry };
    if (entry.command !== command) continue;
    if (WITHOUT_ANSWER.has(entry.type)) return { status: "no_answer" };
    isOpen = true;
    shielded = "shielded" in entry.data && entry.data.shielded === true;
    if (entry.type !== "PromiseCreated") continue;
    port = entry.data.promiseId;
    // It had its value before the code waited for it.
    const answer = entry.data.receives === undefined ? settled.get(port) : undefined;
    if (answer !== undefined) return { status: "found", seq: answer.seq - 1, answer };
  }
  if (!isOpen) return { status: "not_requested", requested: [...requested] };
  return { status: "found", seq: entries.at(-1)?.seq ?? 0, answer: undefined };
}
