// Mirror links: parents and roots of the runs of a mirror (mirror.M5).
//
// mirror-links.L1. A run whose parent is not in the mirror has no parent in its row. A row of `meta` names the parent; the transaction
//   that puts the parent in sets it.
// mirror-links.L2. `root` is that of the parent, else that of the first generation in the mirror, else the run itself: a family has
//   one root, whichever of its runs comes first.

import type { DatabaseSync } from "node:sqlite";
import type { RunNumber } from "../../kernel/index.ts";
import type { RunName } from "../rules/copied-run.ts";
import type { Part, Rows } from "../rows/rows.ts";
import type { Statements } from "./statements.ts";

const FAMILY = ["run", "root"] as const;
const GENERATION = ["run", "root", "generation"] as const;
type FamilyRow = Part<"runs", (typeof FAMILY)[number]>;

export function parentRow(rows: Rows, parent: RunName | undefined): FamilyRow | undefined {
  return parent && rows.first("runs_by_id", [parent.id, parent.generation], FAMILY);
}

function childrenPrefix({ id, generation }: RunName): string {
  return `child of ${JSON.stringify([id, generation])} `;
}

/** mirror-links.L1 */
export function rememberParent(sql: Statements, parent: RunName, child: RunNumber): void {
  sql.putMeta.run(childrenPrefix(parent) + child, String(child));
}

interface PutRun extends RunName {
  readonly run: RunNumber;
  readonly root: RunNumber;
}

/** mirror-links.L1, mirror-links.L2. After the row of a run was inserted. */
export function linkChildren(db: DatabaseSync, rows: Rows, run: PutRun): void {
  const prefix = childrenPrefix(run);
  const waiting = db
    .prepare("select key, value from meta where key > ? and key < ?")
    .all(prefix, `${prefix.slice(0, -1)}!`) as { key: string; value: string }[];
  for (const { key, value } of waiting) {
    const child = rows.get("runs", [Number(value)], FAMILY);
    if (child !== undefined) {
      rows.set("runs", [child.run], { parent: run.run });
      moveFamily(db, child.root, run.root);
    }
    db.prepare("delete from meta where key = ?").run(key);
  }
  const generations = rows.select("runs_by_id", [run.id], GENERATION);
  const [first] = generations;
  for (const { root } of generations) if (first !== undefined && root !== first.root) moveFamily(db, root, first.root);
}

function moveFamily(db: DatabaseSync, from: RunNumber, to: RunNumber): void {
  if (from === to) return;
  db.prepare("update runs indexed by runs_by_root set root = ?1 where root = ?2 and root <> run").run(to, from);
  db.prepare("update runs set root = ?1 where run = ?2 and root = ?2").run(to, from);
}
