// ctx.emit: chunks of streams. They have no entry: what keeps a replay from showing them twice is that they are counted,
// and that the store knows how many are in (Q2).

import { encode, RepriseError } from "../base/index.ts";
import { encodeNamed } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { titleOf } from "./refusals.ts";
import { refuseInsideStep } from "./scope.ts";

/** How many chunks of each stream the code has emitted, and how many of those are in the store. */
export class EmittedChunks {
  readonly #stored: ReadonlyMap<string, number> | undefined;
  readonly #counts = new Map<string, number>();

  constructor(stored?: ReadonlyMap<string, number>) {
    this.#stored = stored;
  }

  /** Another life begins: what the ones before it have shown stays, and its own chunks follow. */
  beginLife(shown: readonly (readonly [stream: string, count: number])[]): void {
    for (const [stream, count] of shown) this.#counts.set(stream, Math.max(count, this.#counts.get(stream) ?? 0));
  }

  /** The chunk's number, undefined when it is in. */
  next(stream: string): number | undefined {
    const number = this.#counts.get(stream) ?? 0;
    this.#counts.set(stream, number + 1);
    return number < (this.#stored?.get(stream) ?? 0) ? undefined : number;
  }
}

export function emitChunk(execution: Execution, stream: string, chunk: unknown): void {
  refuseInsideStep("Use `emit` of the step's own first argument.");
  const data = encodeChunk(execution, stream, chunk);
  if (execution.stop !== undefined || execution.outcome !== undefined || execution.isUndoing) return;
  execution.emitted ??= new EmittedChunks();
  const number = execution.emitted.next(stream);
  if (number !== undefined) execution.asks.push({ ask: "emit", stream, number, data });
}

/** The chunk's text, refused when there is no such stream or when it is not data. */
export function encodeChunk({ body, limits }: Execution, stream: string, chunk: unknown): string {
  const { ports } = body;
  if (!Object.hasOwn(ports, stream) || ports[stream]?.port !== "stream")
    throw new RepriseError(
      "UNKNOWN_PORT",
      `${titleOf(body)} emits to the stream ${String(stream)}, which is not among its ports. Declare it: ports: { ${String(stream)}: stream() }.`,
    );
  return encodeNamed(`A chunk of stream ${stream}`, chunk, limits) ?? encode(undefined);
}
