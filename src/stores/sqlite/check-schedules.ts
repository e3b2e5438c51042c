// Check schedules: each schedule is valid, and a worker fires it.

import { shellWord } from "../../base/index.ts";
import type { StatementSync } from "node:sqlite";
import type { EpochMs } from "../../base/index.ts";
import { CATCH_UPS, OVERLAPS, type Problem } from "../../kernel/index.ts";

export const CHECK_SCHEDULES_SQL = {
  schedules: `select name, definition, (cron is null) as hasNoCron, (every is null) as hasNoInterval, overlap,
      catch_up as catchUp, paused, next_at as nextAt, due_at as dueAt, jitter, line
    from schedules where name > ? order by name limit ?`,
  livingWorkers: "select count(*) as count from workers where until > ?",
} as const;

interface CheckedSchedule {
  readonly name: string;
  readonly definition: string;
  readonly hasNoCron: number;
  readonly hasNoInterval: number;
  readonly overlap: string;
  readonly catchUp: string;
  readonly paused: number;
  readonly nextAt: number | null;
  readonly dueAt: number | null;
  readonly jitter: number;
  readonly line: string;
}

const PAGE = 200;
/** A worker with the definition fires a schedule within seconds of its due time. */
const OVERDUE_MS = 5 * 60_000;

export function checkSchedules(
  sql: Readonly<Record<keyof typeof CHECK_SCHEDULES_SQL, StatementSync>>,
  now: EpochMs,
): readonly Problem[] {
  const problems: Problem[] = [];
  const { count: living } = sql.livingWorkers.get(now) as { count: number };
  for (let after = ""; ;) {
    const page = sql.schedules.all(after, PAGE) as unknown as CheckedSchedule[];
    for (const schedule of page) {
      const fault = faultOf(schedule);
      if (fault !== undefined)
        problems.push(problem("I41 schedules valid", `Schedule ${schedule.name}: ${fault}. ${fix(schedule)}`));
      else if (living > 0 && schedule.dueAt !== null && now - schedule.dueAt > OVERDUE_MS)
        problems.push(problem("I42 schedules fired", overdue(schedule)));
    }
    if (page.length < PAGE) return problems;
    after = page.at(-1)!.name;
  }
}

function problem(invariant: string, message: string): Problem {
  return { invariant, run: undefined, seq: undefined, message };
}

function fix({ name }: CheckedSchedule): string {
  return `Delete it with \`reprise schedule remove ${shellWord(name)}\` and create it again.`;
}

function overdue({ name, definition, dueAt }: CheckedSchedule): string {
  return `Schedule ${name} has been due since ${new Date(dueAt!).toISOString()}, and no live worker has the definition ${definition}. Start a worker that has it, or run \`reprise schedule remove ${shellWord(name)}\`.`;
}

function faultOf(schedule: CheckedSchedule): string | undefined {
  const { hasNoCron, hasNoInterval, overlap, catchUp, paused, nextAt, dueAt, jitter, line } = schedule;
  if (hasNoCron === hasNoInterval) return "it must have either a cron pattern or an interval";
  if (!(OVERLAPS as readonly string[]).includes(overlap)) return `its overlap policy ${overlap} is unknown`;
  if (!(CATCH_UPS as readonly string[]).includes(catchUp)) return `its catch-up policy ${catchUp} is unknown`;
  if (!isAscendingTimes(line)) return "its queued times are not an ascending list";
  if ((dueAt === null) !== (paused === 1 || nextAt === null))
    return dueAt === null ? "it has no due time" : "it has a due time although it is paused or has no next time";
  if (dueAt !== null && nextAt !== null && (dueAt < nextAt || dueAt > nextAt + jitter))
    return "its due time is not its next time plus at most the jitter";
  return undefined;
}

function isAscendingTimes(text: string): boolean {
  try {
    const times = JSON.parse(text) as unknown;
    return (
      Array.isArray(times) &&
      times.every((at, n) => Number.isSafeInteger(at) && (n === 0 || Number(times[n - 1]) <= at))
    );
  } catch {
    return false;
  }
}
