// Read: reads runs, journals, inboxes and items.

import { invariant } from "../../base/index.ts";
import type { VersionCount, Entry, InboxRow, ItemInfo, RunNumber, RunProgress, RunRecord } from "../../kernel/index.ts";
import { plainRows, recordOf, type RunRow } from "./run-rows.ts";
import type { Statements } from "./statements.ts";

export function findRun(sql: Statements, id: string, generation?: number): RunRecord | undefined {
  const found = generation === undefined ? sql.newestRun.get(id) : sql.runOfGeneration.get(id, generation);
  const row = found as unknown as RunRow | undefined;
  return row === undefined ? undefined : recordOf(sql, row);
}

/** One seek per version; the runs are counted in the index. */
export function countVersions(sql: Statements): readonly VersionCount[] {
  const counts: VersionCount[] = [];
  for (let name = nextDefinition(sql, ""); name !== undefined; name = nextDefinition(sql, name))
    for (let version = nextVersion(sql, name, 0); version !== undefined; version = nextVersion(sql, name, version)) {
      const { live } = sql.countLive.get(name, version) as { live: number };
      const { due } = sql.countDue.get(name, version) as { due: number };
      counts.push({ name, version, live, due });
    }
  return counts;
}

function nextDefinition(sql: Statements, after: string): string | undefined {
  return (sql.nextDefinition.get(after) as { name: string } | undefined)?.name;
}

function nextVersion(sql: Statements, name: string, after: number): number | undefined {
  return (sql.nextVersion.get(name, after) as { version: number } | undefined)?.version;
}

type EntryRow = [
  seq: number,
  type: Entry["type"],
  command: string,
  data: string,
  at: number,
  mark: number,
  tookMs: number | null,
];

export function readJournal(sql: Statements, run: RunNumber, after: number, limit: number): readonly Entry[] {
  return (sql.entriesAfter.all(run, after, limit) as unknown as EntryRow[]).map(asEntry);
}

export function readSteps(
  sql: Statements,
  run: RunNumber,
  after: number,
  upTo: number,
  limit: number,
): readonly Entry[] {
  return (sql.stepsAfter.all(run, after, upTo, limit) as unknown as EntryRow[]).map(asEntry);
}

function asEntry([seq, type, command, data, at, mark, tookMs]: EntryRow): Entry {
  return tookMs === null ? { seq, type, command, data, at, mark } : { seq, type, command, data, at, mark, tookMs };
}

export function readInbox(sql: Statements, run: RunNumber, after: number): readonly InboxRow[] {
  return plainRows<InboxRow>(sql.inboxAfter.all(run, after));
}

export function readProgress(sql: Statements, runs: readonly RunNumber[]): readonly RunProgress[] {
  const found: RunProgress[] = [];
  for (const run of runs) {
    const row = sql.turnState.get(run) as unknown as
      | (Omit<RunProgress, "token"> & { token: string | null })
      | undefined;
    if (row !== undefined) found.push({ ...row, token: row.token ?? undefined });
  }
  return found;
}

export function readItemTokens(
  sql: Statements,
  items: readonly { readonly run: RunNumber; readonly item: string }[],
): readonly (string | undefined)[] {
  return items.map(({ run, item }) => {
    const row = sql.itemToken.get(run, item) as { token: string | null } | undefined;
    return row?.token ?? undefined;
  });
}

interface ItemRow {
  readonly state: number;
  readonly attempt: number;
  readonly availableAt: number;
  readonly failures: string | null;
}

/** The public name of each `QueueItemState`: a suspect and a parked item are ready, an admitted start is leased. */
const ITEM_STATE_NAMES: readonly (ItemInfo["state"] | undefined)[] = [
  "delayed",
  "ready",
  "leased",
  "stopped",
  "ready",
  "ready",
  "leased",
];

export function itemStateName(state: number): ItemInfo["state"] {
  const name = ITEM_STATE_NAMES[state];
  invariant(name !== undefined, "A queue row must have a known state.");
  return name;
}

export function readItems(
  sql: Statements,
  run: RunNumber,
  items: readonly string[],
): readonly (ItemInfo | undefined)[] {
  return items.map((item) => {
    const row = sql.itemState.get(run, item) as unknown as ItemRow | undefined;
    if (row === undefined) return undefined;
    const { state, attempt, availableAt, failures } = row;
    return { state: itemStateName(state), attempt, availableAt, failures: failures ?? undefined };
  });
}
