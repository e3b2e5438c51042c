// AbortSignal: aborting a wait rejects with the signal's reason and leaves nothing behind.

import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createClient, createEngine, promise, query, stream, update, workflow, type StoreSource } from "reprise";
import { createTestEngine } from "reprise/testing";
import { sqlite } from "reprise/sqlite";
import { collect, createFolder, macrotask, rejection, until, within } from "./world.ts";

const ports = {
  go: promise<string>(),
  words: stream<string>(),
  ask: update<string, string>(),
  state: query<string>(),
};

const waits = workflow("waits", { ports }, async (ctx) => {
  ctx.emit("words", "first");
  await ctx.promise("go");
  ctx.emit("words", "last");
  return "done";
});
const definitions = [waits];
const WHY = new Error("the request was closed");

/** A store on a file that counts how often this process reads a run or a stream. */
function countReads(path: string): StoreSource & { readonly reads: () => number } {
  let reads = 0;
  return {
    reads: () => reads,
    async "~open"(options) {
      return new Proxy(await sqlite(path)["~open"](options), {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          if (key !== "findRun" && key !== "readStream" && key !== "readJournal") return value.bind(target) as unknown;
          return (...args: unknown[]) => {
            reads += 1;
            return value.apply(target, args) as unknown;
          };
        },
      });
    },
  };
}

const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

/** A client whose reads are counted, and a worker beside it that holds a waiting run. */
async function open(folder: { file(name: string): string }) {
  const path = folder.file("store.db");
  const source = countReads(path);
  const worker = await createEngine({ store: `sqlite:${path}`, definitions });
  const held = await worker.start(waits, undefined, { id: "run-1" });
  await until(async () => (await held.info()).status === "waiting");
  const client = await createClient({ store: source, definitions });
  return {
    held,
    run: client.get(waits, "run-1"),
    /** Reads of this client until another process has written and the client has noticed. */
    async readsAfterChange(): Promise<number> {
      await until(async () => (await client.find("run-1")) !== undefined);
      const before = source.reads();
      await worker.start(waits, undefined, { id: `other-${before}` });
      await new Promise((resolve) => setTimeout(resolve, 400));
      return source.reads() - before;
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      await worker.close();
    },
  };
}

describe("result", () => {
  test("an aborted wait rejects with the reason and leaves no waiter, no timer and no listener", async () => {
    using folder = createFolder();
    await using world = await open(folder);
    const idle = await world.readsAfterChange();
    const before = timers();
    const controller = new AbortController();
    const result = rejection(world.run.result({ timeout: "1 hour", signal: controller.signal }));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(timers()).toBe(before + 1);
    expect(listeners(controller.signal)).toBe(1);
    controller.abort(WHY);
    expect(timers()).toBe(before);
    expect(listeners(controller.signal)).toBe(0);
    expect(await within(1_000, result)).toBe(WHY);
    expect(await world.readsAfterChange()).toBe(idle);
    await world.held.resolve("go", "now");
    expect(await world.run.result()).toBe("done");
  });

  test("a wait that ends on its own removes its listener", async () => {
    await using engine = await createTestEngine({ definitions });
    const run = await engine.start(waits);
    const { signal } = new AbortController();
    const result = run.result({ signal });
    await run.resolve("go", "now");
    expect(await result).toBe("done");
    expect(listeners(signal)).toBe(0);
    const late = rejection((await engine.start(waits)).result({ timeout: "1 s", signal }));
    await engine.clock.advance("1 s");
    expect((await late).code).toBe("RESULT_TIMEOUT");
    expect(listeners(signal)).toBe(0);
  });

  test("a signal that is aborted already rejects at once; other waits of the run continue", async () => {
    await using engine = await createTestEngine({ definitions });
    const run = await engine.start(waits);
    const result = run.result();
    expect(await rejection(run.result({ signal: AbortSignal.abort(WHY) }))).toBe(WHY);
    await run.resolve("go", "now");
    expect(await result).toBe("done");
  });

  test("an abort reaches a wait that goes through a crash", async () => {
    await using engine = await createTestEngine({ definitions });
    const run = await engine.start(waits);
    const controller = new AbortController();
    const result = rejection(run.result({ signal: controller.signal }));
    await engine.crash();
    controller.abort(WHY);
    expect(await within(1_000, result)).toBe(WHY);
    expect(listeners(controller.signal)).toBe(0);
  });

  test("anything but an AbortSignal is refused", async () => {
    await using engine = await createTestEngine({ definitions });
    const run = await engine.start(waits);
    const error = await rejection(run.result({ signal: new AbortController() as never }));
    expect(error.code).toBe("BAD_OPTIONS");
    expect(error.message).toContain("AbortSignal");
  });

  test("one signal may end many waits", async () => {
    await using engine = await createEngine({ store: "sqlite::memory:", definitions });
    const warnings: string[] = [];
    const note = (warning: Error): void => void warnings.push(warning.message);
    process.on("warning", note);
    const controller = new AbortController();
    const runs = await Promise.all(Array.from({ length: 40 }, () => engine.start(waits)));
    const results = runs.map((run) => rejection(run.result({ signal: controller.signal })));
    await macrotask();
    controller.abort(WHY);
    expect(new Set(await Promise.all(results))).toEqual(new Set([WHY]));
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });
});

describe("stream", () => {
  test("it is an async generator: next, return, throw, iteration and disposal", async () => {
    await using engine = await createTestEngine({ definitions });
    const run = await engine.start(waits);
    const chunks = run.stream("words");
    expect(chunks[Symbol.asyncIterator]()).toBe(chunks);
    expect(await chunks.next()).toEqual({ done: false, value: { offset: 1, value: "first" } });
    expect(await rejection(chunks.throw(WHY))).toBe(WHY);
    expect(await chunks.next()).toEqual({ done: true, value: undefined });
    {
      await using again = run.stream("words");
      expect((await again.next()).value).toEqual({ offset: 1, value: "first" });
    }
    await run.resolve("go", "now");
    expect((await collect(run.stream("words"))).map(({ value }) => value)).toEqual(["first", "last"]);
  });

  test.each(["return", "abort"] as const)("%s while a read is pending releases the watcher at once", async (how) => {
    using folder = createFolder();
    await using world = await open(folder);
    const idle = await world.readsAfterChange();
    const controller = new AbortController();
    const chunks = world.run.stream("words", { signal: controller.signal });
    await chunks.next();
    const pending = chunks.next().catch((error: unknown) => error);
    expect(await world.readsAfterChange()).toBeGreaterThan(idle);
    if (how === "abort") controller.abort(WHY);
    else expect(await within(1_000, chunks.return())).toEqual({ done: true, value: undefined });
    expect(await within(1_000, pending)).toEqual(how === "abort" ? WHY : { done: true, value: undefined });
    expect(listeners(controller.signal)).toBe(0);
    expect(await world.readsAfterChange()).toBe(idle);
    expect(await chunks.next()).toEqual({ done: true, value: undefined });
  });

  test("an abort between two reads releases the watcher, and the next read rejects with the reason", async () => {
    using folder = createFolder();
    await using world = await open(folder);
    const idle = await world.readsAfterChange();
    const controller = new AbortController();
    const chunks = world.run.stream("words", { signal: controller.signal });
    await chunks.next();
    controller.abort(WHY);
    expect(await world.readsAfterChange()).toBe(idle);
    expect(await rejection(chunks.next())).toBe(WHY);
    expect(await chunks.next()).toEqual({ done: true, value: undefined });
    expect(await rejection(collect(world.run.stream("words", { signal: controller.signal })))).toBe(WHY);
  });

  test("a reader that leaves removes its listener, also in a test engine", async () => {
    await using engine = await createTestEngine({ definitions });
    const run = await engine.start(waits);
    const controller = new AbortController();
    for await (const { offset } of run.stream("words", { signal: controller.signal })) if (offset === 1) break;
    expect(listeners(controller.signal)).toBe(0);
    const chunks = run.stream("words", { after: 1, signal: controller.signal });
    const pending = rejection(chunks.next());
    await macrotask();
    controller.abort(WHY);
    expect(await within(1_000, pending)).toBe(WHY);
    const left = run.stream("words", { after: 1 });
    const waiting = left.next();
    await macrotask();
    expect(await within(1_000, left.return())).toEqual({ done: true, value: undefined });
    expect(await within(1_000, waiting)).toEqual({ done: true, value: undefined });
  });
});

describe("update and query", () => {
  const asks = workflow("asks", { ports }, async (ctx) => {
    const { opened } = await new Promise<{ opened: string }>((resolve) => {
      ctx.onUpdate("ask", async (text) => {
        const go = await ctx.promise("go");
        resolve({ opened: go });
        return `${text} ${go}`;
      });
    });
    return opened;
  });

  test("an aborted update rejects with the reason; the run still handles it", async () => {
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [asks] });
    const run = await engine.start(asks, undefined, { id: "run-1" });
    const controller = new AbortController();
    const answer = rejection(run.update("ask", "hello", { dedupId: "one", signal: controller.signal }));
    await until(async () => (await collect(run.journal())).some(({ type }) => type === "UpdateRequested"));
    expect(listeners(controller.signal)).toBeGreaterThan(0);
    controller.abort(WHY);
    expect(await within(1_000, answer)).toBe(WHY);
    expect(listeners(controller.signal)).toBe(0);
    await run.resolve("go", "now");
    expect(await run.update("ask", "hello", { dedupId: "one" })).toBe("hello now");
  });

  test("an update with an aborted signal is not sent", async () => {
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [asks] });
    const run = await engine.start(asks, undefined, { id: "run-1" });
    expect(await rejection(run.update("ask", "hello", { signal: AbortSignal.abort(WHY) }))).toBe(WHY);
    await run.resolve("go", "now");
    expect((await collect(run.journal())).map(({ type }) => type)).not.toContain("UpdateRequested");
  });

  test("a query with an aborted signal rejects with the reason, and one that is answered leaves no listener", async () => {
    const answers = workflow("answers", { ports }, async (ctx) => {
      ctx.onQuery("state", () => "open");
      return ctx.promise("go");
    });
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [answers] });
    const run = await engine.start(answers);
    const { signal } = new AbortController();
    expect(await run.query("state", undefined, { signal })).toBe("open");
    expect(listeners(signal)).toBe(0);
    expect(await rejection(run.query("state", undefined, { signal: AbortSignal.abort(WHY) }))).toBe(WHY);
  });
});

test("bulk stops after the page in progress when its signal aborts", async () => {
  await using engine = await createTestEngine({ definitions });
  for (let n = 0; n < 150; n += 1) await engine.start(waits, undefined, { id: `run-${n}` });
  const controller = new AbortController();
  const counts: number[] = [];
  const onProgress = ({ count }: { count: number }): void => {
    counts.push(count);
    controller.abort(WHY);
  };
  expect(await rejection(engine.bulk("cancel", {}, { onProgress, signal: controller.signal }))).toBe(WHY);
  expect(counts).toEqual([100]);
});
