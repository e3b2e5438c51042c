// Check contents: every part of a run's payloads that is stored apart from its row is there, and is the one that was stored.

import { unreadableReason } from "../../base/index.ts";
import { PAYLOADS, RUN_TABLES, type RunTable } from "../rows/tables.ts";
import type { AnyRows } from "../rows/rows.ts";
import type { Fault } from "./check-journal.ts";
import type { CheckStatements } from "./check-store.ts";

/** Tables besides the journal, which is read anyway. */
const TABLES: readonly RunTable[] = RUN_TABLES.filter(
  (table) => table !== "journal" && PAYLOADS[table]?.contents !== undefined,
);

export class ContentCheck {
  readonly faults: Fault[] = [];
  readonly #found = new Set<unknown>();

  /** Reports each content once. */
  see(text: string, seq?: number): void {
    const reason = unreadableReason(text);
    if (reason?.code !== "PAYLOAD_MISSING" && reason?.code !== "PAYLOAD_DAMAGED") return;
    const content = reason.details?.["content"];
    if (this.#found.has(content)) return;
    this.#found.add(content);
    this.faults.push({ invariant: "I50 payloads are complete", seq, message: `${reason.code}: ${reason.message}` });
  }

  seeRows({ rows }: CheckStatements, run: number): void {
    for (const table of TABLES) {
      const { column } = PAYLOADS[table]!;
      for (const row of (rows as AnyRows).select(table, [run], [column], { also: {} })) {
        const text = row[column];
        if (typeof text === "string") this.see(text);
      }
    }
  }
}
