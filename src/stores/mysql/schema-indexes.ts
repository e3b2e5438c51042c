// Schema indexes: the indexes that the migrations create, by table.

import { STEPS, type Columns, type Step } from "./schema.ts";

export interface Index {
  readonly name: string;
  /** Ends with the columns of the primary key. */
  readonly columns: Columns;
}

/** By table, without prefix; the primary key first. */
export const INDEXES: ReadonlyMap<string, readonly Index[]> = indexesOf(STEPS.flat());

function indexesOf(steps: readonly Step[]): ReadonlyMap<string, readonly Index[]> {
  const found = new Map<string, Index[]>();
  for (const step of steps) {
    if ("name" in step) {
      const { name: table, primary, unique, indexes } = step;
      const others = Object.entries({ ...unique, ...indexes });
      found.set(table, [
        { name: "PRIMARY", columns: primary },
        ...others.map(([name, columns]) => ({ name, columns: withKey(columns, primary) })),
      ]);
    } else if ("index" in step) {
      const indexes = found.get(step.table)!;
      indexes.push({ name: step.index, columns: withKey(step.columns, indexes[0]!.columns) });
    }
  }
  return found;
}

function withKey(columns: Columns, key: Columns): Columns {
  return [...columns, ...key.filter((column) => !columns.includes(column))];
}
