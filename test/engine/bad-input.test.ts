// Bad input: refused with its own code, in words that name what came, and nothing is written.

import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine, promise, task, workflow, RetryLaterError } from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { z } from "zod";
import { collect, createFolder, rejection, storeAround } from "./world.ts";

const echo = workflow("echo", async (_ctx, value: unknown) => value);
const strict = workflow(
  "strict",
  { input: z.object({ url: z.url(), count: z.number().int() }) },
  async (_ctx, input) => input.count,
);
const slowSchema = z.string().refine(async (text) => text !== "no", "said no");
const asks = workflow(
  "asks",
  { input: slowSchema, ports: { approval: promise(z.object({ ok: z.boolean() })), bare: promise() } },
  async (ctx) => ctx.promise("approval"),
);
const definitions = [echo, strict, asks] as const;

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}
const cyclic: Record<string, unknown> = { name: "loop" };
cyclic["self"] = cyclic;
class Money {
  readonly cents = 5;
}

/** [what, the value, the code, what the message must name] */
const PAYLOADS: readonly (readonly [what: string, value: unknown, code: string, names: string])[] = [
  ["a function", { callback: () => 1 }, "NOT_DATA", "callback"],
  ["a symbol", { id: Symbol("x") }, "NOT_DATA", "id"],
  ["a class instance", { price: new Money() }, "NOT_DATA", "Money"],
  ["a promise", { later: Promise.resolve(1) }, "NOT_DATA", "later"],
  ["a WeakMap", [new WeakMap()], "NOT_DATA", "0"],
  ["a getter", Object.defineProperty({}, "now", { get: () => 1, enumerable: true }), "NOT_DATA", "now"],
  ["a symbol key", { [Symbol("hidden")]: 1 }, "NOT_DATA", "hidden"],
  ["a cycle", cyclic, "NOT_DATA", "self"],
  ["10,000 levels", deep(10_000), "PAYLOAD_TOO_DEEP", "256"],
  ["300 levels", deep(300), "PAYLOAD_TOO_DEEP", "256"],
  ["a lone surrogate", { text: "\ud800" }, "BAD_PAYLOAD", "text"],
  ["a lone surrogate as key", { "\udc00": 1 }, "BAD_PAYLOAD", "surrogate"],
  ["a __proto__ key", JSON.parse('{"a":{"__proto__":{"admin":true}}}'), "BAD_PAYLOAD", "__proto__"],
  ["9 MB of text", "x".repeat(9 * 1024 * 1024), "PAYLOAD_TOO_LARGE", "8"],
  ["9 MB of bytes", new Uint8Array(9 * 1024 * 1024), "PAYLOAD_TOO_LARGE", "8"],
];

describe("one engine, many refusals", () => {
  const source = storeAround((_writes, apply) => apply());
  let engine: TestEngine<(typeof definitions)[number]>;
  beforeAll(async () => {
    engine = await createTestEngine({ definitions, store: source });
    await engine.start(asks, "yes", { id: "asking" });
    await engine.clock.advance(0);
  });
  afterAll(() => engine.close());

  /** Everything the store holds, counted. */
  async function census(): Promise<unknown> {
    const { runs, items } = await source.store.info();
    const journals = await Promise.all(
      (await source.store.listRuns({ limit: 1_000 })).map(async ({ run, head, arrivals, status }) => ({
        run,
        head,
        arrivals,
        status,
        inbox: (await source.store.readInbox(run, 0)).length,
      })),
    );
    return { runs, items, journals };
  }

  async function expectRefusal(call: () => unknown, code: string, names: string): Promise<void> {
    const before = await census();
    const error = await rejection((async () => call())());
    expect(error.code, error.message).toBe(code);
    expect(error.message).toContain(names);
    expect(await census()).toEqual(before);
  }

  test.each(PAYLOADS)("%s as the input of a run", (_what, value, code, names) =>
    expectRefusal(() => engine.start(echo, value), code, names),
  );

  test.each(PAYLOADS)("%s as the value of a promise without a schema", (_what, value, code, names) =>
    expectRefusal(() => engine.get(asks, "asking").resolve("bare", value as undefined), code, names),
  );

  const calls: readonly (readonly [what: string, call: () => unknown, code: string, names: string])[] = [
    [
      "an unknown definition",
      () => engine.start("unknown" as never, undefined as never),
      "UNKNOWN_DEFINITION",
      "unknown",
    ],
    [
      "a definition that is not one",
      () => engine.start({} as never, undefined as never),
      "UNKNOWN_DEFINITION",
      "object",
    ],
    ["no definition", () => engine.start(undefined as never, undefined as never), "UNKNOWN_DEFINITION", "undefined"],
    ["an empty id", () => engine.start(echo, 1, { id: "" }), "BAD_ID", "empty"],
    ["an id of 256 characters", () => engine.start(echo, 1, { id: "x".repeat(256) }), "BAD_ID", "256"],
    ["an id with a line break", () => engine.start(echo, 1, { id: "a\nb" }), "BAD_ID", "a\\nb"],
    ["an id with a lone surrogate", () => engine.start(echo, 1, { id: "\ud800" }), "BAD_ID", "surrogate"],
    ["an id that is a number", () => engine.start(echo, 1, { id: 7 as never }), "BAD_ID", "number"],
    ["a null id", () => engine.start(echo, 1, { id: null as never }), "BAD_ID", "null"],
    ["tags that are no list", () => engine.start(echo, 1, { tags: "red" as never }), "BAD_OPTIONS", "string"],
    ["an empty tag", () => engine.start(echo, 1, { tags: [""] }), "BAD_NAME", "tag"],
    ["a tag that is a number", () => engine.start(echo, 1, { tags: [5 as never] }), "BAD_NAME", "number"],
    ["half a priority", () => engine.start(echo, 1, { priority: 0.5 }), "BAD_OPTIONS", "0.5"],
    ["a priority of text", () => engine.start(echo, 1, { priority: "high" as never }), "BAD_OPTIONS", "high"],
    ["options that are no object", () => engine.start(echo, 1, "fast" as never), "BAD_OPTIONS", "string"],
    ["input that does not fit the schema", () => engine.start(strict, { url: "nope", count: 1.5 }), "BAD_INPUT", "url"],
    ["no input where the schema wants one", () => engine.start(strict, undefined as never), "BAD_INPUT", "strict"],
    ["input an asynchronous schema refuses", () => engine.start(asks, "no"), "BAD_INPUT", "said no"],
    [
      "a promise value that does not fit",
      () => engine.get(asks, "asking").resolve("approval", { ok: "yes" } as never),
      "BAD_INPUT",
      "ok",
    ],
    [
      "an unknown port",
      () => engine.get(asks, "asking").resolve("unknown" as never, 1 as never),
      "UNKNOWN_PORT",
      "unknown",
    ],
    [
      "a port of the prototype",
      () => engine.get(asks, "asking").resolve("toString" as never, 1 as never),
      "UNKNOWN_PORT",
      "toString",
    ],
    [
      "a port that is no text",
      () => engine.get(asks, "asking").reject(5 as never, new Error("x")),
      "BAD_NAME",
      "number",
    ],
    [
      "a run that does not exist",
      () => engine.get(asks, "unknown").resolve("approval", { ok: true }),
      "RUN_NOT_FOUND",
      "unknown",
    ],
    ["a bad id of a handle", () => engine.get(echo, ""), "BAD_ID", "empty"],
    ["find without an id", () => engine.find(undefined as never), "BAD_ID", "undefined"],
    [
      "a result timeout of text",
      () => engine.get(asks, "asking").result({ timeout: "soon" as never }),
      "BAD_DURATION",
      "soon",
    ],
    ["a negative result timeout", () => engine.get(asks, "asking").result({ timeout: -1 }), "BAD_DURATION", "-1"],
    [
      "a cancel reason that is a function",
      () => engine.get(asks, "asking").cancel((() => 1) as never),
      "BAD_OPTIONS",
      "function",
    ],
    ["an unknown status", () => collect(engine.list({ status: "lost" as never })), "BAD_OPTIONS", "lost"],
    ["a negative limit", () => collect(engine.list({ limit: -1 })), "BAD_OPTIONS", "-1"],
    ["half a limit", () => collect(engine.list({ limit: 1.5 })), "BAD_OPTIONS", "1.5"],
    ["a limit of text", () => collect(engine.list({ limit: "all" as never })), "BAD_OPTIONS", "all"],
    ["a list after an unknown run", () => collect(engine.list({ after: "unknown" })), "RUN_NOT_FOUND", "unknown"],
    ["resume of a run that waits", () => engine.get(asks, "asking").resume(), "USAGE", "waiting"],
    ["a grace of text", () => engine.drain({ grace: "soon" as never }), "BAD_DURATION", "soon"],
  ];
  test.each(calls)("%s", (_what, call, code, names) => expectRefusal(call, code, names));
});

describe("inside a workflow a refusal is a rejection the code can catch, and takes no number", () => {
  const work = task("work", { input: z.number() }, (_ctx, n) => n);
  const cases: readonly (readonly [what: string, ask: (ctx: any) => unknown, code: string, names: string])[] = [
    ["a task that is none", (ctx) => ctx.task({ name: "fake" }, 1), "UNKNOWN_TASK", "fake"],
    ["a task's input", (ctx) => ctx.task(work, "x"), "BAD_INPUT", "work"],
    ["a task's policy", (ctx) => ctx.task(work, 1, { retry: { maxAttempts: 0 } }), "BAD_POLICY", "maxAttempts"],
    [
      "a task's retryable",
      (ctx) => ctx.task(work, 1, { retry: { maxAttempts: 2, retryable: () => true } }),
      "BAD_POLICY",
      "retryable",
    ],
    ["a task's timeout", (ctx) => ctx.task(work, 1, { timeout: 0 }), "BAD_POLICY", "0"],
    ["an operation without a name", (ctx) => ctx.run("", () => 1), "BAD_NAME", "empty"],
    ["an operation without a function", (ctx) => ctx.run("x", 5), "BAD_OPTIONS", "function"],
    ["an operation's input", (ctx) => ctx.run("x", { f: () => 1 }, () => 1), "NOT_DATA", "f"],
    ["an operation's result", (ctx) => ctx.run("x", () => ({ f: () => 1 })), "NOT_DATA", "f"],
    ["an operation's duration", (ctx) => ctx.run("x", () => 1, { timeout: "long" }), "BAD_DURATION", "long"],
    ["an undeclared port", (ctx) => ctx.promise("unknown"), "UNKNOWN_PORT", "unknown"],
    ["a sleep of text", async (ctx) => ctx.sleep("a while"), "BAD_DURATION", "a while"],
    ["a sleep until never", async (ctx) => ctx.sleepUntil(new Date(Number.NaN)), "BAD_DURATION", "Invalid"],
    ["a child's input", async (ctx) => ctx.child(echo, () => 1), "NOT_DATA", "function"],
    ["a child's id", async (ctx) => ctx.child(echo, 1, { id: "" }), "BAD_ID", "empty"],
    ["a state's value", async (ctx) => ctx.state.set("x", Symbol("no")), "NOT_DATA", "symbol"],
    ["a state's key", async (ctx) => ctx.state.set("", 1), "BAD_NAME", "empty"],
  ];
  test.each(cases)("%s", async (_what, ask, code, names) => {
    const trying = workflow("trying", async (ctx) => {
      const refusal = await (async () => ask(ctx))().then(
        () => "not refused",
        (error: unknown) => ({ code: (error as { code?: string }).code, message: (error as Error).message }),
      );
      return { refusal, after: await ctx.task(work, 7) };
    });
    await using engine = await createTestEngine({ definitions: [trying, work, echo] });
    const run = await engine.start(trying);
    const output = (await run.result()) as { refusal: { code: string; message: string }; after: number };
    expect(output.refusal).toMatchObject({ code });
    expect(output.refusal.message).toContain(names);
    expect(output.after).toBe(7);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("an output that is not data fails the run", async () => {
    const bad = workflow("bad", async () => ({ f: () => 1 }));
    await using engine = await createTestEngine({ definitions: [bad] });
    const error = await rejection((await engine.start(bad)).result());
    expect(error).toMatchObject({ code: "RUN_FAILED", cause: { code: "NOT_DATA" } });
  });

  test.each([
    ["a string", "just text"],
    ["undefined", undefined],
    ["an object", { status: 500 }],
    ["a function", () => 1],
    ["an Error with a function in it", Object.assign(new Error("odd"), { retry: () => 1 })],
    [
      "an Error that is its own cause",
      (() => {
        const error = new Error("self");
        error.cause = error;
        return error;
      })(),
    ],
    ["an Error with a lone surrogate", new Error("\ud800")],
  ])("throwing %s ends the operation and the run, and is replayed the same", async (_what, thrown) => {
    const thrower = workflow("thrower", async (ctx) => {
      const caught = await ctx
        .run("throw", () => {
          throw thrown;
        })
        .catch((error: unknown) => error);
      if (!(caught instanceof Error)) return "not an Error";
      throw thrown;
    });
    await using engine = await createTestEngine({ definitions: [thrower] });
    const run = await engine.start(thrower);
    expect((await rejection(run.result())).code).toBe("RUN_FAILED");
    expect(await run.verify()).toMatchObject({ status: "same" });
  });
});

describe("definitions are refused when they are made", () => {
  const make =
    (...args: unknown[]) =>
    () =>
      (task as (...args: unknown[]) => unknown)(...args);
  const define =
    (...args: unknown[]) =>
    () =>
      (workflow as (...args: unknown[]) => unknown)(...args);
  const f = async () => 1;
  const cases: readonly (readonly [what: string, call: () => unknown, code: string, names: string])[] = [
    ["a task without a name", make("", f), "BAD_NAME", "empty"],
    ["a task without a function", make("t", {}), "BAD_OPTIONS", "function"],
    ["a task with maxAttempts 0", make("t", { retry: { maxAttempts: 0 } }, f), "BAD_POLICY", "maxAttempts"],
    ["a task with half an attempt", make("t", { retry: { maxAttempts: 1.5 } }, f), "BAD_POLICY", "1.5"],
    [
      "a task with a baseDelay of 0",
      make("t", { retry: { maxAttempts: 2, baseDelay: 0 } }, f),
      "BAD_POLICY",
      "baseDelay",
    ],
    [
      "a task with maxDelay below baseDelay",
      make("t", { retry: { maxAttempts: 2, baseDelay: 5, maxDelay: 4 } }, f),
      "BAD_POLICY",
      "maxDelay",
    ],
    [
      "a task with a delay of text",
      make("t", { retry: { maxAttempts: 2, baseDelay: "soon" } }, f),
      "BAD_POLICY",
      "soon",
    ],
    ["a task with a timeout of 0", make("t", { timeout: 0 }, f), "BAD_POLICY", "0"],
    ["a task with a negative timeout", make("t", { timeout: -1 }, f), "BAD_DURATION", "-1"],
    ["a task with half a priority", make("t", { priority: 0.5 }, f), "BAD_OPTIONS", "0.5"],
    ["a task with options of text", make("t", "fast", f), "BAD_OPTIONS", "string"],
    ["a task with a misspelt option", make("t", { retries: 3 }, f), "BAD_OPTIONS", '"retries"; expected cost, input'],
    ["a workflow with a misspelt option", define("w", { port: {} }, f), "BAD_OPTIONS", '"port"'],
    ["a workflow without a name", define("", f), "BAD_NAME", "empty"],
    ["a workflow without a function", define("w", {}), "BAD_OPTIONS", "function"],
    ["a workflow of version 0", define("w", { version: 0 }, f), "BAD_OPTIONS", "0"],
    ["a workflow with a port that is none", define("w", { ports: { x: 5 } }, f), "BAD_OPTIONS", "x"],
    ["a workflow with null as a port", define("w", { ports: { x: null } }, f), "BAD_OPTIONS", "x"],
    ["a workflow with an empty port name", define("w", { ports: { "": promise() } }, f), "BAD_NAME", "empty"],
    ["a workflow with an unknown determinism", define("w", { determinism: "loose" }, f), "BAD_OPTIONS", "loose"],
    ["a RetryLaterError of text", () => new RetryLaterError("later" as never), "BAD_DURATION", "later"],
  ];
  test.each(cases)("%s", async (_what, call, code, names) => {
    const error = await rejection((async () => call())());
    expect(error.code, error.message).toBe(code);
    expect(error.message).toContain(names);
  });
});

describe("createEngine refuses before it opens anything", () => {
  const folder = createFolder();
  afterAll(() => folder[Symbol.dispose]());
  const store = `sqlite:${folder.file("never.db")}`;
  const twin = workflow("echo", async () => 1);
  const cases: readonly (readonly [what: string, options: object, code: string, names: string])[] = [
    ["no definitions", { store }, "BAD_OPTIONS", "definitions"],
    ["definitions that are no list", { store, definitions: echo }, "BAD_OPTIONS", "definitions"],
    ["a function among the definitions", { store, definitions: [async () => 1] }, "UNKNOWN_DEFINITION", "function"],
    ["undefined among the definitions", { store, definitions: [echo, undefined] }, "UNKNOWN_DEFINITION", "undefined"],
    ["two definitions of one name", { store, definitions: [echo, twin] }, "DUPLICATE_DEFINITION", "echo"],
    ["a misspelt option", { store, definitions, workers: false }, "BAD_OPTIONS", '"workers"'],
    ["a misspelt setting", { store, definitions, worker: { concurency: 4 } }, "BAD_OPTIONS", '"concurency"'],
    ["worker: true", { store, definitions, worker: true }, "BAD_OPTIONS", "true"],
    ["concurrency 0", { store, definitions, worker: { concurrency: 0 } }, "BAD_OPTIONS", "0"],
    ["a lease of 1 ms", { store, definitions, worker: { lease: 1 } }, "BAD_OPTIONS", "1 ms"],
    ["a lease of text", { store, definitions, worker: { lease: "long" } }, "BAD_DURATION", "long"],
    ["no memory for runs", { store, definitions, worker: { memory: "64 KB" } }, "BAD_OPTIONS", "1 MiB or more"],
    ["memory without a unit that is known", { store, definitions, worker: { memory: "1 TB" } }, "BAD_OPTIONS", "1 TB"],
    ["a logger of an unknown level", { store, definitions, logger: "loud" }, "BAD_OPTIONS", "debug"],
    ["a logger without warn", { store, definitions, logger: { info() {}, error() {} } }, "BAD_OPTIONS", "warn"],
    ["an unknown durability", { store, definitions, durability: "maybe" }, "BAD_OPTIONS", "maybe"],
    ["no store", { definitions }, "BAD_STORE_URL", "undefined"],
    ["an empty store", { definitions, store: "" }, "BAD_STORE_URL", '""'],
    ["a path without a scheme", { definitions, store: "shop.db" }, "BAD_STORE_URL", "shop.db"],
    ["another database", { definitions, store: "oracle://x" }, "BAD_STORE_URL", "oracle"],
    ["a store without a path", { definitions, store: "sqlite:" }, "BAD_STORE_URL", "sqlite:"],
    ["a store with a NUL in its path", { definitions, store: "sqlite:a\0b" }, "BAD_STORE_URL", "sqlite:"],
    ["a store with a broken escape", { definitions, store: "sqlite:///%E0%A4%A" }, "BAD_STORE_URL", "%E0%A4%A"],
    ["a store that is a number", { definitions, store: 5 }, "BAD_STORE_URL", "number"],
  ];
  test.each(cases)("%s", async (_what, options, code, names) => {
    const error = await rejection(createEngine(options as never));
    expect(error.code, error.message).toBe(code);
    expect(error.message).toContain(names);
    expect(readdirSync(folder.path)).toEqual([]);
  });
});

describe("a file that is not ours is refused and left as it is", () => {
  async function expectLeftAlone(path: string, code: string, names: string, next: string): Promise<void> {
    const before = readFileSync(path);
    const error = await rejection(createEngine({ store: `sqlite:${path}`, definitions }));
    expect(error.code, error.message).toBe(code);
    expect(error.message).toContain(names);
    expect(error.message).toContain(next);
    expect(readFileSync(path).equals(before)).toBe(true);
  }

  test("text", async () => {
    using folder = createFolder();
    const path = folder.file("notes.txt");
    writeFileSync(path, "Dear diary, ".repeat(100));
    await expectLeftAlone(path, "STORE_CORRUPT", "notes.txt", "");
  });

  test("another program's SQLite file", async () => {
    using folder = createFolder();
    const path = folder.file("other.db");
    const db = new DatabaseSync(path);
    db.exec("create table notes (text text); insert into notes values ('mine')");
    db.close();
    await expectLeftAlone(path, "STORE_NOT_REPRISE", "other.db", "");
  });

  test("a newer schema", async () => {
    using folder = createFolder();
    const path = folder.file("newer.db");
    await (await createEngine({ store: sqlite(path), definitions })).close();
    const db = new DatabaseSync(path);
    db.exec("pragma user_version = 999");
    db.close();
    await expectLeftAlone(path, "STORE_NEWER_SCHEMA", "999", "Upgrade Reprise");
  });

  test("a damaged file of ours", async () => {
    using folder = createFolder();
    const path = folder.file("damaged.db");
    await (await createEngine({ store: sqlite(path), definitions })).close();
    const bytes = readFileSync(path);
    bytes.fill(0xff, 100, 4_096);
    writeFileSync(path, bytes);
    await expectLeftAlone(path, "STORE_CORRUPT", "damaged.db", "reprise doctor");
  });

  test("a directory", async () => {
    using folder = createFolder();
    mkdirSync(folder.file("directory"));
    const error = await rejection(createEngine({ store: `sqlite:${folder.file("directory")}`, definitions }));
    expect(error.code, error.message).toBe("STORE_IO");
    expect(error.message).toContain("directory");
    expect(readdirSync(folder.file("directory"))).toEqual([]);
  });

  test("a folder that cannot be made", async () => {
    using folder = createFolder();
    writeFileSync(folder.file("file"), "");
    const error = await rejection(createEngine({ store: `sqlite:${folder.file("file/inside.db")}`, definitions }));
    expect(error.code, error.message).toBe("STORE_IO");
    expect(error.message).toContain("inside.db");
  });

  // skipped: root may read everything
  test.skipIf(process.getuid?.() === 0)("a file that may not be read", async () => {
    using folder = createFolder();
    const path = folder.file("secret.db");
    writeFileSync(path, "");
    chmodSync(path, 0);
    expect((await rejection(createEngine({ store: `sqlite:${path}`, definitions }))).code).toBe("STORE_IO");
  });
});

test("a misspelt option of ctx, and of a retry policy, is refused where it is written", async () => {
  const other = workflow("other", async () => 1);
  const careless = workflow("careless", { ports: { p: promise() } }, async (anyCtx) => {
    const ctx = anyCtx as unknown as Record<
      "task" | "run" | "child" | "promise",
      (...args: unknown[]) => Promise<unknown>
    >;
    const retry = { maxAttempts: 2, baseDelayMs: 5 };
    const calls = [
      () => ctx.task(ok, undefined, { retries: 3 }),
      () => ctx.task(ok, undefined, { retry }),
      () => ctx.run("x", () => 1, { timeOut: 5 }),
      () => ctx.run("x", () => 1, { retry }),
      () => ctx.child(other, undefined, { ID: "x" }),
      () => ctx.promise("p", { timeOut: 5 }),
    ];
    const said: unknown[] = [];
    for (const call of calls)
      try {
        await call();
        said.push("accepted");
      } catch (error) {
        said.push((error as { code?: string }).code);
      }
    return said;
  });
  const ok = task("ok", () => 1);
  await using engine = await createTestEngine({ definitions: [careless, other, ok] });
  const run = await engine.start(careless);
  expect(await run.result()).toEqual(Array.from({ length: 6 }, () => "BAD_OPTIONS"));
  expect((await run.info()).entries).toBe(2);
});
