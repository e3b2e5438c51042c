// Stream: chunks that a run emits while it is in progress, read by offset.
//
// stream.Q1. Offsets of a stream are dense from 1, across the generations of a run.
// stream.Q2. Chunks from workflow code are numbered per stream and generation. The store ignores a number that it has, so a
//   replay emits nothing twice.
// stream.Q3. Chunks from an operation or a node have no number. They name the step and the execution that emitted them, because a
//   repeated execution may emit them again.
// stream.Q4. When an execution is repeated, every stream that has chunks of the earlier ones gets a reset, with an offset of its own,
//   before the first chunk of the new execution, also if that emits nothing. Chunks of the step before a reset are void.
// stream.Q5. A new attempt of a node also resets the chunks of everything that its earlier attempts called. A node that continues on
//   another worker does not: results of its operations that were recorded are not repeated.

/** A chunk to write, in the commit of its turn. */
export interface EmittedChunk {
  readonly stream: string;
  /** stream.Q2, from 0; undefined: stream.Q3. */
  readonly number: number | undefined;
  readonly data: string;
  readonly step?: string;
  readonly execution?: number;
  readonly reset?: undefined;
}

/** stream.Q4. The streams are those that have chunks of the step. */
export interface StepReset {
  readonly reset: true;
  readonly step: string;
  /** The execution that starts. */
  readonly execution: number;
  /** stream.Q5, for a node: commands with this prefix belong to the attempt that runs now. */
  readonly attempt?: string;
  readonly stream?: undefined;
  readonly number?: undefined;
}

export type NewChunk = EmittedChunk | StepReset;

/** A stored chunk, or a reset (stream.Q4). */
export interface Chunk {
  readonly offset: number;
  readonly data: string;
  /** stream.Q3 */
  readonly step?: string;
  readonly execution?: number;
  readonly reset?: true;
}

/** The step of a chunk: commands of two generations may have the same name, their steps do not. */
export function streamStepOf(command: string, generation: number): string {
  return generation === 0 ? command : `${command}@${generation}`;
}
