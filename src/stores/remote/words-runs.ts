// Words about a run's row: its turn, its head, and what a person does to it.

import { hasEnded, SUSPECT_AFTER, type Status } from "../../kernel/index.ts";
import type { RunRow } from "../rules/rows.ts";
import type { RowOf } from "./tables.ts";
import { liveChildren } from "./selections.ts";
import { change, one, rows, type Speech } from "./word.ts";

type RunsRow = RowOf<"runs">;
type Values = Partial<RunsRow>;

const MOVABLE: ReadonlySet<string> = new Set(["queued", "running", "waiting"]);

/** Nobody holds its turn. */
export const UNHELD: Values = { turn_token: null, turn_worker: null };
/** It is not due either. */
export const NO_TURN: Values = { turn_due: 0, ...UNHELD };

/** C1. A paused run stays paused, and its turn is not due, however the turn comes back. */
export function returned({ status, takeovers }: RunsRow): Values {
  if (status === "paused") return NO_TURN;
  return { ...UNHELD, status: "queued", turn_due: 1 + Number(takeovers >= SUSPECT_AFTER) };
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

/** A turn's commit; `plain` says by its changes that there was nothing unread, the other one how much there was. */
type Move = (row: RunsRow, read: number, then: Status, at: number, unread: number) => Values;

export function runWords({ ws, lock }: Speech) {
  const find = (run: number): RunsRow | undefined => ws.get("runs", lock("runs"), run);

  const set = (run: number, values: (row: RunsRow) => Values | undefined): number => {
    const row = find(run);
    const changed = row && values(row);
    if (row === undefined || changed === undefined) return 0;
    ws.update("runs", row, changed);
    return 1;
  };

  /** K1 and K4, as the SQL's `FENCE` has them. */
  const fenced = ([, , , run, token, head, chain]: Moving): RunsRow | undefined => {
    const row = find(run);
    return row?.turn_token === token && row.head === head && row.chain === chain ? row : undefined;
  };

  type Moving = [number, string, number, number, string, number, string, Status, number, number];
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
    turn_due: Number(status !== "paused" && arrivals > read),
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
    runOfItem: one((run: number) => {
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
    turnOf: one((run: number) => {
      const row = find(run);
      return row && { token: row.turn_token, head: row.head, chain: row.chain };
    }),
    pulse: one((run: number) => {
      const row = find(run);
      return row && { run, status: row.status, arrivals: row.arrivals, token: row.turn_token };
    }),

    stay: stay.plain,
    stayUnread: stay.unread,
    hold: hold.plain,
    holdUnread: hold.unread,
    release: release.plain,
    releaseUnread: release.unread,
    end: end.plain,
    endUnread: end.unread,

    stop: change((status: string, evidence: string, run: number, token: string) =>
      set(run, (row) => (row.turn_token === token ? { ...NO_TURN, status, evidence } : undefined)),
    ),
    returnTurn: change((run: number, token: string) =>
      set(run, (row) => (row.turn_token === token ? returned(row) : undefined)),
    ),
    block: change((evidence: string, run: number) =>
      set(run, ({ status }) => (MOVABLE.has(status) ? { ...NO_TURN, status: "blocked", evidence } : undefined)),
    ),
    resume: change((run: number) =>
      set(run, ({ turn_token: token }) => {
        const start = ws.get("queue", lock("queue"), run, "Start");
        const isUnbegun = start !== undefined && [0, 1, 5].includes(start.state);
        return {
          status: token === null ? "queued" : "running",
          takeovers: 0,
          evidence: null,
          turn_due: isUnbegun ? 3 : Number(token === null),
        };
      }),
    ),
    pause: change((run: number) =>
      set(run, ({ status }) => (MOVABLE.has(status) ? { status: "paused", turn_due: 0 } : undefined)),
    ),
    pauseOwn: change((evidence: string, run: number, own: string) =>
      set(run, ({ status, turn_token: token }) =>
        (token ?? own) === own && MOVABLE.has(status) ? { status: "paused", turn_due: 0, evidence } : undefined,
      ),
    ),
    terminate: change((head: number, chain: string, at: number, run: number) =>
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
    retry: change((head: number, chain: string, run: number) =>
      set(run, ({ arrivals }) => ({
        head,
        chain,
        status: "queued",
        ended_at: null,
        unread: 0,
        read: arrivals,
        turn_due: 1,
        takeovers: 0,
        evidence: null,
      })),
    ),
    forkHead: change((chain: string, run: number) => set(run, () => ({ head: 2, chain }))),
    nothingUnread: change((run: number) => set(run, () => ({ unread: 0 }))),
    rewriteRun: change((version: number, priority: number, chain: string, runtime: string, run: number) =>
      set(run, () => ({ version, priority, chain, runtime })),
    ),
    beginRun: change((run: number) => set(run, (row) => (row.turn_due === 3 ? { turn_due: 1 } : undefined))),
    arrive: change((run: number) =>
      set(run, ({ status, arrivals, turn_due: due }) => {
        if (hasEnded(status as Status)) return undefined;
        return { arrivals: arrivals + 1, turn_due: MOVABLE.has(status) ? Math.max(due, 1) : 0 };
      }),
    ),
    claimTurn: change((token: string, worker: number, run: number) => {
      const row = ws.get("runs", "skip", run);
      if (row === undefined) return 0;
      ws.update("runs", row, { status: "running", turn_due: 0, turn_token: token, turn_worker: worker });
      return 1;
    }),

    // the run's row of a flow
    flowRun: one((run: number) => {
      const row = find(run);
      if (row === undefined || row.ended_at !== null) return undefined;
      return [row.status, row.head, row.chain, row.arrivals, row.read, row.turn_token];
    }),
    moveFlow: change((head: number, chain: string, run: number) => set(run, () => ({ head, chain }))),
    moveFlowTo: change((head: number, chain: string, status: string, run: number) =>
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
        turn_due: Number(status !== "paused" && arrivals > read),
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
      // They are told to stop: one that has not begun leaves its line.
      ws.need(() =>
        ws.wantRows(
          "queue",
          lock("queue"),
          children.map(({ run }) => [run, "Start"]),
        ),
      );
      return children.map(({ run }) => ({ run }));
    }),
  };
}
