// Copy run: reads a run with everything that a mirror holds of it (copied-run.ts).
//
// Each page is read by itself, so that a large run needs little memory and holds no transaction open. A live run may move in between:
// its journal is read up to the head that its row had first, and its other rows may be a moment newer.

import type { Entry, RunNumber } from "../../kernel/index.ts";
import { COPIED_TABLES, type CopiedPage, type CopiedRun, type CopiedTable, type RunName } from "./copied-run.ts";
import type { Key, Rows } from "../rows/rows.ts";
import { columnsOf, keyColumns, type ColumnName, type RowOf } from "../rows/tables.ts";
import { readJournal } from "./read.ts";
import { recordOf, RUN_COLUMNS } from "./run-rows.ts";

/** Reads rows of a store, as `RowReads` does. */
export type ReadRows = <T>(what: string, body: (rows: Rows) => T) => Promise<T>;

/** Rows per page; of entries at most, because their payloads may be large. */
const PAGE = 1_000;
const FIRST_PAGE = 16;
const PAGE_LENGTH = 2_000_000;
const WHAT = "Copying a run";
const COLUMNS = [...RUN_COLUMNS, "turn_due", "takeovers", "turn_at"] as const;
const NAME = ["id", "generation"] as const;

export async function copyRun(read: ReadRows, { id, generation }: RunName): Promise<CopiedRun | undefined> {
  const found = await read(WHAT, (rows) => {
    const row = rows.first("runs_by_id", [id, generation], COLUMNS);
    if (row === undefined) return undefined;
    const parent = row.parent === null ? undefined : rows.get("runs", [row.parent], NAME);
    return { row, parent, record: recordOf(rows, row) };
  });
  if (found === undefined) return undefined;
  const { row, parent, record } = found;
  const { run: number, parent: _, ...named } = record;
  const { turn_due, takeovers, turn_at } = row;
  return {
    id,
    generation,
    record: named,
    parent,
    number,
    turn: { turn_due, takeovers, turn_at },
    entries: () => entryPages(read, number, record.head),
    rows: () => rowPages(read, number),
  };
}

async function* entryPages(read: ReadRows, run: RunNumber, head: number): AsyncGenerator<readonly Entry[]> {
  let limit = FIRST_PAGE;
  for (let after = 0; after < head;) {
    const page = await read(WHAT, (rows) => readJournal(rows, run, after, Math.min(limit, head - after)));
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.seq;
    limit = nextLimit(page);
    yield page;
  }
}

/** copied-run.C2. As many entries of the same length as fit into a page. */
function nextLimit(page: readonly Entry[]): number {
  const length = page.reduce((sum, { data }) => sum + data.length, 1);
  return Math.min(PAGE, Math.max(1, Math.floor((PAGE_LENGTH * page.length) / length)));
}

async function* rowPages(read: ReadRows, run: RunNumber): AsyncGenerator<CopiedPage> {
  for (const table of COPIED_TABLES) yield* tablePages(read, table, run);
}

/** By the last column of the key, below each combination of values of the columns between the run and it. */
async function* tablePages(read: ReadRows, table: CopiedTable, run: RunNumber): AsyncGenerator<CopiedPage> {
  const between = keyColumns(table).slice(1, -1) as readonly ColumnName<CopiedTable>[];
  const prefixes: readonly Key[] =
    between.length === 0
      ? [[run]]
      : (await read(WHAT, (rows) => rows.distinct(table, [run], between))).map((values) => [
          run,
          ...between.map((column) => values[column] as number | string),
        ]);
  // Many prefixes have one row each.
  for (let from = 0; from < prefixes.length; from += PAGE) {
    const some = prefixes.slice(from, from + PAGE);
    const firsts = await read(WHAT, (rows) => some.map((prefix) => selectRows(rows, table, prefix, undefined)));
    for (const [index, first] of firsts.entries())
      for (let page = first; page.length > 0;) {
        yield { table, rows: page } as CopiedPage;
        const after = page.length < PAGE ? undefined : lastKey(table, page);
        page = after === undefined ? [] : await read(WHAT, (rows) => selectRows(rows, table, some[index]!, after));
      }
  }
}

type AnyCopiedRow = RowOf<CopiedTable>;

function selectRows(
  rows: Rows,
  table: CopiedTable,
  prefix: Key,
  after: number | string | undefined,
): readonly AnyCopiedRow[] {
  const columns = columnsOf(table) as readonly ColumnName<CopiedTable>[];
  return rows.select(table, prefix, columns, { after, limit: PAGE }) as readonly AnyCopiedRow[];
}

function lastKey(table: CopiedTable, page: readonly AnyCopiedRow[]): number | string {
  const column = keyColumns(table).at(-1) as keyof AnyCopiedRow;
  return page.at(-1)![column];
}
