// The end of a run that was cancelled before it began: its code never runs.

import { CancelledError, decode, type EpochMs } from "../base/index.ts";
import type { ClaimedTurn, InboxRow, TurnWrite } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { NONE } from "./batch.ts";
import { Draft } from "./draft.ts";
import { answerParent } from "./run-end.ts";

/** The cancel that came before the beginning; the store names it so. */
export function findEarlyCancel(inbox: readonly InboxRow[]): InboxRow | undefined {
  return inbox.find(({ type, target }) => type === "CancelRequested" && target === "Start");
}

export function endUnbegun(
  { record, token, inbox }: ClaimedTurn,
  { data }: InboxRow,
  clock: { now(): EpochMs },
): TurnWrite {
  const draft = new Draft(record, clock);
  const { reason } = decode(data) as { reason?: string };
  draft.append("CancelRequested", "", data);
  draft.append("RunCancelled", "", entryData.neverBegunData(reason));
  answerParent(
    draft,
    "cancelled",
    undefined,
    new CancelledError(`The run was cancelled before it began${reason === undefined ? "." : `: ${reason}`}`),
  );
  return {
    write: "turn",
    run: record.run,
    token,
    head: record.head,
    entries: draft.batch.entries,
    chain: draft.chain,
    read: inbox.at(-1)?.arrival ?? 0,
    finished: NONE,
    items: NONE,
    dropped: NONE,
    children: NONE,
    messages: draft.batch.messages,
    emits: NONE,
    then: "cancelled",
  };
}
