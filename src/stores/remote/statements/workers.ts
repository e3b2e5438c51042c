// @ts-nocheck
// Statements for workers: their leases, and the work they hold.

import { DEDUP_MS, SUSPECT_AFTER, QueueItemState, TurnDue, OutboxState, dueOrSuspect } from "../../../kernel/index.ts";
import type { Distinct, Select } from "../query.ts";
import { equal, fixed, leasedItems, some } from "./selections.ts";
import type { RowOf, TableName } from "../../rows/tables.ts";
import { change, effect, one, rows, type StatementContext } from "./context.ts";
import { NO_TURN, returned, UNHELD } from "./runs.ts";
import { LEFTOVERS, oldIds, prefetchRunsOfLeftovers } from "./sweep.ts";

/** Items and messages use the same number. */
const LEASED: typeof OutboxState.leased = QueueItemState.leased;

const HOLDERS = {
  turns: holders("runs", "turn_worker"),
  items: holders("queue", "worker"),
  outgoing: holders("outbox", "worker"),
};

interface Holder {
  readonly value: number;
}

export function workerStatements(context: StatementContext) {
  const { ws, mode, lock } = context;
  const turnsOf = (worker: number): Select<"runs"> => ({
    kind: "select",
    table: "runs",
    where: [some("turn_worker"), equal("turn_worker", worker)],
    order: [["run", "asc"]],
    lock: lock("runs"),
  });
  const outgoingOf = (worker: number): Select<"outbox"> => ({
    kind: "select",
    table: "outbox",
    where: [fixed("state", OutboxState.leased), equal("worker", worker)],
    lock: lock("outbox"),
  });
  const expired = (now: number, self: number): Select<"workers"> => ({
    kind: "select",
    table: "workers",
    where: [
      { column: "until", is: "<=", value: now },
      { column: "worker", is: "<>", value: self },
    ],
    order: [["worker", "asc"]],
    lock: "none",
  });
  const holding = (query: Distinct): readonly Holder[] =>
    ws.counts(query).map((row) => ({ value: row[query.columns[0]!] as number }));
  const isUnknown = ({ value }: Holder): boolean => ws.get("workers", lock("workers"), value) === undefined;
  /** Whether an unknown worker still holds work under the locks: another worker may have taken it over since. */
  const isStill = (holder: Holder, held: (worker: number) => Select): boolean =>
    mode !== "write" || !isUnknown(holder) || ws.select(held(holder.value)).length > 0;
  /** Prefetches everything that a worker holds. */
  const prefetchHeld = (worker: number): void => {
    ws.prefetch(turnsOf(worker));
    ws.prefetch(leasedItems(lock("queue"), worker));
    ws.prefetch(outgoingOf(worker));
  };

  return {
    insertWorker: change((worker: number, name: string, until: number, startedAt: number, about: string | null) =>
      Number(ws.insert("workers", { worker, name, until, started_at: startedAt, about, doing: null })),
    ),
    worker: one((worker: number) => {
      const row = ws.get("workers", lock("workers"), worker);
      return row && { name: row.name, until: row.until };
    }),
    workers: rows(() =>
      ws
        .select({ kind: "select", table: "workers", where: [some("worker")], order: [["worker", "asc"]], lock: "none" })
        .toSorted((a, b) => a.started_at - b.started_at || a.worker - b.worker)
        .map(({ worker, name, started_at: startedAt, until, about, doing }) => ({
          worker,
          name,
          startedAt,
          until,
          about,
          doing,
        })),
    ),
    renewWorker: change((until: number, doing: string | null, worker: number) => {
      const row = ws.get("workers", "update", worker);
      if (row === undefined) return 0;
      ws.update("workers", row, { until, doing: doing ?? row.doing });
      return 1;
    }),
    deleteWorker: effect((worker: number) => ws.deleteBlind("workers", [worker])),
    heldTurns: rows((worker: number) => {
      ws.require(() => prefetchHeld(worker));
      return ws.select(turnsOf(worker)).map(({ run, turn_token: token }) => ({ run, token }));
    }),
    heldItems: rows((worker: number) => {
      ws.require(() => prefetchHeld(worker));
      return ws
        .select(leasedItems(lock("queue"), worker))
        .map(({ run, item, token, attempt, queue, key }) => ({ run, item, token, attempt, queue, key }));
    }),
    heldOutgoing: rows((worker: number) =>
      ws
        .select(outgoingOf(worker))
        .map(({ line, run, seq, token, attempt }) => ({ line, run, seq, token, attempt }))
        .toSorted((a, b) => a.line - b.line || a.run - b.run || a.seq - b.seq),
    ),
    expiredWorkers: rows((now: number, self: number) => {
      ws.require(() => {
        ws.prefetch(expired(now, self));
        for (const query of Object.values(HOLDERS)) ws.prefetch(query);
        ws.trySelect(LEFTOVERS(mode), 100);
        ws.prefetch(oldIds(mode, now - DEDUP_MS, 1));
      });
      const dead = ws.select(expired(now, self));
      if (mode !== "write") return dead.map(({ worker }) => ({ worker }));
      // Lock runs first (remote.L1), then read the worker again: it may have renewed its lease.
      ws.require(() => {
        for (const { worker } of dead) prefetchHeld(worker);
        ws.prefetchRows(
          "workers",
          "update",
          dead.map(({ worker }) => [worker]),
        );
        prefetchRunsOfLeftovers(ws, mode, lock("runs"));
      });
      return dead.map(({ worker }) => ({ worker }));
    }),
    turnHolders: rows(() => {
      // One query for all: a worker without a row is dead, and its work is taken over.
      const all = Object.values(HOLDERS).flatMap(holding);
      ws.require(() =>
        ws.prefetchRows(
          "workers",
          lock("workers"),
          all.map(({ value }) => [value]),
        ),
      );
      ws.require(() => {
        if (mode === "write") for (const { value } of all.filter(isUnknown)) prefetchHeld(value);
      });
      return holding(HOLDERS.turns).filter((holder) => isStill(holder, turnsOf));
    }),
    itemHolders: rows(() =>
      holding(HOLDERS.items).filter((holder) => isStill(holder, (worker) => leasedItems(lock("queue"), worker))),
    ),
    outgoingHolders: rows(() => holding(HOLDERS.outgoing).filter((holder) => isStill(holder, outgoingOf))),

    returnWorkerTurns: change((worker: number) => {
      ws.require(() => prefetchHeld(worker));
      const turns = ws.select(turnsOf(worker));
      for (const row of turns) ws.update("runs", row, returned(row));
      return turns.length;
    }),
    takeOverTurns: change((most: number, evidence: string, worker: number) => {
      ws.require(() => prefetchHeld(worker));
      const turns = ws.select(turnsOf(worker));
      for (const row of turns) {
        const takeovers = row.takeovers + 1;
        ws.update("runs", row, { ...UNHELD, takeovers, ...takenOver(row.status, takeovers, most, evidence) });
      }
      return turns.length;
    }),
    returnWorkerItems: change((worker: number) => {
      const items = ws.select(leasedItems(lock("queue"), worker));
      for (const row of items) {
        const state = row.takeovers >= SUSPECT_AFTER ? QueueItemState.suspect : QueueItemState.ready;
        ws.update("queue", row, { state, token: null, worker: null });
      }
      return items.length;
    }),
    poisonItems: rows((worker: number, most: number) => {
      const poison = ws.select(leasedItems(lock("queue"), worker)).filter(({ takeovers }) => takeovers + 1 >= most);
      ws.require(() =>
        ws.prefetchRows(
          "runs",
          lock("runs"),
          poison.map(({ run }) => [run]),
        ),
      );
      return poison.map(({ run, item }) => ({ run, item }));
    }),
    takeOverItems: change((most: number, worker: number) => {
      const items = ws.select(leasedItems(lock("queue"), worker));
      for (const row of items) {
        const takeovers = row.takeovers + 1;
        const isSuspect = takeovers >= SUSPECT_AFTER;
        const open = isSuspect ? QueueItemState.suspect : QueueItemState.ready;
        const state = takeovers >= most ? QueueItemState.stopped : open;
        ws.update("queue", row, { state, token: null, worker: null, takeovers });
      }
      return items.length;
    }),
  };
}

/** The columns of a turn whose worker is dead. */
function takenOver(status: string, takeovers: number, most: number, evidence: string): Partial<RowOf<"runs">> {
  if (status === "paused") return { turn_due: TurnDue.no };
  if (takeovers >= most) return { ...NO_TURN, status: "blocked", evidence };
  return { status: "queued", turn_due: dueOrSuspect(takeovers >= SUSPECT_AFTER) };
}

function holders<T extends TableName>(table: T, column: string): Distinct<T> {
  const where = table === "runs" ? [some(column)] : [fixed("state", LEASED)];
  return { kind: "distinct", table, columns: [column], where };
}
