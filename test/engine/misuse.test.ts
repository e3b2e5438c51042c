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
  const nobody = (): ReturnType<typeof engine.get<typeof cart>> => engine.get(cart, "nobody");
  const first = (stream: AsyncIterable<unknown>): Promise<unknown> => stream[Symbol.asyncIterator]().next();

  const rows: readonly Row[] = [
    // messages
    [
      "a signal to an unknown run without beforeStart",
      () => nobody().signal("add", { sku: "a" }),
      "RUN_NOT_FOUND",
      "nobody",
      "Start it first",
    ],
    [
      "a promise of an unknown run without beforeStart",
      () => nobody().resolve("approval", { ok: true }),
      "RUN_NOT_FOUND",
      "nobody",
      "Start it first",
    ],
    ["a query to an unknown run", () => nobody().query("total"), "RUN_NOT_FOUND", "nobody", "Start it first"],
    ["an update to an unknown run", () => nobody().update("rename", "x"), "RUN_NOT_FOUND", "nobody", "Start it first"],
    [
      "a promise resolved twice",
      () => engine.get(cart, "settled").resolve("approval", { ok: false }),
      "PROMISE_ALREADY_RESOLVED",
      "approval",
      "the first one is kept",
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
      "a signal nobody declared",
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
    ["a query nobody answers", () => waiting().query("total"), "NO_QUERY_HANDLER", "total", "ctx.onQuery"],
    ["a stream nobody declared", () => first(waiting().stream("tokens" as never)), "UNKNOWN_PORT", "tokens", "ports"],
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
    ["pause of an unknown run", () => nobody().pause(), "RUN_NOT_FOUND", "nobody", ""],
    ["retry of a run that did not fail", () => ended().retry(), "USAGE", "completed", "only a failed run"],
    ["retry of a run that goes on", () => waiting().retry(), "USAGE", "waiting", "only a failed run"],
    ["a bulk action nobody knows", () => engine.bulk("delete" as never, {}), "BAD_OPTIONS", "delete", "cancel"],
    ["a queue nobody declared", () => engine.getQueue("letters").pause(), "QUEUE_NOT_FOUND", "letters", ""],
    // schedules
    [
      "a schedule with an impossible cron",
      () => engine.schedule("leap", other, undefined, { cron: "0 0 30 2 *" }),
      "BAD_SCHEDULE",
      "0 0 30 2 *",
      "look at its day and month",
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
  test.each(rows)("%s", async (_what, call, code, says, next) => {
    const before = everything(path);
    const error = await rejection((async () => call())());
    expect(error.code, error.message).toBe(code);
    expect(error.message).toContain(says);
    expect(error.message).toContain(next);
    expect(everything(path)).toEqual(before);
  });
});

describe("a store that cannot be used", () => {
  test("a file somebody else has locked is given up on with STORE_BUSY, and is as it was", async () => {
    using folder = createFolder();
    const path = folder.file("locked.db");
    await (await createEngine({ store: sqlite(path), definitions })).close();
    const before = everything(path);
    const holder = new DatabaseSync(path);
    holder.exec("begin exclusive");
    try {
      const error = await rejection(createEngine({ store: sqlite(path), definitions }));
      expect(error.code, error.message).toBe("STORE_BUSY");
      expect(error.message).toContain("Look for a stopped process");
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
