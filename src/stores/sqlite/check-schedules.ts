// Check of schedules: whether each row can be kept, and whether somebody keeps it.

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
/** A worker looks within seconds of the due time; who has not come by now does not come. */
const NEGLECTED_MS = 5 * 60_000;

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
      if (fault !== undefined) problems.push(problem("I41 schedules sound", `Schedule ${schedule.name}: ${fault}.`));
      else if (living > 0 && schedule.dueAt !== null && now - schedule.dueAt > NEGLECTED_MS)
        problems.push(problem("I42 schedules kept", neglect(schedule)));
    }
    if (page.length < PAGE) return problems;
    after = page.at(-1)!.name;
  }
}

function problem(invariant: string, message: string): Problem {
  return { invariant, run: undefined, seq: undefined, message };
}

function neglect({ name, definition, dueAt }: CheckedSchedule): string {
  return `Schedule ${name} was due at ${new Date(dueAt!).toISOString()} and nobody fired it, although workers are alive: none of them has the definition ${definition}. Start one that has it, or remove the schedule.`;
}

function faultOf(schedule: CheckedSchedule): string | undefined {
  const { hasNoCron, hasNoInterval, overlap, catchUp, paused, nextAt, dueAt, jitter, line } = schedule;
  if (hasNoCron === hasNoInterval) return "it needs a cron pattern or an interval, not both";
  if (!(OVERLAPS as readonly string[]).includes(overlap)) return `there is no overlap policy ${overlap}`;
  if (!(CATCH_UPS as readonly string[]).includes(catchUp)) return `there is no catch-up policy ${catchUp}`;
  if (!isLine(line)) return "its line is not an ascending list of times";
  if ((dueAt === null) !== (paused === 1 || nextAt === null))
    return "it has a due time exactly when it should have none";
  if (dueAt !== null && nextAt !== null && (dueAt < nextAt || dueAt > nextAt + jitter))
    return "its due time is not its next time with the jitter";
  return undefined;
}

function isLine(text: string): boolean {
  try {
    const line = JSON.parse(text) as unknown;
    return (
      Array.isArray(line) && line.every((at, n) => Number.isSafeInteger(at) && (n === 0 || Number(line[n - 1]) <= at))
    );
  } catch {
    return false;
  }
}
