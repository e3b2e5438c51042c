// A store whose payloads are encrypted: nothing of them is in the file, and everything else is as before.

import { DatabaseSync } from "node:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aesGcm, createEngine, promise, rekey, stream, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate } from "./world.ts";

const OLD = { one: Buffer.alloc(32, 1) };
const KEYS = { ...OLD, two: Buffer.alloc(32, 2) };
const codec = aesGcm({ keys: OLD, current: "one" });

const CANARY = "canary-7f3a91c0";

const echo = task("echo", { retry: { maxAttempts: 2, baseDelay: 1 } }, (ctx, text: string) => {
  if (ctx.attempt === 1) throw new Error(`first ${text}`);
  return text;
});
const child = workflow("child", async (_ctx, text: string) => ({ text }));
const ports = { word: promise<string>(), chunks: stream<string>() };
const everything = workflow("everything", { ports }, async (ctx, text: string) => {
  ctx.emit("chunks", text);
  const echoed = await ctx.task(echo, text);
  const said = await ctx.run("say", text, (_op, input) => input.toUpperCase());
  const word = await ctx.promise("word");
  const { text: back } = await ctx.child(child, word);
  ctx.state.set("last", back);
  return { echoed, said, back };
});

/** How often a text occurs in the files of a folder, including the log. */
function hits(folder: string, text: string): number {
  return readdirSync(folder).filter((file) => {
    const bytes = readFileSync(join(folder, file));
    return bytes.includes(text) || bytes.includes(text.toUpperCase());
  }).length;
}

test("the file contains no input, message or output of a run, and a crash and verify change nothing", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("e.db")}`;
  await using engine = await createTestEngine({ store, codec, definitions: [everything, child, echo] });
  const run = await engine.start(everything, CANARY);
  await engine.clock.advance("1 s");
  await engine.crash();
  await run.resolve("word", CANARY);
  await engine.crash();
  expect(await run.result()).toEqual({ echoed: CANARY, said: CANARY.toUpperCase(), back: CANARY });
  expect((await run.verify()).status).toBe("same");
  expect(await collect(run.stream("chunks"))).toEqual([{ offset: 1, value: CANARY }]);
  expect(hits(folder.path, CANARY)).toBe(0);
  await engine.close();
  expect(hits(folder.path, CANARY)).toBe(0);
});

test("equal runs have different digests where payloads are encrypted, and equal ones where they are not", async () => {
  const digests = async (options: { codec?: typeof codec }): Promise<Set<string>> => {
    await using engine = await createTestEngine({ definitions: [child], ...options });
    const runs = [await engine.start(child, "x"), await engine.start(child, "x")];
    await Promise.all(runs.map((run) => run.result()));
    return new Set(await Promise.all(runs.map(async (run) => (await run.info()).digest)));
  };
  expect((await digests({})).size).toBe(1);
  expect((await digests({ codec })).size).toBe(2);
});

test("starting the same run again gives the same run, salt or not", async () => {
  await using engine = await createTestEngine({ definitions: [child], codec });
  await engine.start(child, "x", { id: "a" });
  expect((await engine.start(child, "x", { id: "a" })).id).toBe("a");
  await expect(engine.start(child, "y", { id: "a" })).rejects.toMatchObject({ code: "START_CONFLICT" });
});

test("a run whose payload was tampered with is blocked with the reason, and continues when the payload is restored", async () => {
  using folder = createFolder();
  const path = folder.file("e.db");
  const definitions = [everything, child, echo] as const;
  const first = await createTestEngine({ store: `sqlite:${path}`, codec, definitions });
  await first.start(everything, "a", { id: "a" });
  await first.start(everything, "b", { id: "b" });
  await first.clock.advance("1 s");
  await first.close();
  const db = new DatabaseSync(path);
  const [row] = db.prepare("select run, data from journal where seq = 2 and run = (select min(run) from runs)").all();
  const damaged = Uint8Array.from(row!["data"] as Uint8Array);
  damaged[damaged.length - 1]! ^= 1;
  db.prepare("update journal set data = ? where seq = 2 and run = (select min(run) from runs)").run(damaged);

  await using engine = await createTestEngine({ store: `sqlite:${path}`, codec, definitions });
  await engine.get(everything, "a").resolve("word", "w");
  await engine.get(everything, "b").resolve("word", "w");
  expect(await engine.get(everything, "b").result()).toMatchObject({ back: "w" });
  const stopped = engine.get(everything, "a");
  await expect(stopped.result()).rejects.toMatchObject({
    code: "RUN_BLOCKED",
    details: { code: "PAYLOAD_UNREADABLE", where: "entry 2" },
  });
  await expect(stopped.verify()).rejects.toMatchObject({ code: "PAYLOAD_UNREADABLE" });
  await expect(Array.fromAsync(stopped.journal())).rejects.toMatchObject({ code: "PAYLOAD_UNREADABLE" });
  db.prepare("update journal set data = ? where seq = 2 and run = (select min(run) from runs)").run(
    row!["data"] as Uint8Array,
  );
  db.close();
  await stopped.resume();
  expect(await stopped.result()).toMatchObject({ back: "w" });
});

test("a message that cannot be read blocks the run it came for, and no other", async () => {
  using folder = createFolder();
  const path = folder.file("e.db");
  const definitions = [everything, child, echo] as const;
  await using engine = await createEngine({ store: `sqlite:${path}`, codec, definitions, logger: SILENT });
  const run = await engine.start(everything, "a");
  await expect.poll(async () => (await run.info()).status).toBe("waiting");
  const db = new DatabaseSync(path);
  // As a writer without the key would leave it in the inbox.
  db.exec(`begin immediate;
    update runs set arrivals = arrivals + 1, turn_due = 1 where run = (select min(run) from runs);
    insert into inbox (run, arrival, type, target, data)
      select run, arrivals, 'PromiseResolved', 'word', x'01ff00ff' from runs where run = (select min(run) from runs);
    commit`);
  db.close();
  await expect.poll(async () => (await run.info()).status).toBe("blocked");
  expect((await run.info()).error).toMatchObject({ details: { code: "PAYLOAD_UNREADABLE" } });
  expect(await (await engine.start(child, "x")).result()).toEqual({ text: "x" });
});

test("a task whose input this worker has no key for goes to one that has it", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("e.db")}`;
  const gate = createGate();
  const slow = task("slow", async (_ctx, text: string) => {
    await gate.wait();
    return text;
  });
  const both = workflow("both", async (ctx, text: string) =>
    Promise.all([ctx.task(slow, text), ctx.task(slow, `${text}!`)]),
  );
  const reported: string[] = [];
  const logger = { ...SILENT, error: (message: string) => void reported.push(message) };
  await using ignorant = await createEngine({ store, codec, definitions: [slow], logger });
  const wise = aesGcm({ keys: KEYS, current: "two" });
  await using engine = await createEngine({
    store,
    codec: wise,
    definitions: [both, slow],
    worker: { concurrency: 1 },
  });
  const run = await engine.start(both, "x");
  await gate.reached;
  await expect.poll(() => reported.length).toBeGreaterThan(0);
  expect(reported[0]).toContain("'two'");
  await ignorant.close();
  gate.open();
  expect(await run.result()).toEqual(["x", "x!"]);
});

test("keys are rotated while runs continue, and rekey removes the old one", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("e.db")}`;
  const definitions = [everything, child, echo] as const;
  const before = await createTestEngine({ store, codec, definitions });
  await before.start(everything, "a", { id: "a" });
  // Up to its promise: six entries and a chunk.
  await before.clock.advance("1 s");
  await before.close();
  const wise = aesGcm({ keys: KEYS, current: "two" });
  const during = await createEngine({ store, codec: wise, definitions });
  const { payloads, unreadable } = await rekey({ store, codec: wise });
  expect([payloads > 3, unreadable]).toEqual([true, 0]);
  await during.close();
  const after = aesGcm({ keys: { two: KEYS.two }, current: "two" });
  await using engine = await createEngine({ store, codec: after, definitions });
  const run = engine.get(everything, "a");
  await run.resolve("word", "w");
  expect(await run.result()).toMatchObject({ echoed: "a", back: "w" });
  expect((await run.verify()).status).toBe("same");
});

test("a store is refused to an engine without its codec, and a wrong codec option is named", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("e.db")}`;
  await (await createEngine({ store, codec, definitions: [child] })).close();
  await expect(createEngine({ store, definitions: [child] })).rejects.toMatchObject({ code: "PAYLOAD_KEY_MISSING" });
  for (const wrong of [null, "aes", { name: "x" }, { name: "", encode() {}, decode() {} }])
    await expect(createEngine({ store, definitions: [child], codec: wrong as never })).rejects.toMatchObject({
      code: "BAD_OPTIONS",
    });
  await expect(rekey({ store } as never)).rejects.toMatchObject({ code: "BAD_OPTIONS" });
});

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
