// What a commit claimed for its worker that is nobody's work there any more: the run was stopped while it was under way.

import type { Claim, RunRecord, TurnOutcome, TurnWrite, Write } from "../kernel/index.ts";

/** Writes that must not be lost while the worker lives. */
export type Insisted = Extract<Write, { write: "item-end" | "item-back" | "turn-back" }>;

export function claimsIn({ run, items, children, next }: TurnWrite, outcome: TurnOutcome): readonly Insisted[] {
  if (outcome.status !== "committed") return [];
  const claims = new Map(children.map((child) => [child.run.id, child.claim]));
  return [
    ...items.flatMap(({ item, claim }): Insisted[] =>
      claim === undefined ? [] : [{ write: "item-back", run, item, token: claim.token, attempt: 0 }],
    ),
    ...outcome.children.flatMap((record) => turnBack(record, claims.get(record.id))),
    ...(outcome.next === undefined ? [] : turnBack(outcome.next, next?.claim)),
  ];
}

function turnBack({ run }: RunRecord, claim: Claim | undefined): readonly Insisted[] {
  return claim === undefined ? [] : [{ write: "turn-back", run, token: claim.token }];
}

/** Whether something may be held under this worker's number after the write, should it have been applied. */
export function mayHold(write: Write): boolean {
  switch (write.write) {
    case "turn":
    case "complete":
    case "claim-turns":
    case "claim-items":
    case "claim-messages":
      return true;
    case "start":
      return write.claim !== undefined;
    default:
      return false;
  }
}
