// Streams: chunks have the number of the run's first generation, so that offsets continue after `continueAsNew` (stream.Q1).

import type { Chunk, NewChunk, RunNumber } from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import type { Tx } from "./transaction.ts";

interface Ends {
  /** The highest offset. */
  last: number;
  /** stream.Q2 */
  emitted: number;
  /** The stored count, if there is one. */
  readonly wasEmitted: number | undefined;
}

export function writeEmits({ rows }: Tx, run: RunNumber, emits: readonly NewChunk[]): void {
  const first = firstGeneration(rows, run);
  const streams = new Map<string, Ends>();
  for (const { stream, number, data } of emits) {
    const ends = streams.get(stream) ?? endsOf(rows, first, run, stream);
    streams.set(stream, ends);
    // stream.Q2. A replay emits chunks again that are stored already.
    if (number !== undefined && number < ends.emitted) continue;
    rows.insert("chunks", { run: first, stream, position: ++ends.last, data });
    if (number !== undefined) ends.emitted = number + 1;
  }
  for (const [stream, { emitted, wasEmitted }] of streams)
    if (wasEmitted !== undefined) rows.set("emitted", [run, stream], { count: emitted });
    else if (emitted > 0) rows.insert("emitted", { run, stream, count: emitted });
}

const POSITION = ["position"] as const;
const COUNT = ["count"] as const;
const GENERATION = ["id", "generation"] as const;
const NUMBER = ["run"] as const;
const CHUNK = ["position", "data"] as const;
const EMITTED = ["stream", "count"] as const;

function endsOf(rows: Rows, first: RunNumber, run: RunNumber, stream: string): Ends {
  const last = rows.first("chunks", [first, stream], POSITION, { backwards: true })?.position ?? 0;
  const wasEmitted = rows.get("emitted", [run, stream], COUNT)?.count;
  return { last, emitted: wasEmitted ?? 0, wasEmitted };
}

/** The number of a run's first generation, which never changes: no lock is needed. */
export function firstGeneration(rows: Rows, run: RunNumber): RunNumber {
  const row = rows.get("runs", [run], GENERATION);
  if (row === undefined || row.generation === 0) return run;
  return rows.first("runs_by_id", [row.id, 0], NUMBER, { peek: true })?.run ?? run;
}

export function readStream(rows: Rows, run: RunNumber, stream: string, after: number, limit: number): readonly Chunk[] {
  const found = rows.select("chunks", [firstGeneration(rows, run), stream], CHUNK, { after, limit });
  return found.map(({ position, data }) => ({ offset: position, data }));
}

export function readEmitted(rows: Rows, run: RunNumber): ReadonlyMap<string, number> {
  return new Map(rows.select("emitted", [run], EMITTED).map(({ stream, count }) => [stream, count]));
}
