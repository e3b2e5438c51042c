// Streams: chunks have the number of the run's first generation, so that offsets continue after `continueAsNew` (stream.Q1).

import type { Chunk, NewChunk, RunNumber } from "../../kernel/index.ts";
import { plainRows } from "./run-rows.ts";
import type { Statements, Tx } from "./statements.ts";

interface Ends {
  /** The highest offset. */
  last: number;
  /** stream.Q2 */
  emitted: number;
}

export function writeEmits({ sql }: Tx, run: RunNumber, emits: readonly NewChunk[]): void {
  const first = firstGeneration(sql, run);
  const streams = new Map<string, Ends>();
  for (const { stream, number, data } of emits) {
    const ends = streams.get(stream) ?? endsOf(sql, first, run, stream);
    streams.set(stream, ends);
    // stream.Q2. A replay emits chunks again that are stored already.
    if (number !== undefined && number < ends.emitted) continue;
    sql.insertChunk.run(first, stream, ++ends.last, data);
    if (number !== undefined) ends.emitted = number + 1;
  }
  for (const [stream, { emitted }] of streams) if (emitted > 0) sql.saveEmittedCount.run(run, stream, emitted);
}

function endsOf(sql: Statements, first: RunNumber, run: RunNumber, stream: string): Ends {
  const { last } = sql.lastChunk.get(first, stream) as { last: number | null };
  const row = sql.emittedCount.get(run, stream) as { count: number } | undefined;
  return { last: last ?? 0, emitted: row?.count ?? 0 };
}

export function firstGeneration(sql: Statements, run: RunNumber): RunNumber {
  return (sql.firstGeneration.get(run) as { run: number } | undefined)?.run ?? run;
}

export function readStream(
  sql: Statements,
  run: RunNumber,
  stream: string,
  after: number,
  limit: number,
): readonly Chunk[] {
  return plainRows<Chunk>(sql.chunksAfter.all(firstGeneration(sql, run), stream, after, limit));
}

export function readEmitted(sql: Statements, run: RunNumber): ReadonlyMap<string, number> {
  const rows = sql.emittedCounts.all(run) as unknown as { stream: string; count: number }[];
  return new Map(rows.map(({ stream, count }) => [stream, count]));
}
