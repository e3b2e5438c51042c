// @ts-nocheck
// Statements that create runs: starts, next generations, start keys and tags.

import { DEADLINE_ITEM, QueueItemState, TurnDue } from "../../../kernel/index.ts";
import { idsOfRun, newestChild, newestOfId } from "./selections.ts";
import type { RowOf } from "../../rows/tables.ts";
import { asRunRow } from "./runs.ts";
import { change, effect, one, rows, type StatementContext } from "./context.ts";

type RunsRow = RowOf<"runs">;

/** The initial columns of every run. */
const BLANK = {
  generation: 0,
  parent: null,
  parent_command: null,
  priority: 0,
  arrivals: 0,
  read: 0,
  unread: 0,
  turn_token: null,
  turn_worker: null,
  takeovers: 0,
  ended_at: null,
  evidence: null,
} as const satisfies Partial<RunsRow>;

/** The values of a start, in the order of the statement's parameters. */
type StartValues = [
  version: number,
  status: string,
  parent: number | null,
  command: string | null,
  root: number,
  priority: number,
  chain: string,
  due: number,
  token: string | null,
  worker: number | null,
  now: number,
  runtime: string,
];

function newRunColumns(...birth: StartValues) {
  const [version, status, parent, command, root, priority, chain, due, token, worker, now, runtime] = birth;
  const turn = { turn_due: due, turn_token: token, turn_worker: worker };
  return {
    version,
    status,
    parent,
    parent_command: command,
    root,
    priority,
    head: 1,
    chain,
    ...turn,
    created_at: now,
    runtime,
  };
}

export function startStatements({ ws, lock }: StatementContext) {
  const insert = (row: RunsRow): void => {
    ws.markNewRun(row.run);
    ws.insert("runs", row);
  };

  const firstOf = (id: string): RunsRow | undefined =>
    ws.findBy("runs", ["id", "generation"], [id, 0], lock("runs"))[0];

  /**
   * A transaction that waited for the lock of the newest generation may get one that has continued meanwhile: the next one did
   * not exist when its query began.
   */
  const continued = (row: RunsRow | undefined): RunsRow | undefined => {
    if (row?.status !== "continued") return row;
    const [next] = ws.findBy("runs", ["id", "generation"], [row.id, row.generation + 1], lock("runs"));
    return next === undefined ? row : continued(next);
  };

  const newestOf = (id: string): RunsRow | undefined => {
    // A run without a first generation in the database exists only in this transaction.
    const isMadeHere =
      ws.isLoadedBy("runs", ["id", "generation"], [id, 0], lock("runs")) &&
      ws.loadedBy("runs", ["id"], [id]).every(({ run }) => ws.original("runs", run) === undefined);
    if (!isMadeHere) return continued(ws.select(newestOfId(lock("runs"), id))[0]);
    return ws.loadedBy("runs", ["id"], [id]).sort((a, b) => b.generation - a.generation)[0];
  };

  const tagsOf = (run: number): RowOf<"tags">[] =>
    ws.findBy("tags", ["run"], [run], "none").sort((a, b) => a.position - b.position);

  const insertTag = (run: number, tag: string): void => {
    const tags = tagsOf(run);
    if (tags.every((one) => one.tag !== tag))
      ws.insert("tags", { run, tag, position: (tags.at(-1)?.position ?? 0) + 1 });
  };

  /** Moves an item to another run. */
  const moveItem = (to: number, from: number, item: string, state: number | undefined): number => {
    const row = ws.get("queue", lock("queue"), from, item);
    if (row === undefined || (state !== undefined && row.state !== state)) return 0;
    ws.remove("queue", row);
    ws.insert("queue", { ...row, run: to });
    return 1;
  };

  return {
    insertRun: change((run: number, id: string, definition: string, kind: string, ...birth: StartValues) => {
      if (firstOf(id) !== undefined) return 0;
      insert({ ...BLANK, run, id, definition, kind, ...newRunColumns(...birth) });
      return 1;
    }),
    insertExpected: effect(
      (
        run: number,
        id: string,
        definition: string,
        kind: string,
        version: number,
        root: number,
        chain: string,
        now: number,
        runtime: string,
      ) => {
        const born = { root, head: 0, chain, turn_due: TurnDue.no, created_at: now, runtime };
        insert({ ...BLANK, run, id, definition, kind, version, status: "expected", ...born });
      },
    ),
    startExpected: change((run: number, kind: string, ...birth: StartValues) => {
      const row = ws.get("runs", lock("runs"), run);
      if (row?.status !== "expected") return 0;
      ws.update("runs", row, { kind, ...newRunColumns(...birth) });
      return 1;
    }),
    insertNextGeneration: effect(
      (
        run: number,
        version: number,
        status: string,
        chain: string,
        due: number,
        token: string | null,
        worker: number | null,
        now: number,
        runtime: string,
        old: number,
      ) => {
        const row = ws.get("runs", lock("runs"), old);
        if (row === undefined) return;
        const { id, definition, kind, parent, parent_command: command, root, priority, generation } = row;
        const born = newRunColumns(
          version,
          status,
          parent,
          command,
          root,
          priority,
          chain,
          due,
          token,
          worker,
          now,
          runtime,
        );
        insert({ ...BLANK, run, id, definition, kind, ...born, generation: generation + 1 });
      },
    ),
    moveDedupIds: change((to: number, from: number) => {
      const ids = ws.select(idsOfRun(from));
      for (const id of ids) {
        ws.remove("once", id);
        ws.insert("once", { ...id, run: to });
      }
      return ids.length;
    }),
    moveTimer: change((to: number, from: number, item: string) => moveItem(to, from, item, undefined)),
    moveAdmittedStart: change((to: number, from: number, item: string) => {
      // Both items of the old generation are moved: prefetch them together.
      ws.require(() =>
        ws.prefetchRows("queue", lock("queue"), [
          [from, item],
          [from, DEADLINE_ITEM],
        ]),
      );
      return moveItem(to, from, item, QueueItemState.admitted);
    }),

    newestRun: one((id: string) => {
      const row = newestOf(id);
      return row && asRunRow(row);
    }),
    newestStatus: one((id: string) => {
      const row = newestOf(id);
      return row && { run: row.run, status: row.status, definition: row.definition, kind: row.kind };
    }),
    runOfGeneration: one((id: string, generation: number) => {
      const [row] = ws.findBy("runs", ["id", "generation"], [id, generation], lock("runs"));
      return row && asRunRow(row);
    }),
    firstRunOfId: one((id: string) => {
      const row = firstOf(id);
      return row && { run: row.run };
    }),
    childById: one((id: string, parent: number) => {
      const row = continued(ws.select(newestChild(lock("runs"), id, parent))[0]);
      return row && { run: row.run };
    }),
    firstGeneration: one((run: number) => {
      const row = ws.get("runs", lock("runs"), run);
      if (row === undefined) return undefined;
      if (row.generation === 0) return { run };
      // A run's number never changes: no lock is needed.
      const [first] = ws.findBy("runs", ["id", "generation"], [row.id, 0], "none");
      return first && { run: first.run };
    }),

    insertTag: effect(insertTag),
    tagsOf: rows((run: number) => tagsOf(run).map(({ tag }) => ({ tag }))),
    copyTags: effect((to: number, from: number) => {
      for (const { tag } of tagsOf(from)) insertTag(to, tag);
    }),
    deleteTags: effect((run: number) => {
      for (const tag of tagsOf(run)) ws.remove("tags", tag);
    }),

    startKey: one((definition: string, kind: string, key: string) => {
      const row = ws.get("start_keys", lock("start_keys"), definition, kind, key);
      return row && { id: row.id };
    }),
    saveStartKey: effect((definition: string, kind: string, key: string, id: string) => {
      const row = ws.get("start_keys", lock("start_keys"), definition, kind, key);
      if (row === undefined) ws.insert("start_keys", { definition, kind, key, id });
      else ws.update("start_keys", row, { id });
    }),
  };
}
