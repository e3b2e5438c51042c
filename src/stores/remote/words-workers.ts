// Words about workers: their leases, and what they leave when they are gone.

import { DEDUP_MS, SUSPECT_AFTER } from "../../kernel/index.ts";
import type { Distinct, Select } from "./query.ts";
import { equal, fixed, leasedItems, some } from "./selections.ts";
import type { RowOf, TableName } from "./tables.ts";
import { change, just, one, rows, type Speech } from "./word.ts";
import { NO_TURN, returned, UNHELD } from "./words-runs.ts";
import { LEFTOVERS, oldIds, wantRunsOfLeftovers } from "./words-sweep.ts";

const HOLDERS = {
  turns: holders("runs", "turn_worker"),
  items: holders("queue", "worker"),
  outgoing: holders("outbox", "worker"),
};

interface Holder {
  readonly value: number;
}

export function workerWords(speech: Speech) {
  const { ws, mode, lock } = speech;
  const turnsOf = (worker: number): Select<"runs"> => ({
    ask: "select",
    table: "runs",
    where: [some("turn_worker"), equal("turn_worker", worker)],
    order: [["run", "asc"]],
    lock: lock("runs"),
  });
  const outgoingOf = (worker: number): Select<"outbox"> => ({
    ask: "select",
    table: "outbox",
    where: [fixed("state", 2), equal("worker", worker)],
    lock: lock("outbox"),
  });
  const expired = (now: number, self: number): Select<"workers"> => ({
    ask: "select",
    table: "workers",
    where: [
      { column: "until", is: "<=", value: now },
      { column: "worker", is: "<>", value: self },
    ],
    order: [["worker", "asc"]],
    lock: "none",
  });
  const holding = (question: Distinct): readonly Holder[] =>
    ws.counts(question).map((row) => ({ value: row[question.columns[0]!] as number }));
  const isUnknown = ({ value }: Holder): boolean => ws.get("workers", lock("workers"), value) === undefined;
  /** What was said of a worker without a row is from before the locks: somebody else may have taken over since. */
  const isStill = (holder: Holder, held: (worker: number) => Select): boolean =>
    mode !== "write" || !isUnknown(holder) || ws.select(held(holder.value)).length > 0;
  /** Everything a worker holds, asked for together. */
  const wantHeld = (worker: number): void => {
    ws.want(turnsOf(worker));
    ws.want(leasedItems(lock("queue"), worker));
    ws.want(outgoingOf(worker));
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
        .select({ ask: "select", table: "workers", where: [some("worker")], order: [["worker", "asc"]], lock: "none" })
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
    deleteWorker: just((worker: number) => ws.drop("workers", [worker])),
    heldTurns: rows((worker: number) => {
      ws.need(() => wantHeld(worker));
      return ws.select(turnsOf(worker)).map(({ run, turn_token: token }) => ({ run, token }));
    }),
    heldItems: rows((worker: number) => {
      ws.need(() => wantHeld(worker));
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
      ws.need(() => {
        ws.want(expired(now, self));
        for (const question of Object.values(HOLDERS)) ws.want(question);
        ws.trySelect(LEFTOVERS(mode), 100);
        ws.want(oldIds(mode, now - DEDUP_MS, 1));
      });
      const dead = ws.select(expired(now, self));
      if (mode !== "write") return dead.map(({ worker }) => ({ worker }));
      // Runs before anything else (L1). Looked at again once it is locked: it may have renewed its lease.
      ws.need(() => {
        for (const { worker } of dead) wantHeld(worker);
        ws.wantRows(
          "workers",
          "update",
          dead.map(({ worker }) => [worker]),
        );
        wantRunsOfLeftovers(ws, mode, lock("runs"));
      });
      return dead.map(({ worker }) => ({ worker }));
    }),
    turnHolders: rows(() => {
      // Asked for together: who is not known is dead, and what it holds is taken over.
      const all = Object.values(HOLDERS).flatMap(holding);
      ws.need(() =>
        ws.wantRows(
          "workers",
          lock("workers"),
          all.map(({ value }) => [value]),
        ),
      );
      ws.need(() => {
        if (mode === "write") for (const { value } of all.filter(isUnknown)) wantHeld(value);
      });
      return holding(HOLDERS.turns).filter((holder) => isStill(holder, turnsOf));
    }),
    itemHolders: rows(() =>
      holding(HOLDERS.items).filter((holder) => isStill(holder, (worker) => leasedItems(lock("queue"), worker))),
    ),
    outgoingHolders: rows(() => holding(HOLDERS.outgoing).filter((holder) => isStill(holder, outgoingOf))),

    freeTurns: change((worker: number) => {
      ws.need(() => wantHeld(worker));
      const turns = ws.select(turnsOf(worker));
      for (const row of turns) ws.update("runs", row, returned(row));
      return turns.length;
    }),
    takeOverTurns: change((most: number, evidence: string, worker: number) => {
      ws.need(() => wantHeld(worker));
      const turns = ws.select(turnsOf(worker));
      for (const row of turns) {
        const takeovers = row.takeovers + 1;
        ws.update("runs", row, { ...UNHELD, takeovers, ...takenOver(row.status, takeovers, most, evidence) });
      }
      return turns.length;
    }),
    freeItems: change((worker: number) => {
      const items = ws.select(leasedItems(lock("queue"), worker));
      for (const row of items) {
        const state = row.takeovers >= SUSPECT_AFTER ? 4 : 1;
        ws.update("queue", row, { state, token: null, worker: null });
      }
      return items.length;
    }),
    poisonItems: rows((worker: number, most: number) => {
      const poison = ws.select(leasedItems(lock("queue"), worker)).filter(({ takeovers }) => takeovers + 1 >= most);
      ws.need(() =>
        ws.wantRows(
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
        const state = takeovers >= most ? 3 : takeovers >= SUSPECT_AFTER ? 4 : 1;
        ws.update("queue", row, { state, token: null, worker: null, takeovers });
      }
      return items.length;
    }),
  };
}

/** S5. What becomes of a turn whose holder is gone. */
function takenOver(status: string, takeovers: number, most: number, evidence: string): Partial<RowOf<"runs">> {
  if (status === "paused") return { turn_due: 0 };
  if (takeovers >= most) return { ...NO_TURN, status: "blocked", evidence };
  return { status: "queued", turn_due: 1 + Number(takeovers >= SUSPECT_AFTER) };
}

function holders<T extends TableName>(table: T, column: string): Distinct<T> {
  const where = table === "runs" ? [some(column)] : [fixed("state", 2)];
  return { ask: "distinct", table, columns: [column], where };
}
