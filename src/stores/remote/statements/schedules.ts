// @ts-nocheck
// Statements for schedules. A schedule is read with the status of its last run, in its newest generation.

import { equal, fixed, newestOfId, some } from "./selections.ts";
import type { Condition, Select } from "../query.ts";
import type { RowOf } from "../../rows/tables.ts";
import { change, effect, one, rows, type StatementContext } from "./context.ts";

type Row = RowOf<"schedules">;

const DUE: Condition = some("due_at");
const IN_LINE: readonly Condition[] = [{ column: "line", is: "<>", value: "[]", fixed: true }, fixed("paused", 0)];

export function scheduleStatements({ ws, lock }: StatementContext) {
  /** Loads the status of all last runs together. */
  const shown = (some: readonly Row[]): readonly object[] => {
    const ids = some.flatMap(({ last_run: id }) => (id === null || isMadeHere(id) ? [] : [id]));
    ws.require(() => {
      for (const id of ids) ws.prefetch(newestOfId("none", id));
    });
    return some.map((row) => asScheduleRow(row, statusOf(row.last_run)));
  };

  const isMadeHere = (id: string): boolean =>
    ws.isLoadedBy("runs", ["id", "generation"], [id, 0], "none") &&
    ws.loadedBy("runs", ["id"], [id]).every(({ run }) => ws.original("runs", run) === undefined);

  const statusOf = (id: string | null): string | null => {
    if (id === null) return null;
    if (!isMadeHere(id)) return ws.select(newestOfId("none", id))[0]?.status ?? null;
    return ws.loadedBy("runs", ["id"], [id]).sort((a, b) => b.generation - a.generation)[0]?.status ?? null;
  };

  const find = (name: string): Row | undefined => ws.get("schedules", lock("schedules"), name);
  const select = (where: readonly Condition[], order: Select["order"] = [], limit?: number): Row[] =>
    ws.select({
      kind: "select",
      table: "schedules",
      where,
      order,
      ...(limit === undefined ? {} : { limit }),
      lock: lock("schedules"),
    });
  const definitionsWhere = (where: readonly Condition[]): readonly object[] =>
    ws
      .counts({ kind: "distinct", table: "schedules", columns: ["definition"], where })
      .map(({ definition }) => ({ value: definition }));

  type Columns = [
    string,
    string,
    string,
    number,
    string | null,
    string | null,
    string | null,
    number | null,
    number | null,
    string,
    string,
    number,
    number,
    number | null,
    number | null,
    number | null,
    string | null,
    string,
  ];

  return {
    schedule: one((name: string) => {
      const row = find(name);
      return row && shown([row])[0];
    }),
    schedulesAfter: rows((after: string, limit: number) =>
      shown(select([{ column: "name", is: ">", value: after }], [["name", "asc"]], limit < 0 ? undefined : limit)),
    ),
    scheduleToken: one((name: string) => {
      const row = find(name);
      return row && { token: row.token };
    }),
    insertSchedule: effect((...values: [...Columns, number]) => {
      const createdAt = values.at(-1) as number;
      ws.insert("schedules", { ...rowOf(values.slice(0, -1)), created_at: createdAt } as Row);
    }),
    updateSchedule: change((...values: Columns) => {
      const row = find(values[0]);
      if (row === undefined) return 0;
      const { name: _, ...rest } = rowOf(values);
      ws.update("schedules", row, rest);
      return 1;
    }),
    deleteSchedule: change((name: string) => {
      const row = find(name);
      if (row === undefined) return 0;
      ws.remove("schedules", row);
      return 1;
    }),
    scheduledDefinitions: rows(() => definitionsWhere([DUE])),
    nextSchedule: one((definition: string) => {
      const [row] = select([DUE, equal("definition", definition)], [["due_at", "asc"]], 1);
      return { at: row?.due_at ?? null };
    }),
    dueSchedules: rows((definition: string, now: number, limit: number) =>
      shown(
        select(
          [DUE, equal("definition", definition), { column: "due_at", is: "<=", value: now }],
          [["due_at", "asc"]],
          limit,
        ),
      ),
    ),
    definitionsWithBacklog: rows(() => definitionsWhere(IN_LINE)),
    schedulesWithBacklog: rows((definition: string) => shown(select([...IN_LINE, equal("definition", definition)]))),
  };
}

/** The order of the parameters of both statements. */
const NAMES = [
  "name",
  "token",
  "definition",
  "version",
  "input",
  "cron",
  "time_zone",
  "every",
  "anchor",
  "overlap",
  "catch_up",
  "jitter",
  "paused",
  "next_at",
  "due_at",
  "last_at",
  "last_run",
  "line",
] as const;

function rowOf(values: readonly unknown[]): Partial<Row> {
  return Object.fromEntries(NAMES.map((name, index) => [name, values[index]]));
}

/** As `ScheduleRow` of rules/schedules.ts names its columns. */
function asScheduleRow(row: Row, lastStatus: string | null): object {
  const { name, token, definition, version, input, cron, every, anchor, overlap, jitter, paused, line } = row;
  return {
    name,
    token,
    definition,
    version,
    input,
    cron,
    timeZone: row.time_zone,
    every,
    anchor,
    overlap,
    catchUp: row.catch_up,
    jitter,
    paused,
    nextAt: row.next_at,
    dueAt: row.due_at,
    lastAt: row.last_at,
    lastRun: row.last_run,
    line,
    createdAt: row.created_at,
    lastStatus,
  };
}
