// @ts-nocheck
// Statements that count runs by definition and version.

import { TurnDue } from "../../../kernel/index.ts";
import { some } from "./selections.ts";
import type { Condition } from "../query.ts";
import { effect, one, type StatementContext } from "./context.ts";

const LIVE: Condition = { column: "ended_at", is: "null" };
const DUE: readonly Condition[] = [
  { column: "turn_due", is: "=", value: TurnDue.yes, fixed: true },
  { column: "turn_token", is: "null" },
];

export function countStatements({ ws, mode }: StatementContext) {
  const versions = (): readonly { definition: string; version: number; count: number }[] =>
    ws.counts({ kind: "count", table: "runs", where: [LIVE], by: ["definition", "version"] }) as never;
  const due = (definition: string, version: number): number => {
    const counted = ws.counts({ kind: "count", table: "runs", where: DUE, by: ["definition", "version"] });
    const found = counted.find((row) => row["definition"] === definition && row["version"] === version);
    return (found?.["count"] as number | undefined) ?? 0;
  };

  return {
    // Run numbers come from `counters`, so a transaction neither stores nor reads the highest one.
    saveHighestRun: effect(() => {}),
    highestRun: one(() => {
      if (mode === "write") return { run: 0 };
      const order = [["run", "desc"]] as const;
      const [row] = ws.select({ kind: "select", table: "runs", where: [some("run")], order, limit: 1, lock: "none" });
      return { run: row?.run ?? 0 };
    }),

    nextDefinition: one((after: string) => {
      const names = versions().map(({ definition }) => definition);
      const [name] = names.filter((name) => name > after).sort();
      return name === undefined ? undefined : { name };
    }),
    nextVersion: one((definition: string, after: number) => {
      const its = versions().filter((one) => one.definition === definition && one.version > after);
      return its.length === 0 ? undefined : { version: Math.min(...its.map(({ version }) => version)) };
    }),
    countLive: one((definition: string, version: number) => {
      const found = versions().find((one) => one.definition === definition && one.version === version);
      return { live: found?.count ?? 0 };
    }),
    countDue: one((definition: string, version: number) => ({ due: due(definition, version) })),
  };
}
