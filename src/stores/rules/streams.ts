// Streams: chunks have the number of the run's first generation, so that offsets continue after `continueAsNew` (stream.Q1).

import type { Chunk, NewChunk, RunNumber, StepReset } from "../../kernel/index.ts";
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
  const endsIn = (stream: string): Ends => {
    const ends = streams.get(stream) ?? endsOf(rows, first, run, stream);
    streams.set(stream, ends);
    return ends;
  };
  for (const chunk of emits) {
    if (chunk.reset === true) {
      for (const { stream, step } of staleStreams(rows, first, chunk)) {
        const position = ++endsIn(stream).last;
        rows.insert("chunks", {
          run: first,
          stream,
          position,
          data: NOTHING,
          step,
          execution: chunk.execution,
          reset: 1,
        });
      }
      continue;
    }
    const { stream, number, data, step = null, execution = null } = chunk;
    const ends = endsIn(stream);
    // stream.Q2. A replay emits chunks again that are stored already.
    if (number !== undefined && number < ends.emitted) continue;
    rows.insert("chunks", { run: first, stream, position: ++ends.last, data, step, execution, reset: null });
    if (number !== undefined) ends.emitted = number + 1;
  }
  for (const [stream, { emitted, wasEmitted }] of streams)
    if (wasEmitted !== undefined) rows.set("emitted", [run, stream], { count: emitted });
    else if (emitted > 0) rows.insert("emitted", { run, stream, count: emitted });
}

/** The payload of a reset. */
const NOTHING = "null";
const STREAM = ["stream"] as const;
const STEP_AND_STREAM = ["step", "stream"] as const;
const RESET = ["reset"] as const;
/** After every character of a command. */
const LAST = "\u007f";

interface StepStream {
  readonly step: string;
  readonly stream: string;
}

/** stream.Q4. The streams whose last chunk of a step is not a reset. */
function staleStreams(rows: Rows, run: RunNumber, { step, attempt }: StepReset): readonly StepStream[] {
  const own = rows.distinct("chunks_by_step", [run, step], STREAM).map(({ stream }) => ({ step, stream }));
  const nested = attempt === undefined ? [] : nestedStreams(rows, run, step, attempt);
  return [...own, ...nested].filter(
    (one) => rows.first("chunks_by_step", [run, one.step, one.stream], RESET, { backwards: true })?.reset === null,
  );
}

/** stream.Q5. The streams of what other attempts of a node called. */
function nestedStreams(rows: Rows, run: RunNumber, node: string, attempt: string): readonly StepStream[] {
  const span = { after: node, before: `${node}${LAST}` };
  const found = new Map<string, StepStream>();
  for (const { step, stream } of rows.select("chunks_by_step", [run], STEP_AND_STREAM, span))
    if (step !== null && !step.startsWith(attempt)) found.set(`${step} ${stream}`, { step, stream });
  return [...found.values()];
}

const POSITION = ["position"] as const;
const COUNT = ["count"] as const;
const GENERATION = ["id", "generation"] as const;
const NUMBER = ["run"] as const;
const CHUNK = ["position", "data", "step", "execution", "reset"] as const;
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
  return found.map(({ position, data, step, execution, reset }) => ({
    offset: position,
    data,
    ...(step !== null && { step }),
    ...(execution !== null && { execution }),
    ...(reset !== null && { reset: true as const }),
  }));
}

export function readEmitted(rows: Rows, run: RunNumber): ReadonlyMap<string, number> {
  return new Map(rows.select("emitted", [run], EMITTED).map(({ stream, count }) => [stream, count]));
}
