// Delete run: deletes one ended run with its family (families.E1), or says what keeps it. A forgotten run is not kept for the log.

import type { EpochMs } from "../../base/index.ts";
import { hasEnded, type DeleteOutcome, type RunNumber } from "../../kernel/index.ts";
import type { Rows, RowSession } from "../rows/rows.ts";
import { deleteFamilies, MEMBER, readFamilies, sweepAll, type Family } from "./families.ts";

const WHAT = "Deleting a run";
const ID = ["id"] as const;

export async function deleteOneRun(
  session: RowSession,
  id: string,
  pause: () => Promise<void> = async () => {},
  isForgotten = false,
): Promise<DeleteOutcome> {
  for (;;) {
    const { family, refused } = await session.read(WHAT, (rows, now) => findFamily(rows, now, id, isForgotten));
    if (refused !== undefined) return refused;
    const runs = await deleteFamilies(session, WHAT, [family], new Set<RunNumber>(), pause);
    // A run of the family was retried or deleted since it was read.
    if (runs < family.members.length) continue;
    await sweepAll(session, WHAT, pause);
    return { status: "deleted", runs };
  }
}

type Found =
  | { readonly family: Family; readonly refused?: undefined }
  | { readonly refused: DeleteOutcome; readonly family?: undefined };

function findFamily(rows: Rows, now: EpochMs, id: string, isForgotten: boolean): Found {
  const run = rows.first("runs_by_id", [id], MEMBER, { backwards: true });
  const [family] = run === undefined ? [] : readFamilies(rows, now, [run]);
  const [fork] = family?.forks ?? [];
  const by = fork && rows.get("runs", [fork.run], ID);
  if (run === undefined || family === undefined) return { refused: { status: "no_run" } };
  const { root, members, sending, logged } = family;
  if (root.id !== id) return { refused: { status: "child", of: root.id } };
  const live = members.find(({ status }) => !hasEnded(status));
  if (live !== undefined) return { refused: { status: "live", run: live.id, as: live.status } };
  if (fork !== undefined) return { refused: { status: "forked", run: fork.origin.id, by: by?.id ?? String(fork.run) } };
  if (sending[0] !== undefined) return { refused: { status: "sending", run: sending[0].id } };
  const [kept] = logged;
  if (isForgotten || kept === undefined) return { family: isForgotten ? { ...family, isForgotten } : family };
  return { refused: { status: kept.isPinned ? "pinned" : "logging", run: kept.member.id } };
}
