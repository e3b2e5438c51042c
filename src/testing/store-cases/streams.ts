import assert from "node:assert/strict";
import type { NewChunk, StepReset, Store } from "../../kernel/index.ts";
import {
  heldAfter,
  claimTurns,
  commitTurn,
  COMPLETES,
  LEASE_MS,
  newToken,
  registerWorker,
  startHeld,
  takeTurn,
  turnWrite,
  WAITS,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** Chunks that the code of a run emits, numbered from `first`. */
function codeChunks(stream: string, first: number, ...data: readonly string[]): readonly NewChunk[] {
  return data.map((text, index) => ({ stream, number: first + index, data: text }));
}

/** Chunks that an operation emits. */
function operationChunks(stream: string, ...data: readonly string[]): readonly NewChunk[] {
  return data.map((text) => ({ stream, number: undefined, data: text }));
}

/** Chunks that an execution of a step emits. */
function stepChunks(stream: string, step: string, execution: number, ...data: readonly string[]): readonly NewChunk[] {
  return data.map((text) => ({ stream, number: undefined, data: text, step, execution }));
}

function reset(step: string, execution: number): StepReset {
  return { reset: true, step, execution };
}

/** The chunks of a stream whose offsets are dense. */
async function framesOf(store: Store, run: number, stream: string): Promise<readonly string[]> {
  const chunks = await store.readStream(run, stream, 0, 100);
  return chunks.map((chunk, index) => {
    assert.equal(chunk.offset, index + 1);
    return `${chunk.reset === true ? "reset" : `${chunk.data} of`} ${chunk.step} ${chunk.execution}`;
  });
}

async function chunksOf(store: Store, run: number, stream: string): Promise<readonly (readonly [number, string])[]> {
  return (await store.readStream(run, stream, 0, 100)).map(({ offset, data }) => [offset, data] as const);
}

export const streamCases: readonly StoreCase[] = [
  storeCase("chunks get dense offsets from 1 per stream, in the order they were emitted", async (store) => {
    const worker = await registerWorker(store);
    let held = await startHeld(store, worker, "order-1");
    held = await commitTurn(store, held, { chunks: [...codeChunks("words", 0, "a"), ...codeChunks("bytes", 0, "1")] });
    held = await commitTurn(store, held, {
      chunks: [...operationChunks("words", "b"), ...codeChunks("words", 1, "c")],
    });
    const other = await startHeld(store, worker, "order-2");
    await commitTurn(store, other, { chunks: codeChunks("words", 0, "z") });
    assert.deepEqual(await chunksOf(store, held.run, "words"), [
      [1, "a"],
      [2, "b"],
      [3, "c"],
    ]);
    assert.deepEqual(await chunksOf(store, held.run, "bytes"), [[1, "1"]]);
    assert.deepEqual(await chunksOf(store, other.run, "words"), [[1, "z"]]);
    assert.deepEqual(await chunksOf(store, held.run, "silence"), []);
  }),

  storeCase("a chunk of the code that is stored is not written again", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, { chunks: codeChunks("words", 0, "a", "b") });
    await commitTurn(store, held, {
      chunks: [...codeChunks("words", 0, "a", "b", "c"), ...operationChunks("words", "x")],
    });
    assert.deepEqual(await chunksOf(store, held.run, "words"), [
      [1, "a"],
      [2, "b"],
      [3, "c"],
      [4, "x"],
    ]);
  }),

  storeCase("a store counts the chunks that the code emitted, without those of operations", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    assert.deepEqual(await store.readEmitted(held.run), new Map());
    await commitTurn(store, held, { chunks: [...codeChunks("words", 0, "a", "b"), ...operationChunks("words", "x")] });
    await commitTurn(store, held, { chunks: [...codeChunks("words", 2, "c"), ...operationChunks("bytes", "1")] });
    assert.deepEqual(await store.readEmitted(held.run), new Map([["words", 3]]));
  }),

  storeCase("a rejected commit writes no chunk", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const [outcome] = await store.write([
      turnWrite(
        store,
        { ...held, token: newToken() },
        { chunks: [...codeChunks("words", 0, "a"), ...operationChunks("words", "b")] },
      ),
    ]);
    assert.equal(outcome.status, "lease_lost");
    assert.deepEqual(await chunksOf(store, held.run, "words"), []);
    assert.deepEqual(await store.readEmitted(held.run), new Map());
  }),

  storeCase("a chunk keeps the step and the execution that emitted it", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, {
      chunks: [...codeChunks("words", 0, "a"), ...stepChunks("words", "Operation(3)", 2, "b")],
    });
    assert.deepEqual(await store.readStream(held.run, "words", 0, 100), [
      { offset: 1, data: "a" },
      { offset: 2, data: "b", step: "Operation(3)", execution: 2 },
    ]);
  }),

  storeCase("a repeated execution resets every stream that has chunks of its step, and no other", async (store) => {
    const worker = await registerWorker(store);
    let held = await startHeld(store, worker, "order-1");
    held = await commitTurn(store, held, {
      chunks: [
        ...codeChunks("code", 0, "a"),
        ...stepChunks("words", "Operation(0)", 1, "b", "c"),
        ...stepChunks("bytes", "Operation(0)", 1, "1"),
        ...stepChunks("others", "Operation(1)", 1, "x"),
        ...stepChunks("words", "Operation(1)", 1, "d"),
      ],
    });
    const other = await startHeld(store, worker, "order-2");
    await commitTurn(store, other, { chunks: stepChunks("words", "Operation(0)", 1, "z") });
    // The second execution emits to one of the streams, in the same commit; the third one emits nothing.
    held = await commitTurn(store, held, {
      chunks: [reset("Operation(0)", 2), ...stepChunks("words", "Operation(0)", 2, "e")],
    });
    held = await commitTurn(store, held, { chunks: [reset("Operation(0)", 3)] });
    assert.deepEqual(await framesOf(store, held.run, "words"), [
      "b of Operation(0) 1",
      "c of Operation(0) 1",
      "d of Operation(1) 1",
      "reset Operation(0) 2",
      "e of Operation(0) 2",
      "reset Operation(0) 3",
    ]);
    // The third execution has nothing to reset here.
    assert.deepEqual(await framesOf(store, held.run, "bytes"), ["1 of Operation(0) 1", "reset Operation(0) 2"]);
    assert.deepEqual(await framesOf(store, held.run, "others"), ["x of Operation(1) 1"]);
    assert.deepEqual(await chunksOf(store, held.run, "code"), [[1, "a"]]);
    assert.deepEqual(await framesOf(store, other.run, "words"), ["z of Operation(0) 1"]);
    assert.deepEqual(await store.readEmitted(held.run), new Map([["code", 1]]));
  }),

  storeCase("a commit with chunks of two executions has the reset between them", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, {
      chunks: [
        ...stepChunks("words", "Operation(0)", 1, "a"),
        reset("Operation(0)", 2),
        ...stepChunks("words", "Operation(0)", 2, "b"),
      ],
    });
    assert.deepEqual(await framesOf(store, held.run, "words"), [
      "a of Operation(0) 1",
      "reset Operation(0) 2",
      "b of Operation(0) 2",
    ]);
  }),

  storeCase(
    "a new attempt of a node resets what its earlier attempts called, and not what it called itself",
    async (store) => {
      const worker = await registerWorker(store);
      let held = await startHeld(store, worker, "order-1");
      held = await commitTurn(store, held, {
        chunks: [
          ...stepChunks("words", "Node(1.0)", 1, "a"),
          ...stepChunks("words", "Node(1.0)#0/Operation(0)", 1, "b"),
          ...stepChunks("words", "Node(1.0)~1#0/Operation(0)", 1, "c"),
          ...stepChunks("words", "Node(1.0)~1#1/Operation(0)", 1, "d"),
          ...stepChunks("words", "Node(1.01)#0/Operation(0)", 1, "e"),
        ],
      });
      held = await commitTurn(store, held, {
        chunks: [{ ...reset("Node(1.0)", 2), attempt: "Node(1.0)~1#1/" }],
      });
      assert.deepEqual((await framesOf(store, held.run, "words")).slice(5).toSorted(), [
        "reset Node(1.0) 2",
        "reset Node(1.0)#0/Operation(0) 2",
        "reset Node(1.0)~1#0/Operation(0) 2",
      ]);
    },
  ),

  storeCase("a stream is read after an offset, up to a limit", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, { chunks: codeChunks("words", 0, "a", "b", "c", "d") });
    const page = await store.readStream(held.run, "words", 1, 2);
    assert.deepEqual(page, [
      { offset: 2, data: "b" },
      { offset: 3, data: "c" },
    ]);
    assert.deepEqual(await store.readStream(held.run, "words", 4, 2), []);
  }),

  storeCase("a chunk is returned byte for byte", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const texts = ["", "{}", ' {"b":1.0e2, "a":"ä a\u0308 \u0000 👩‍👩‍👧 \u2028"}  '];
    await commitTurn(store, held, { chunks: operationChunks("words", ...texts) });
    assert.deepEqual(
      (await chunksOf(store, held.run, "words")).map(([, data]) => data),
      texts,
    );
  }),

  storeCase("streams outlive the end of their run and are deleted when it is pruned", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, { ...COMPLETES, chunks: codeChunks("words", 0, "last words") });
    assert.deepEqual(await chunksOf(store, held.run, "words"), [[1, "last words"]]);
    t.clock.advance(1);
    await store.prune(store.now());
    assert.deepEqual(await chunksOf(store, held.run, "words"), []);
    assert.deepEqual(await store.readEmitted(held.run), new Map());
  }),

  storeCase("chunks alone do not clear a suspect", async (store, t) => {
    const dies = async (doing: (worker: number) => Promise<void>): Promise<void> => {
      await doing(await registerWorker(store, "dies"));
      t.clock.advance(LEASE_MS);
      await store.reap(await registerWorker(store, "reaper"));
    };
    await dies(async (worker) => {
      const held = await startHeld(store, worker, "order-1");
      await store.write([turnWrite(store, held, { chunks: operationChunks("words", "a") })]);
    });
    await dies(async (worker) => {
      const held = await takeTurn(store, worker);
      await store.write([turnWrite(store, held, { chunks: operationChunks("words", "b") })]);
    });
    const worker = await registerWorker(store);
    const [turn] = await claimTurns(store, worker);
    assert.equal(turn?.suspicion, 2);
    const { run, id, head, chain } = turn.record;
    const held = { run, id, token: turn.token, head, chain, read: 0, inbox: [] };
    const write = turnWrite(store, held, { entries: [WAITS], chunks: operationChunks("words", "c"), then: "release" });
    assert.equal((await store.write([write]))[0].status, "committed");
    assert.equal(heldAfter(held, write).head, head + 1);
  }),
];
