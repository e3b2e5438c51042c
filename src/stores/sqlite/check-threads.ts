// Check threads: every LangGraph checkpoint has its values.

import type { StatementSync } from "node:sqlite";
import type { Problem } from "../../kernel/index.ts";

export const CHECK_THREADS_SQL = {
  threadCheckpoints: `select checkpoint, thread, namespace, id, body, metadata, channels from langgraph_checkpoints
    where checkpoint > ? order by checkpoint limit ?`,
  threadValueExists: "select 1 from langgraph_values where value = ? and thread = ?",
} as const;

interface CheckedCheckpoint {
  readonly checkpoint: number;
  readonly thread: string;
  readonly namespace: string;
  readonly id: string;
  readonly body: number;
  readonly metadata: number;
  readonly channels: string;
}

const PAGE = 200;

export function checkThreads(sql: Readonly<Record<keyof typeof CHECK_THREADS_SQL, StatementSync>>): readonly Problem[] {
  const problems: Problem[] = [];
  for (let after = 0; ;) {
    const page = sql.threadCheckpoints.all(after, PAGE) as unknown as CheckedCheckpoint[];
    for (const row of page) {
      const fault = faultOf(sql, row);
      if (fault === undefined) continue;
      const where = `Thread ${row.thread}, checkpoint ${row.id}${row.namespace && ` of ${row.namespace}`}`;
      problems.push({
        invariant: "I43 threads complete",
        run: undefined,
        seq: undefined,
        message: `${where}: ${fault}.`,
      });
    }
    if (page.length < PAGE) return problems;
    after = page.at(-1)!.checkpoint;
  }
}

function faultOf(
  sql: Readonly<Record<keyof typeof CHECK_THREADS_SQL, StatementSync>>,
  { thread, body, metadata, channels }: CheckedCheckpoint,
): string | undefined {
  const exists = (value: number): boolean => sql.threadValueExists.get(value, thread) !== undefined;
  if (!exists(body)) return "its body is missing";
  if (!exists(metadata)) return "its metadata is missing";
  const list = channelsIn(channels);
  if (list === undefined) return "its list of channels cannot be read";
  const missing = list.find(([, value]) => !exists(value));
  return missing && `the value of its channel ${missing[0]} is missing`;
}

function channelsIn(text: string): readonly (readonly [channel: string, value: number])[] | undefined {
  try {
    const list = JSON.parse(text) as [string, unknown, number][];
    return list.map(([channel, , value]) => [channel, value]);
  } catch {
    return undefined;
  }
}
