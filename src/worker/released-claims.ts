// Released claims: a turn commit may lease tasks and children to its worker. When the worker discarded the run while that
// commit was in flight, these writes release the leases.

import type { Claim, RunRecord, TurnOutcome, TurnWrite, Write } from "../kernel/index.ts";

/** A write that the worker repeats until the store answers. */
export type PersistentWrite = Extract<Write, { write: "end-item" | "return-item" | "return-turn" }>;

export function releasesOf(
  { run, items, children, next }: TurnWrite,
  outcome: TurnOutcome,
): readonly PersistentWrite[] {
  if (outcome.status !== "committed") return [];
  const claims = new Map(children.map((child) => [child.run.id, child.claim]));
  return [
    ...items.flatMap(({ item, claim }): PersistentWrite[] =>
      claim === undefined ? [] : [{ write: "return-item", run, item, token: claim.token, attempt: 0 }],
    ),
    ...outcome.children.flatMap((record) => releaseTurn(record, claims.get(record.id))),
    ...(outcome.next === undefined ? [] : releaseTurn(outcome.next, next?.claim)),
  ];
}

function releaseTurn({ run }: RunRecord, claim: Claim | undefined): readonly PersistentWrite[] {
  return claim === undefined ? [] : [{ write: "return-turn", run, token: claim.token }];
}

/** Whether the write, if the store applied it, may have leased work to this worker. */
export function mayAcquireLease(write: Write): boolean {
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
