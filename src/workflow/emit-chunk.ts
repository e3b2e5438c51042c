// ctx.emit: chunks of streams. A chunk has no entry. The code counts its chunks, and the store knows how many it has, so a
// replay emits none twice (stream.Q2).

import { encode, RepriseError } from "../base/index.ts";
import { encodeNamed } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { describeDefinition } from "./refusals.ts";
import { refuseInsideStep } from "./scope.ts";

/** The number of chunks per stream that the code has emitted and that the store has. */
export class EmittedChunks {
  readonly #stored: ReadonlyMap<string, number> | undefined;
  readonly #counts = new Map<string, number>();

  constructor(stored?: ReadonlyMap<string, number>) {
    this.#stored = stored;
  }

  /** A retry starts a new epoch: its chunks follow those of the epochs before. */
  beginEpoch(shown: readonly (readonly [stream: string, count: number])[]): void {
    for (const [stream, count] of shown) this.#counts.set(stream, Math.max(count, this.#counts.get(stream) ?? 0));
  }

  /** The number of the chunk; undefined when the store has it. */
  next(stream: string): number | undefined {
    const number = this.#counts.get(stream) ?? 0;
    this.#counts.set(stream, number + 1);
    return number < (this.#stored?.get(stream) ?? 0) ? undefined : number;
  }
}

export function emitChunk(execution: Execution, stream: string, chunk: unknown): void {
  refuseInsideStep("Use `emit` of the step's first argument.");
  const data = encodeChunk(execution, stream, chunk);
  if (execution.stop !== undefined || execution.outcome !== undefined || execution.isUndoing) return;
  // fork.F5. The streams of a fork start empty.
  if (execution.draws.isShared) return;
  execution.emitted ??= new EmittedChunks();
  const number = execution.emitted.next(stream);
  if (number !== undefined) execution.requests.push({ kind: "emit", stream, number, data });
}

/** The text of the chunk. Throws when the stream is not declared or the chunk is not data. */
export function encodeChunk({ body, limits }: Execution, stream: string, chunk: unknown): string {
  const { ports } = body;
  if (!Object.hasOwn(ports, stream) || ports[stream]?.port !== "stream")
    throw new RepriseError(
      "UNKNOWN_PORT",
      `${describeDefinition(body)} emits to stream \`${String(stream)}\`, which it does not declare. Add ports: { ${String(stream)}: stream() }.`,
    );
  return encodeNamed(`A chunk of stream ${stream}`, chunk, limits) ?? encode(undefined);
}
