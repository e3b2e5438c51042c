// Find run: a run by its id.

import type { RunRecord } from "../../kernel/index.ts";
import { taggedRecord } from "../rules/run-rows.ts";
import { equal, lookup } from "./reads.ts";
import type { Reader } from "./reader.ts";
import { asRunRow } from "./statements/runs.ts";

/** The newest generation, or the given one. */
export async function findRun(reader: Reader, id: string, generation?: number): Promise<RunRecord | undefined> {
  const what = "Finding a run";
  const where = [equal("id", id), ...(generation === undefined ? [] : [equal("generation", generation)])];
  const newest = { order: [["generation", "desc"]], limit: 1, lock: "none" } as const;
  const [row] = await reader.rows(what, { kind: "select", table: "runs", where, ...newest });
  if (row === undefined) return undefined;
  const tags = await reader.rows(what, lookup("tags", ["run"], [[row.run]]));
  const ordered = tags.toSorted((a, b) => a.position - b.position);
  return taggedRecord(
    asRunRow(row),
    ordered.map(({ tag }) => tag),
  );
}
