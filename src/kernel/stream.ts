// Streams: chunks a run shows while it goes on, read by offset.
//
// Q1. Offsets of a stream are dense from 1, across the generations of a run.
// Q2. What workflow code emits is counted per stream and generation. A number that is in already is not written again, so
//     a replay shows nothing twice.
// Q3. What an operation emits has no number: a repeated attempt may show it again.

/** A chunk about to be written, in the commit of its turn. */
export interface NewChunk {
  readonly stream: string;
  /** Q2: from 0. Undefined: Q3. */
  readonly number: number | undefined;
  readonly data: string;
}

/** A chunk as it is kept. */
export interface Chunk {
  readonly offset: number;
  readonly data: string;
}
