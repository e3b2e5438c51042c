// @ts-nocheck
// Statements for the row of a run: its turn, its head and its status.

import { hasEnded, SUSPECT_AFTER, type RunStatus, TurnDue, isStartPending } from "../../../kernel/index.ts";
import type { RunRow } from "../../rules/run-rows.ts";
import type { RowOf } from "../../rows/tables.ts";
import { liveChildren } from "./selections.ts";
import { change, one, rows, type StatementContext } from "./context.ts";

type RunsRow = RowOf<"runs">;
type Values = Partial<RunsRow>;

const MOVABLE: ReadonlySet<string> = new Set(["queued", "running", "waiting"]);

/** No worker holds the turn. */
export const UNHELD: Values = { turn_token: null, turn_worker: null };
/** No worker holds the turn, and it is not due. */
export const NO_TURN: Values = { turn_due: TurnDue.no, ...UNHELD };

/** A paused run stays paused, and its turn is not due, however the turn is returned. */
export function returned({ status, takeovers }: RunsRow): Values {
  if (status === "paused") return NO_TURN;
  return { ...UNHELD, status: "queued", turn_due: TurnDue.yes + Number(takeovers >= SUSPECT_AFTER) };
}

export function asRunRow(row: RunsRow): RunRow {
  const { run, id, generation, definition, kind, version, status, parent, priority, head, chain } = row;
  const { arrivals, read, unread, runtime, evidence } = row;
  return {
    run,
    id,
    generation,
    definition,
    kind: kind as RunRow["kind"],
    version,
    status: status as RunRow["status"],
    parent,
    parentCommand: row.parent_command,
    priority,
    head,
    chain,
    arrivals,
    read,
    unread,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    runtime,
    evidence,
  };
}

/** The columns that a turn's commit sets. `plain` applies when the run has no unread message; `unread` returns the arrivals. */
type Move = (row: RunsRow, read: number, then: RunStatus, at: number, unread: number) => Values;

export function runStatements({ ws, lock }: StatementContext) {
  const find = (run: number): RunsRow | undefined => ws.get("runs", lock("runs"), run);

  const set = (run: number, values: (row: RunsRow) => Values | undefined): number => {
    const row = find(run);
    const changed = row && values(row);
    if (row === undefined || changed === undefined) return 0;
    ws.update("runs", row, changed);
    return 1;
  };

  /** The fence of a turn: token, head and chain, as in the SQL of SQLite. */
  const fenced = ([, , , run, token, head, chain]: Moving): RunsRow | undefined => {
    const row = find(run);
    return row?.turn_token === token && row.head === head && row.chain === chain ? row : undefined;
  };

  type Moving = [number, string, number, number, string, number, string, RunStatus, number, number];
  const moves = (move: Move) => {
    const apply = (row: RunsRow, [head, chain, read, , , , , then, at, unread]: Moving): void =>
      ws.update("runs", row, { ...move(row, read, then, at, unread), head, chain, read });
    return {
      plain: change((...values: Moving) => {
        const row = fenced(values);
        if (row?.arrivals !== values[2]) return 0;
        apply(row, values);
        return 1;
      }),
      unread: one((...values: Moving) => {
        const row = fenced(values);
        if (row === undefined) return undefined;
        const { arrivals } = row;
        apply(row, values);
        return { arrivals };
      }),
    };
  };

  const stay = moves(() => ({}));
  const hold = moves(() => ({ takeovers: 0 }));
  const release = moves(({ status, arrivals }, read) => ({
    ...UNHELD,
    takeovers: 0,
    status: status === "paused" ? "paused" : "waiting",
    turn_due: status !== "paused" && arrivals > read ? TurnDue.yes : TurnDue.no,
  }));
  const end = moves(({ arrivals }, read, then, at, unread) => ({
    ...NO_TURN,
    takeovers: 0,
    status: then,
    ended_at: at,
    unread: arrivals - read + unread,
  }));

  return {
    run: one((run: number) => {
      const row = find(run);
      return row && asRunRow(row);
    }),
    runSummary: one((run: number) => {
      const row = find(run);
      return row && { id: row.id, generation: row.generation, status: row.status };
    }),
    rootOf: one((run: number) => {
      const row = find(run);
      return row && { root: row.root };
    }),
    statusOf: one((run: number) => {
      const row = find(run);
      return row && { status: row.status };
    }),
    turnFence: one((run: number) => {
      const row = find(run);
      return row && { token: row.turn_token, head: row.head, chain: row.chain };
    }),
    turnState: one((run: number) => {
      const row = find(run);
      return row && { run, status: row.status, arrivals: row.arrivals, token: row.turn_token };
    }),

    holdEmptyTurn: stay.plain,
    holdEmptyTurnWithUnread: stay.unread,
    holdTurn: hold.plain,
    holdTurnWithUnread: hold.unread,
    releaseTurn: release.plain,
    releaseTurnWithUnread: release.unread,
    endRun: end.plain,
    endRunWithUnread: end.unread,

    stopRun: change((status: string, evidence: string, run: number, token: string) =>
      set(run, (row) => (row.turn_token === token ? { ...NO_TURN, status, evidence } : undefined)),
    ),
    returnTurn: change((run: number, token: string) =>
      set(run, (row) => (row.turn_token === token ? returned(row) : undefined)),
    ),
    blockRun: change((evidence: string, run: number) =>
      set(run, ({ status }) => (MOVABLE.has(status) ? { ...NO_TURN, status: "blocked", evidence } : undefined)),
    ),
    resumeRun: change((run: number) =>
      set(run, ({ turn_token: token }) => {
        const start = ws.get("queue", lock("queue"), run, "Start");
        const isNotStarted = start !== undefined && isStartPending(start.state);
        return {
          status: token === null ? "queued" : "running",
          takeovers: 0,
          evidence: null,
          turn_due: isNotStarted ? TurnDue.notStarted : token === null ? TurnDue.yes : TurnDue.no,
        };
      }),
    ),
    pauseRun: change((run: number) =>
      set(run, ({ status }) => (MOVABLE.has(status) ? { status: "paused", turn_due: TurnDue.no } : undefined)),
    ),
    pauseSelf: change((evidence: string, run: number, own: string) =>
      set(run, ({ status, turn_token: token }) =>
        (token ?? own) === own && MOVABLE.has(status)
          ? { status: "paused", turn_due: TurnDue.no, evidence }
          : undefined,
      ),
    ),
    terminateRun: change((head: number, chain: string, at: number, run: number) =>
      set(run, ({ arrivals, read }) => ({
        ...NO_TURN,
        head,
        chain,
        status: "cancelled",
        ended_at: at,
        unread: arrivals - read,
        evidence: null,
      })),
    ),
    retryRun: change((head: number, chain: string, run: number) =>
      set(run, ({ arrivals }) => ({
        head,
        chain,
        status: "queued",
        ended_at: null,
        unread: 0,
        read: arrivals,
        turn_due: TurnDue.yes,
        takeovers: 0,
        evidence: null,
      })),
    ),
    setForkHead: change((chain: string, run: number) => set(run, () => ({ head: 2, chain }))),
    clearUnread: change((run: number) => set(run, () => ({ unread: 0 }))),
    rewriteRun: change((version: number, priority: number, chain: string, runtime: string, run: number) =>
      set(run, () => ({ version, priority, chain, runtime })),
    ),
    makeStartDue: change((run: number) =>
      set(run, (row) => (row.turn_due === TurnDue.notStarted ? { turn_due: TurnDue.yes } : undefined)),
    ),
    countArrival: change((run: number) =>
      set(run, ({ status, arrivals, turn_due: due }) => {
        if (hasEnded(status as RunStatus)) return undefined;
        return { arrivals: arrivals + 1, turn_due: MOVABLE.has(status) ? Math.max(due, TurnDue.yes) : TurnDue.no };
      }),
    ),
    claimTurn: change((token: string, worker: number, run: number) => {
      const row = ws.get("runs", "skip", run);
      if (row === undefined) return 0;
      ws.update("runs", row, { status: "running", turn_due: TurnDue.no, turn_token: token, turn_worker: worker });
      return 1;
    }),

    // runs of flows
    flowRun: one((run: number) => {
      const row = find(run);
      if (row === undefined || row.ended_at !== null) return undefined;
      return [row.status, row.head, row.chain, row.arrivals, row.read, row.turn_token];
    }),
    setFlowHead: change((head: number, chain: string, run: number) => set(run, () => ({ head, chain }))),
    setFlowHeadAndStatus: change((head: number, chain: string, status: string, run: number) =>
      set(run, () => ({ head, chain, status })),
    ),
    releaseFlow: change((head: number, chain: string, read: number, then: string, run: number) =>
      set(run, ({ status, arrivals }) => ({
        ...UNHELD,
        head,
        chain,
        read,
        takeovers: 0,
        status: status === "paused" ? "paused" : then,
        turn_due: status !== "paused" && arrivals > read ? TurnDue.yes : TurnDue.no,
      })),
    ),
    endFlow: change((head: number, chain: string, read: number, then: string, at: number, run: number) =>
      set(run, ({ arrivals }) => ({
        ...NO_TURN,
        head,
        chain,
        read,
        takeovers: 0,
        status: then,
        ended_at: at,
        unread: arrivals - read,
        evidence: null,
      })),
    ),
    stopFlow: change((status: string, evidence: string, run: number) =>
      set(run, () => ({ ...NO_TURN, status, evidence })),
    ),

    liveChildren: rows((root: number, parent: number) => {
      const children = ws.select(liveChildren(lock("runs"), root, parent));
      // They are cancelled: one that has not started leaves its queue.
      ws.require(() =>
        ws.prefetchRows(
          "queue",
          lock("queue"),
          children.map(({ run }) => [run, "Start"]),
        ),
      );
      return children.map(({ run }) => ({ run }));
    }),
  };
}
