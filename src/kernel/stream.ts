// Stream: chunks that a run emits while it is in progress, read by offset.
//
// stream.Q1. Offsets of a stream are dense from 1, across the generations of a run.
// stream.Q2. Chunks from workflow code are numbered per stream and generation. The store ignores a number that it has, so a
//   replay emits nothing twice.
// stream.Q3. Chunks from an operation have no number: a repeated attempt may emit them again.

/** A chunk to write, in the commit of its turn. */
export interface NewChunk {
  readonly stream: string;
  /** stream.Q2, from 0; undefined: stream.Q3. */
  readonly number: number | undefined;
  readonly data: string;
}

/** A stored chunk. */
export interface Chunk {
  readonly offset: number;
  readonly data: string;
}
