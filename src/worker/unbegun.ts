// The end of a run that was cancelled, or too late, before it began: its code never runs.

import { CancelledError, decode, RepriseError, type EpochMs } from "../base/index.ts";
import { isCancel, type ClaimedTurn, type InboxRow, type TurnWrite } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { NONE } from "./batch.ts";
import { Draft } from "./draft.ts";
import { answerParent } from "./run-end.ts";

/** What came before the beginning; the store names it so. */
export function findEarlyCancel(inbox: readonly InboxRow[]): InboxRow | undefined {
  return inbox.find(({ type, target }) => isCancel(type) && target === "Start");
}

export function endUnbegun(
  { record, token, inbox }: ClaimedTurn,
  cancel: InboxRow,
  clock: { now(): EpochMs },
): TurnWrite & { readonly then: "cancelled" | "failed" } {
  const draft = new Draft(record, clock);
  draft.append(cancel.type, "", cancel.data);
  const then = cancel.type === "CancelRequested" ? endCancelled(draft, cancel.data) : endLate(draft);
  return {
    write: "turn",
    run: record.run,
    token,
    head: record.head,
    previousChain: record.chain,
    entries: draft.batch.entries,
    chain: draft.chain,
    read: inbox.at(-1)?.arrival ?? 0,
    finished: NONE,
    items: NONE,
    dropped: NONE,
    children: NONE,
    messages: draft.batch.messages,
    emits: NONE,
    sends: NONE,
    then,
  };
}

function endCancelled(draft: Draft, data: string): "cancelled" {
  const { reason } = decode(data) as { reason?: string };
  draft.append("RunCancelled", "", entryData.neverBegunData(reason));
  const said = reason === undefined ? "." : `: ${reason}`;
  answerParent(draft, "cancelled", undefined, new CancelledError(`The run was cancelled before it began${said}`));
  return "cancelled";
}

function endLate(draft: Draft): "failed" {
  const { id } = draft.record;
  const error = new RepriseError("DEADLINE_EXCEEDED", `The deadline of run ${id} passed before it began.`);
  draft.append("RunFailed", "", entryData.runFailedData(error, { begun: false }));
  answerParent(draft, "failed", undefined, error);
  return "failed";
}
