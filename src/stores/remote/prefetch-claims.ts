// Prefetch of claims: the first round trip loads the rows that may be claimed, the next one everything about them.

import type { EpochMs } from "../../base/index.ts";
import type {
  AdmitWrite,
  ClaimItemsWrite,
  ClaimMessagesWrite,
  ClaimTurnsWrite,
  DefinitionVersion,
  QueueLimits,
} from "../../kernel/index.ts";
import { isNodeRoute, SUSPECTS_SEEN } from "../../kernel/index.ts";
import { startItemName } from "../rules/backlog.ts";
import { MAX_RATE_GATES, type SlotKind } from "../rules/queue-limiter.ts";
import { suspectGroups, type SuspectGroup } from "../rules/suspect-groups.ts";
import type { Lock, Select } from "./query.ts";
import {
  begunAt,
  busyItems,
  DUE_DEFINITIONS,
  dueRateGates,
  dueTurns,
  forgettable,
  heldIsolated,
  leasedIsolated,
  linedItems,
  linesOf,
  NEXT_RATE_GATE,
  outgoingAfter,
  outgoingTo,
  parkedOfKind,
  READY_NAMES,
  readyItems,
  SUSPECT_DEFINITIONS,
  SUSPECT_NAMES,
  suspectItemGroup,
  suspectItems,
  suspectTurnGroup,
  suspectTurns,
} from "./statements/selections.ts";
import type { RowOf } from "../rows/tables.ts";
import { prefetchNames, prefetchVersions } from "./prefetch-names.ts";
import { lockOf, type AccessMode } from "./statements/context.ts";
import type { WorkingSet } from "./working-set.ts";

type QueueRow = RowOf<"queue">;

const RUN = ["run"] as const;

/** A claim skips locked rows; it never waits. */
function free(mode: AccessMode): Lock {
  return mode === "claim" ? "skip" : "none";
}

export function prefetchClaimTurns(ws: WorkingSet, mode: AccessMode, write: ClaimTurnsWrite): void {
  const limit = write.tokens.length;
  if (limit === 0) return;
  if (mode === "claim") ws.prefetchRows("workers", lockOf(mode, "workers"), [[write.worker]]);
  const isFew = prefetchVersions([write]) !== undefined;
  const named = (known: readonly unknown[] | undefined): readonly DefinitionVersion[] | undefined =>
    known && write.definitions.filter(({ name }) => known.includes(name));
  const asked = (query: typeof DUE_DEFINITIONS): readonly DefinitionVersion[] | undefined =>
    isFew ? write.definitions : named(ws.tryCounts(query)?.map((row) => row["definition"]));
  const seen = asked(SUSPECT_DEFINITIONS)?.map((of) => ({
    of,
    suspects: ws.trySelect(suspectTurns(of.name, of.version, SUSPECTS_SEEN)) ?? [],
  }));
  const due = asked(DUE_DEFINITIONS)?.map(({ name, version }) =>
    ws.trySelect(dueTurns(free(mode), name, version, mode === "read" ? 1 : limit)),
  );
  if (mode !== "claim" || seen === undefined || due === undefined) return;
  const suspects = prefetchGroup(ws, write.worker, suspectGroups(seen, limit), ({ name, version }, level, most) =>
    suspectTurnGroup(free(mode), name, version, level, most),
  );
  const first = due
    .flatMap((runs) => runs ?? [])
    .sort((a, b) => b.priority - a.priority || a.run - b.run)
    .slice(0, limit);
  const taken = suspects.length > 0 ? suspects : first;
  if (taken.length === 0) return;
  const all = taken.map(({ run }) => [run]);
  ws.prefetchBy("tags", RUN, all, "none");
  // Not for the claim itself: a process that has all items of a run cached sends no query when the run ends (row-cache.M2). A
  // run that was only started has next to no items.
  const begun = taken.filter(({ head, kind }) => head === 1 && kind !== "flow").map(({ run }) => [run]);
  if (begun.length > 0) ws.prefetchBy("queue", RUN, begun, "none");
  const unread = taken.filter(({ arrivals, read }) => arrivals > read).map(({ run }) => [run]);
  if (unread.length > 0) ws.prefetchBy("inbox", RUN, unread, "none");
}

/** suspects.S3. No suspects while the worker holds an isolated one; else the first group, as far as it is loaded. */
function prefetchGroup<K, T extends "runs" | "queue">(
  ws: WorkingSet,
  worker: number,
  [group]: readonly SuspectGroup<K>[],
  query: (of: K, level: number, most: number) => Select<T>,
): readonly RowOf<T>[] {
  if (group === undefined) return [];
  const held = [ws.trySelect(heldIsolated(worker)), ws.trySelect(leasedIsolated(worker))];
  if (held.some((rows) => rows === undefined || rows.length > 0)) return [];
  return group.parts.flatMap(({ of, limit }) => ws.trySelect(query(of, group.level, limit)) ?? []);
}

export function prefetchClaimItems(ws: WorkingSet, mode: AccessMode, now: EpochMs, write: ClaimItemsWrite): void {
  const limit = write.tokens.length;
  if (limit === 0) return;
  if (mode === "claim") ws.prefetchRows("workers", lockOf(mode, "workers"), [[write.worker]]);
  const isFew = prefetchNames([write]) !== undefined;
  const asked = (query: typeof READY_NAMES): readonly string[] => {
    if (isFew) return write.names;
    const known = ws.tryCounts(query)?.map((row) => row["name"]);
    return write.names.filter((name) => known?.includes(name));
  };
  const seen = asked(SUSPECT_NAMES).map((of) => ({
    of,
    suspects: ws.trySelect(suspectItems(of, SUSPECTS_SEEN)) ?? [],
  }));
  const suspects = seen.flatMap((each) => each.suspects);
  for (const { queue } of suspects) if (queue !== null) prefetchGate(ws, mode, now, "task", queue);
  for (const row of suspects) prefetchKey(ws, now, "task", row);
  const group =
    mode !== "claim"
      ? []
      : prefetchGroup(ws, write.worker, suspectGroups(seen, limit), (name, level, most) =>
          suspectItemGroup(free(mode), name, level, most),
        );
  const found: QueueRow[] = [];
  for (const name of asked(READY_NAMES))
    found.push(...(ws.trySelect(readyItems(free(mode), name, mode === "read" ? 1 : limit)) ?? []));
  found.push(...prefetchQueued(ws, mode, now, "task", write.names, limit));
  if (mode !== "claim") return;
  const taken = group.length > 0 ? group : found.sort(inTurn).slice(0, limit);
  ws.prefetchRows(
    "runs",
    "none",
    taken.map(({ run }) => [run]),
  );
  // The inputs of nodes are read when they start.
  const tasks = taken.filter(({ name }) => !isNodeRoute(name));
  ws.prefetchRows(
    "journal",
    "none",
    tasks.map(({ run, seq }) => [run, seq]),
  );
}

function inTurn(a: QueueRow, b: QueueRow): number {
  return b.priority - a.priority || a.available_at - b.available_at || a.run - b.run;
}

export function prefetchAdmit(
  ws: WorkingSet,
  mode: AccessMode,
  now: EpochMs,
  { definitions, limit }: AdmitWrite,
): void {
  const names = definitions.map(({ name, version }) => startItemName(name, version));
  prefetchQueued(ws, mode, now, "start", names, limit);
}

/**
 * The queued items of these names, as far as they are loaded. A `write` reads them first, to lock the runs before the queues
 * (remote.L1), and only then counts the free slots.
 */
function prefetchQueued(
  ws: WorkingSet,
  mode: AccessMode,
  now: EpochMs,
  kind: SlotKind,
  names: readonly string[],
  limit: number,
): QueueRow[] {
  ws.prefetch(NEXT_RATE_GATE);
  ws.prefetch(parkedOfKind(kind));
  if (mode !== "read") ws.prefetch(dueRateGates("none", now, MAX_RATE_GATES));
  const claimed = new Set(names);
  const lines = ws.tryCounts(linesOf(kind)) as readonly { queue: string; name: string }[] | undefined;
  const mine = lines?.filter(({ name }) => claimed.has(name)) ?? [];
  const rows: QueueRow[] = [];
  let isSeen = true;
  for (const { queue, name } of mine) {
    ws.prefetchRows("queues", "none", [[queue]]);
    const lined = mode === "read" ? [] : ws.trySelect(linedItems(free(mode), kind, queue, name, limit));
    isSeen &&= lined !== undefined;
    rows.push(...(lined ?? []));
  }
  if (mode === "write" && !isSeen) return rows;
  for (const { queue } of mine) prefetchGate(ws, mode, now, kind, queue);
  for (const row of rows) prefetchKey(ws, now, kind, row);
  if (mode === "write") prefetchRuns(ws, rows);
  return rows;
}

/** Locks the runs of all queued items; the limits decide which of them are admitted. */
function prefetchRuns(ws: WorkingSet, rows: readonly QueueRow[]): void {
  ws.prefetchRows(
    "runs",
    "update",
    rows.map(({ run }) => [run]),
  );
  ws.prefetchRows(
    "queue",
    "update",
    rows.map(({ run, item }) => [run, item]),
  );
}

function prefetchGate(ws: WorkingSet, mode: AccessMode, now: EpochMs, kind: SlotKind, queue: string): void {
  ws.prefetchRows("queues", lockOf(mode, "queues"), [[queue]]);
  if (mode === "claim" && !ws.isLockedByOther("queues", queue)) ws.prefetchRows("queues", "skip", [[queue]]);
  ws.prefetch({ kind: "count", table: "queue", where: busyItems(kind, queue) });
  ws.prefetch(begunAt(kind, queue, "", now));
  const { rate } = limitsOf(ws, queue);
  if (rate === undefined || mode === "read") return;
  ws.prefetchRows("begun", "none", [[kind, queue, "", now + rate.perMs]]);
  ws.trySelect(forgettable(now), 200);
}

function prefetchKey(ws: WorkingSet, now: EpochMs, kind: SlotKind, { queue, key }: QueueRow): void {
  if (queue === null || key === null) return;
  const { perKey } = limitsOf(ws, queue);
  if (perKey?.concurrency !== undefined)
    ws.prefetch({ kind: "count", table: "queue", where: busyItems(kind, queue, key) });
  if (perKey !== undefined) ws.prefetch(begunAt(kind, queue, key, now));
  if (perKey?.rate === undefined) return;
  ws.prefetchRows("begun", "none", [[kind, queue, key, now + perKey.rate.perMs]]);
  ws.prefetchRows("lanes", "none", [[kind, queue, key]]);
  ws.trySelect(forgettable(now), 200);
}

function limitsOf(ws: WorkingSet, queue: string): QueueLimits {
  return JSON.parse(ws.original("queues", queue)?.limits ?? "{}") as QueueLimits;
}

export function prefetchClaimMessages(ws: WorkingSet, mode: AccessMode, now: EpochMs, write: ClaimMessagesWrite): void {
  const limit = write.tokens.length;
  for (const destination of write.destinations) {
    ws.prefetch(outgoingAfter(destination, now));
    if (limit === 0) continue;
    const found = ws.trySelect(outgoingTo(free(mode), destination, now, mode === "read" ? 1 : limit)) ?? [];
    if (mode === "read") continue;
    ws.prefetchRows(
      "runs",
      "none",
      found.map(({ run }) => [run]),
    );
    ws.prefetchRows(
      "journal",
      "none",
      found.map(({ run, seq }) => [run, seq]),
    );
  }
}
