// Check log: the records of the log are dense from 1, and a pin names one of them (log.L1).

import type { StatementSync } from "node:sqlite";
import type { Problem } from "../../kernel/index.ts";

export const CHECK_LOG_SQL = {
  logSize: "select count(*) as count, min(n) as first, max(n) as last from run_log",
  logGap: `select n + 1 as missing from run_log as one
    where not exists (select 1 from run_log as next where next.n = one.n + 1) order by n limit 1`,
  strayPins: `select ended_runs.n, id from ended_runs left join runs on runs.run = ended_runs.run
    where ended_runs.n is not null and not exists (select 1 from run_log where run_log.n = ended_runs.n) limit 20`,
} as const;

const INVARIANT = "I48 log without gaps";

interface LogSize {
  readonly count: number;
  readonly first: number | null;
  readonly last: number | null;
}

export function checkLog(sql: Readonly<Record<keyof typeof CHECK_LOG_SQL, StatementSync>>): readonly Problem[] {
  const problems: Problem[] = [];
  const { count, first, last } = sql.logSize.get() as unknown as LogSize;
  if (first !== null && (first !== 1 || last !== count)) {
    const missing = first === 1 ? (sql.logGap.get() as { missing: number }).missing : 1;
    problems.push({
      invariant: INVARIANT,
      run: undefined,
      seq: undefined,
      message: `Record ${missing} of the log is missing, and record ${last ?? 0} exists. Nothing can be published behind the gap. Restore a backup with \`reprise restore\`.`,
    });
  }
  for (const { n, id } of sql.strayPins.all() as { n: number; id: string | null }[])
    problems.push({
      invariant: INVARIANT,
      run: id ?? undefined,
      seq: undefined,
      message: `Run ${id ?? "?"} is pinned by record ${n}, which the log does not have. Restore a backup with \`reprise restore\`.`,
    });
  return problems;
}
