import type { EmittedChunk, NewChunk, StepReset, Store } from "../../../src/kernel/index.ts";
import { changed, methods, turns, type Mutant } from "./mutant.ts";

function emits(name: string, change: (emit: EmittedChunk) => EmittedChunk): Mutant {
  return chunks(name, (chunk) => (chunk.reset === true ? chunk : change(chunk)));
}

function resets(name: string, change: (reset: StepReset) => NewChunk): Mutant {
  return chunks(name, (chunk) => (chunk.reset === true ? change(chunk) : chunk));
}

function chunks(name: string, change: (chunk: NewChunk) => NewChunk): Mutant {
  return turns(name, (turn) => ({ ...turn, chunks: turn.chunks.map(change) }));
}

type ReadStream = Store["readStream"];

export const streamsMutants: readonly Mutant[] = [
  turns("chunks are not stored", (turn) => ({ ...turn, chunks: [] })),
  turns("chunks of a commit are written in reverse", (turn) => ({ ...turn, chunks: turn.chunks.toReversed() })),
  emits("a chunk is written again after a replay", (emit) => ({ ...emit, number: undefined })),
  emits("a chunk does not keep its step", ({ stream, number, data }) => ({ stream, number, data })),
  resets("a reset is written to one stream only", ({ step, execution }) => ({
    stream: "words",
    number: undefined,
    data: "null",
    step,
    execution,
  })),
  turns("resets go before all chunks of their commit", (turn) => ({
    ...turn,
    chunks: turn.chunks.toSorted((a, b) => Number(b.reset === true) - Number(a.reset === true)),
  })),
  resets("a node resets only its own chunks", ({ attempt: _attempt, ...own }) => own),
  resets("a node resets the chunks of its present attempt", ({ attempt: _attempt, ...own }) => ({
    ...own,
    attempt: "-",
  })),
  {
    name: "an operation's chunks are counted as the code's",
    wrap: (store) =>
      changed(store, {
        async readEmitted(run: number) {
          const counts = new Map<string, number>();
          for (const stream of ["words", "bytes"]) {
            const chunks = await store.readStream(run, stream, 0, 100);
            if (chunks.length > 0) counts.set(stream, chunks.length);
          }
          return counts;
        },
      }),
  },
  methods("all streams of a run are one", (store) => ({
    readStream: async (...[run, , after, limit]: Parameters<ReadStream>) => {
      const all = await Promise.all(["words", "bytes"].map((name) => store.readStream(run, name, after, limit)));
      return all.flat();
    },
  })),
  methods("a stream is always read from its beginning", (store) => ({
    readStream: (...[run, stream, , limit]: Parameters<ReadStream>) => store.readStream(run, stream, 0, limit),
  })),
  methods("a stream is read without limit", (store) => ({
    readStream: (...[run, stream, after]: Parameters<ReadStream>) => store.readStream(run, stream, after, 1_000),
  })),
  methods("chunks are trimmed", (store) => ({
    readStream: async (...args: Parameters<ReadStream>) =>
      (await store.readStream(...args)).map((chunk) => ({ ...chunk, data: chunk.data.trim() })),
  })),
  {
    name: "chunks outlive their pruned run",
    wrap(store) {
      const seen = new Map<string, Awaited<ReturnType<ReadStream>>>();
      return changed(store, {
        async readStream(...args: Parameters<ReadStream>) {
          const found = await store.readStream(...args);
          const key = args.join();
          if (found.length > 0) seen.set(key, found);
          return found.length > 0 ? found : (seen.get(key) ?? []);
        },
      });
    },
  },
];
