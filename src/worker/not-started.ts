// Ends a run that was cancelled, or whose deadline passed, before it started: its code does not run.

import { CancelledError, RepriseError } from "../base/index.ts";
import { decodeData, isCancel, type ClaimedTurn, type InboxRow, type TurnWrite } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { JournalWriter, type JournalParts } from "./journal-writer.ts";
import { answerParent } from "./run-end.ts";

/** The store addresses a cancel that arrived before the start to the item `Start`. */
export function findEarlyCancel(inbox: readonly InboxRow[]): InboxRow | undefined {
  return inbox.find(({ type, target }) => isCancel(type) && target === "Start");
}

export function endNotStarted(
  { record, token, inbox }: ClaimedTurn,
  cancel: InboxRow,
  parts: JournalParts,
): TurnWrite & { readonly then: "cancelled" | "failed" } {
  const journal = new JournalWriter(record, parts);
  journal.append(cancel.type, "", cancel.data);
  const then = cancel.type === "CancelRequested" ? endCancelled(journal, cancel.data) : endPastDeadline(journal);
  return journal.writeOf(journal.takePending(), token, inbox.at(-1)?.arrival ?? 0, then);
}

function endCancelled(journal: JournalWriter, data: string): "cancelled" {
  const { reason } = decodeData("CancelRequested", data);
  journal.append("RunCancelled", "", entryData.notStartedData(reason));
  const why = reason === undefined ? "." : `: ${reason}`;
  answerParent(journal, "cancelled", undefined, new CancelledError(`The run was cancelled before it started${why}`));
  return "cancelled";
}

function endPastDeadline(journal: JournalWriter): "failed" {
  const { id } = journal.record;
  const error = new RepriseError(
    "DEADLINE_EXCEEDED",
    `The deadline of run ${id} passed before the run started. Start it again with a longer \`deadline\`, or add workers.`,
  );
  journal.append("RunFailed", "", entryData.runFailedData(error, { begun: false }));
  answerParent(journal, "failed", undefined, error);
  return "failed";
}
