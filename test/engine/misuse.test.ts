// Misuse, as people really do it: each is refused with its code, words that name what came, the next step to take, and
// nothing is written. "Nothing" is every row of every table, read by another connection.

import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine, promise, query, queue, signal, stream, task, update, workflow } from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { z } from "zod";
import { createFolder, rejection } from "./world.ts";

const parcels = queue("parcels", { concurrency: 2 });
const pack = task("pack", { queue: parcels }, (_ctx, sku: string) => `packed ${sku}`);
const ports = {
  add: signal(z.object({ sku: z.string() })),
  approval: promise<{ ok: boolean }>(),
  total: query<number>(),
  rename: update<string, string>(),
  progress: stream<string>(),
};
/** Waits for its approval, and answers nothing meanwhile. */
const cart = workflow("cart", { ports }, async (ctx, who: string) => {
  const approval = await ctx.promise("approval");
  if (approval.ok) await ctx.task(pack, who);
  return who;
});
const other = workflow("other", async () => "other");
const definitions = [cart, other, pack] as const;

/** Every row of every table, but for clocks and leases. */
function everything(path: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const tables = db.prepare("select name from sqlite_schema where type = 'table' order by name").all();
    return tables
      .map(({ name }) => String(name))
      .filter((name) => !["writers", "workers", "sqlite_sequence"].includes(name))
      .map((name) => [
        name,
        db
          .prepare(`select * from "${name}"`)
          .all()
          .map((row) => ({ ...row })),
      ]);
  } finally {
    db.close();
  }
}

type Row = readonly [what: string, call: () => unknown, code: string, says: string, next: string];

describe("against a store in use", () => {
  const folder = createFolder();
  const path = folder.file("shop.db");
  let engine: TestEngine<typeof cart | typeof other>;
  beforeAll(async () => {
    engine = await createTestEngine({ definitions, store: sqlite(path) });
    await engine.start(cart, "ann", { id: "waiting" });
    const settled = await engine.start(cart, "bob", { id: "settled" });
    await settled.resolve("approval", { ok: true });
    await engine.getQueue(parcels).pause();
    const ended = await engine.start(cart, "eve", { id: "ended" });
    await ended.resolve("approval", { ok: false });
    await engine.clock.advance(0);
    await engine.schedule("nightly", other, undefined, { cron: "0 3 * * *" });
  });
  afterAll(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  const waiting = (): ReturnType<typeof engine.get<typeof cart>> => engine.get(cart, "waiting");
  const ended = (): ReturnType<typeof engine.get<typeof cart>> => engine.get(cart, "ended");
  const unknown = (): ReturnType<typeof engine.get<typeof cart>> => engine.get(cart, "unknown");
  const first = (stream: AsyncIterable<unknown>): Promise<unknown> => stream[Symbol.asyncIterator]().next();

  const rows: readonly Row[] = [
    // messages
    [
      "a signal to an unknown run without beforeStart",
      () => unknown().signal("add", { sku: "a" }),
      "RUN_NOT_FOUND",
      "unknown",
      "Start it first",
    ],
    [
      "a promise of an unknown run without beforeStart",
      () => unknown().resolve("approval", { ok: true }),
      "RUN_NOT_FOUND",
      "unknown",
      "Start it first",
    ],
    ["a query to an unknown run", () => unknown().query("total"), "RUN_NOT_FOUND", "unknown", "Start it first"],
    [
      "an update to an unknown run",
      () => unknown().update("rename", "x"),
      "RUN_NOT_FOUND",
      "unknown",
      "Start it first",
    ],
    [
      "a promise resolved twice",
      () => engine.get(cart, "settled").resolve("approval", { ok: false }),
      "PROMISE_ALREADY_RESOLVED",
      "approval",
      "the first value is kept",
    ],
    ["a promise of an ended run", () => ended().resolve("approval", { ok: true }), "RUN_ENDED", "completed", "no more"],
    ["a signal to an ended run", () => ended().signal("add", { sku: "a" }), "RUN_ENDED", "completed", "no more"],
    ["an update to an ended run", () => ended().update("rename", "x"), "RUN_ENDED", "ended", ""],
    [
      "a signal that does not fit its schema",
      () => waiting().signal("add", { sku: 7 } as never),
      "BAD_INPUT",
      "sku",
      "schema",
    ],
    [
      "an undeclared signal",
      () => waiting().signal("remove" as never, 1 as never),
      "UNKNOWN_PORT",
      "remove",
      "its ports are: add",
    ],
    [
      "a promise sent as a signal",
      () => waiting().signal("approval" as never, 1 as never),
      "UNKNOWN_PORT",
      "approval",
      "ports",
    ],
    ["a query without a handler", () => waiting().query("total"), "NO_QUERY_HANDLER", "total", "ctx.onQuery"],
    ["an undeclared stream", () => first(waiting().stream("tokens" as never)), "UNKNOWN_PORT", "tokens", "ports"],
    [
      "a stream from a negative offset",
      () => first(waiting().stream("progress", { after: -1 })),
      "BAD_OPTIONS",
      "-1",
      "offset",
    ],
    [
      "a payload over the limit",
      () => waiting().signal("add", { sku: "x".repeat(9 * 1024 * 1024) }),
      "PAYLOAD_TOO_LARGE",
      "8388608",
      "reference",
    ],
    // starting
    [
      "an unknown definition",
      () => engine.start("kart" as never, undefined as never),
      "UNKNOWN_DEFINITION",
      "kart",
      "Add it to `definitions`",
    ],
    [
      "a start under an id that is taken",
      () => engine.start(cart, "zoe", { id: "waiting" }),
      "START_CONFLICT",
      "waiting",
      "Use another id",
    ],
    [
      "a handle of another definition",
      () => engine.get(other, "waiting").info(),
      "UNKNOWN_DEFINITION",
      "cart",
      "engine.get",
    ],
    ["a delay of text", () => engine.start(other, undefined, { delay: "soon" as never }), "BAD_DURATION", "soon", ""],
    [
      "an id together with a debounce",
      () => engine.start(other, undefined, { id: "x", debounce: { key: "k", by: "1s" } }),
      "BAD_OPTIONS",
      "debounce",
      "",
    ],
    [
      "signals to a port that is none",
      () => engine.start(cart, "zoe", { id: "new", signals: { remove: 1 } as never }),
      "UNKNOWN_PORT",
      "remove",
      "its ports are",
    ],
    // control
    ["resume of a run that is not stopped", () => waiting().resume(), "USAGE", "waiting", "only a"],
    ["pause of an ended run", () => ended().pause(), "RUN_ENDED", "completed", ""],
    ["pause of an unknown run", () => unknown().pause(), "RUN_NOT_FOUND", "unknown", ""],
    ["retry of a run that did not fail", () => ended().retry(), "USAGE", "completed", "only a failed run"],
    ["retry of a live run", () => waiting().retry(), "USAGE", "waiting", "only a failed run"],
    ["an unknown bulk action", () => engine.bulk("delete" as never, {}), "BAD_OPTIONS", "delete", "cancel"],
    ["an undeclared queue", () => engine.getQueue("letters").pause(), "QUEUE_NOT_FOUND", "letters", ""],
    // schedules
    [
      "a schedule with an impossible cron",
      () => engine.schedule("leap", other, undefined, { cron: "0 0 30 2 *" }),
      "BAD_SCHEDULE",
      "0 0 30 2 *",
      "check its day and month",
    ],
    [
      "a schedule with a broken cron",
      () => engine.schedule("broken", other, undefined, { cron: "every day" }),
      "BAD_SCHEDULE",
      "every day",
      "fields",
    ],
    [
      "a schedule in no time zone",
      () => engine.schedule("moon", other, undefined, { cron: "0 9 * * *", timeZone: "Moon/Tycho" }),
      "BAD_SCHEDULE",
      "Moon/Tycho",
      "Europe/Berlin",
    ],
    [
      "a schedule without a time",
      () => engine.schedule("never", other, undefined, {}),
      "BAD_SCHEDULE",
      "cron",
      "every",
    ],
    [
      "a schedule of an unknown definition",
      () => engine.schedule("kart", "kart" as never, undefined, { every: "1h" }),
      "UNKNOWN_DEFINITION",
      "kart",
      "definitions",
    ],
  ];
  test.each(rows)("%s", async (_what, call, code, part, next) => {
    const before = everything(path);
    const error = await rejection((async () => call())());
    expect(error.code, error.message).toBe(code);
    expect(error.message).toContain(part);
    expect(error.message).toContain(next);
    expect(everything(path)).toEqual(before);
  });
});

describe("a store that cannot be used", () => {
  test("a file that another process keeps locked fails with STORE_BUSY and stays unchanged", async () => {
    using folder = createFolder();
    const path = folder.file("locked.db");
    await (await createEngine({ store: sqlite(path), definitions })).close();
    const before = everything(path);
    const holder = new DatabaseSync(path);
    holder.exec("begin exclusive");
    try {
      const error = await rejection(createEngine({ store: sqlite(path), definitions }));
      expect(error.code, error.message).toBe("STORE_BUSY");
      expect(error.message).toContain("Find the process with an open transaction");
    } finally {
      holder.exec("rollback");
      holder.close();
    }
    expect(everything(path)).toEqual(before);
  });

  test("a wrong store URL is refused before a file is made", async () => {
    const error = await rejection(createEngine({ store: "postgress://x", definitions }));
    expect([error.code, error.message.includes("postgress")]).toEqual(["BAD_STORE_URL", true]);
    expect(error.message).toContain("sqlite:");
  });
});
