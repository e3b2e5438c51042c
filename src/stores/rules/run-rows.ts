// Run rows: converts rows of `runs` to the kernel's records.

import type { RunRecord, RunStatus } from "../../kernel/index.ts";
import type { Statements } from "./statements.ts";

/** A row as the statements select it (`RUN_COLUMNS`). */
export interface RunRow {
  readonly run: number;
  readonly id: string;
  readonly generation: number;
  readonly definition: string;
  readonly kind: RunRecord["kind"];
  readonly version: number;
  readonly status: RunRecord["status"];
  readonly parent: number | null;
  readonly parentCommand: string | null;
  readonly priority: number;
  readonly head: number;
  readonly chain: string;
  readonly arrivals: number;
  readonly read: number;
  readonly unread: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly runtime: string;
  readonly evidence: string | null;
}

export function recordOf(sql: Statements, row: RunRow): RunRecord {
  const tags = sql.tagsOf.all(row.run) as unknown as { tag: string }[];
  return taggedRecord(
    row,
    tags.map(({ tag }) => tag),
  );
}

export function taggedRecord(row: RunRow, tags: readonly string[]): RunRecord {
  return {
    run: row.run,
    id: row.id,
    generation: row.generation,
    definition: row.definition,
    kind: row.kind,
    version: row.version,
    status: row.status,
    parent: row.parent ?? undefined,
    parentCommand: row.parentCommand ?? undefined,
    priority: row.priority,
    tags,
    head: row.head,
    chain: row.chain,
    arrivals: row.arrivals,
    read: row.read,
    unread: row.unread,
    createdAt: row.createdAt,
    endedAt: row.endedAt ?? undefined,
    runtime: row.runtime,
    evidence: row.evidence ?? undefined,
  };
}

/** Rows as plain objects: those of SQLite have no prototype, which `deepEqual` does not accept. */
export function plainRows<T extends object>(rows: readonly unknown[]): T[] {
  return rows.map((row) => ({ ...(row as T) }));
}

/** Whether the run continues only after a resume. */
export function isStopped(status: RunStatus): boolean {
  return status === "paused" || status === "blocked" || status === "determinism_violation";
}
