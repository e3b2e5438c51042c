// ctx.tx: user SQL in the transaction that appends its entry.

import { DatabaseSync } from "node:sqlite";
import { createEngine, FatalError, promise, RetryLaterError, stream, workflow, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { crashEverywhere, createTestEngine, stub } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, rejection, type AnyStore } from "./world.ts";

type Handle = Pick<DatabaseSync, "prepare" | "exec">;

const TABLE = "create table if not exists accounts (name text primary key, cents integer not null check (cents >= 0))";

function balance(db: Handle, name: string): number {
  return Number(db.prepare("select cents from accounts where name = ?").get(name)?.["cents"] ?? 0);
}

function add(db: Handle, name: string, cents: number): number {
  db.prepare("insert into accounts values (?, 0) on conflict do nothing").run(name);
  db.prepare("update accounts set cents = cents + ? where name = ?").run(cents, name);
  return balance(db, name);
}

const pay = workflow("pay", async (ctx, cents: number) => {
  await ctx.tx("create", sqlite, (db) => db.exec(TABLE));
  const first = await ctx.tx("add", sqlite, (db) => add(db, "ann", cents));
  await ctx.run("between", () => "between");
  const second = await ctx.tx("add again", sqlite, (db) => add(db, "ann", cents));
  return [first, second];
});

test("user SQL is committed with its entry, in order, and its result is journaled", async () => {
  using folder = createFolder();
  const path = folder.file("store.db");
  await using engine = await createTestEngine({ definitions: [pay], store: sqlite(path) });
  const run = await engine.start(pay, 5);
  expect(await run.result()).toEqual([5, 10]);
  const operations = (await collect(run.journal())).filter(({ type }) => type === "OperationCompleted");
  expect(operations.map(({ command, data }) => [command, (data as { operationName: string }).operationName])).toEqual([
    ["Operation(0)", "create"],
    ["Operation(1)", "add"],
    ["Operation(2)", "between"],
    ["Operation(3)", "add again"],
  ]);
  expect((await run.verify()).status).toBe("same");
  using db = new DatabaseSync(path);
  expect(balance(db, "ann")).toBe(10);
});

test("user SQL takes effect exactly once after a crash at every commit", async () => {
  const transfers = workflow("transfers", async (ctx) => {
    await ctx.tx("create", sqlite, (db) => db.exec(TABLE));
    await ctx.tx("open", sqlite, (db) => add(db, "ann", 100));
    await Promise.all(
      [1, 2, 3].map(async (n) => {
        await ctx.run(`before ${n}`, () => n);
        await ctx.tx(`move ${n}`, sqlite, (db) => {
          add(db, "ann", -n);
          add(db, "bob", n);
        });
      }),
    );
    await ctx.sleep("1 hour");
    return ctx.tx("read", sqlite, (db) => [balance(db, "ann"), balance(db, "bob")]);
  });
  const { output, crashes } = await crashEverywhere(transfers, undefined);
  expect(output).toEqual([94, 6]);
  expect(crashes).toBeGreaterThan(15);
});

test("a function that throws rolls its SQL back and fails the transaction", async () => {
  const overdraw = workflow("overdraw", async (ctx) => {
    await ctx.tx("create", sqlite, (db) => db.exec(TABLE));
    const failures = [];
    for (const fail of [
      (db: Handle) => add(db, "ann", -1),
      (db: Handle) => {
        add(db, "ann", 7);
        throw new FatalError("no");
      },
    ])
      failures.push(await ctx.tx("fails", sqlite, fail).catch((error: Error) => error.message));
    return { failures, left: await ctx.tx("read", sqlite, (db) => balance(db, "ann")) };
  });
  await using engine = await createTestEngine({ definitions: [overdraw] });
  const run = await engine.start(overdraw);
  expect(await run.result()).toEqual({
    failures: [expect.stringContaining("CHECK constraint failed"), "no"],
    left: 0,
  });
  expect((await run.verify()).status).toBe("same");
});

test("a transaction that throws RetryLaterError is rolled back and repeated", async () => {
  let calls = 0;
  const later = workflow("later", async (ctx) => {
    await ctx.tx("create", sqlite, (db) => db.exec(TABLE));
    return ctx.tx("add", sqlite, (db) => {
      add(db, "ann", 1);
      calls += 1;
      if (calls < 3) throw new RetryLaterError("1 minute");
      return balance(db, "ann");
    });
  });
  await using engine = await createTestEngine({ definitions: [later] });
  const run = await engine.start(later);
  await engine.clock.advance("1 minute");
  await engine.crash();
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe(1);
  expect(calls).toBe(3);
});

test("a deferred constraint that fails at COMMIT fails the transaction, and the run continues", async () => {
  const orphan = workflow("orphan", async (ctx) => {
    await ctx.tx("create", sqlite, (db) =>
      db.exec(`create table parents (id integer primary key);
        create table children (id integer primary key, parent integer references parents deferrable initially deferred)`),
    );
    const outcome = await ctx
      .tx("orphan", sqlite, (db) => db.exec("insert into children values (1, 99)"))
      .catch((error: Error) => error.message);
    const left = await ctx.tx("count", sqlite, (db) =>
      Number(db.prepare("select count(*) as n from children").get()?.["n"]),
    );
    return { outcome, left };
  });
  await using engine = await createTestEngine({ definitions: [orphan] });
  const run = await engine.start(orphan);
  expect(await run.result()).toEqual({ outcome: expect.stringContaining("FOREIGN KEY"), left: 0 });
  expect((await run.verify()).status).toBe("same");
});

test("a worker that lost its lease commits neither its entry nor its SQL", async () => {
  using folder = createFolder();
  const path = folder.file("store.db");
  let steal: ((store: AnyStore) => Promise<void>) | undefined;
  const source: StoreSource = {
    async "~open"(options) {
      const store = await sqlite(path)["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key, target);
          if (typeof value !== "function") return value;
          if (key !== "transact") return value.bind(target) as unknown;
          return async (...args: Parameters<AnyStore["transact"]>) => {
            await steal?.(target);
            steal = undefined;
            return target.transact(...args);
          };
        },
      });
    },
  };
  let calls = 0;
  const once = workflow("once", { ports: { go: promise() } }, async (ctx) => {
    await ctx.promise("go");
    return ctx.tx("add", sqlite, (db) => {
      calls += 1;
      return add(db, "ann", 1);
    });
  });
  await using engine = await createTestEngine({ definitions: [once], store: source });
  {
    using db = new DatabaseSync(path);
    db.exec(TABLE);
  }
  const run = await engine.start(once);
  steal = async (store) => {
    const record = (await store.findRun(run.id))!;
    const [pulse] = await store.readProgress([record.run]);
    await store.write([{ write: "return-turn", run: record.run, token: pulse!.token! }]);
  };
  await run.resolve("go");
  expect(await run.result()).toBe(1);
  expect(calls).toBe(2);
  expect((await collect(run.journal())).filter(({ type }) => type === "OperationCompleted").length).toBe(1);
});

test("a transaction whose COMMIT did not happen is repeated", async () => {
  let unsettled = true;
  const source: StoreSource = {
    async "~open"(options) {
      const store = await sqlite(":memory:")["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key, target);
          if (typeof value !== "function") return value;
          if (key !== "transact") return value.bind(target) as unknown;
          // Like a store whose first COMMIT failed: it calls the function and asks for the write again.
          return (...[call, write]: Parameters<AnyStore["transact"]>) =>
            target.transact(call, (result) => {
              const first = write(result);
              if (!unsettled) return first;
              unsettled = false;
              return write(result);
            });
        },
      });
    },
  };
  await using engine = await createTestEngine({ definitions: [pay], store: source });
  const run = await engine.start(pay, 5);
  expect(await run.result()).toEqual([5, 10]);
  expect((await run.verify()).status).toBe("same");
});

test("two processes on one file each take effect exactly once", { timeout: 30_000 }, async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  const deposit = workflow("deposit", async (ctx, to: string) => {
    await ctx.run("look", () => to);
    await ctx.tx("add", sqlite, (db) => add(db, to, 1));
    await ctx.tx("add", sqlite, (db) => add(db, to, 1));
  });
  await using one = await createEngine({ store, definitions: [deposit] });
  {
    using db = new DatabaseSync(folder.file("store.db"));
    db.exec(TABLE);
  }
  await using two = await createEngine({ store, definitions: [deposit] });
  const engines = [one, two];
  const runs = await Promise.all(
    Array.from({ length: 40 }, (_, n) => engines[n % 2]!.start(deposit, n % 3 === 0 ? "ann" : "bob")),
  );
  await Promise.all(runs.map((run) => run.result()));
  using db = new DatabaseSync(folder.file("store.db"));
  expect([balance(db, "ann"), balance(db, "bob")]).toEqual([28, 52]);
});

test("a cancelled run does not repeat its transaction", async () => {
  let calls = 0;
  const patient = workflow("patient", async (ctx) => {
    await ctx.tx("later", sqlite, () => {
      calls += 1;
      throw new RetryLaterError("1 minute");
    });
  });
  await using engine = await createTestEngine({ definitions: [patient] });
  const run = await engine.start(patient);
  await engine.clock.advance("90 s");
  await run.cancel("enough");
  await engine.clock.advance("1 hour");
  expect((await rejection(run.result())).code).toBe("CANCELLED");
  expect(calls).toBe(2);
});

test("a handle and its statements are invalid after the function has ended, also when it returned a promise", async () => {
  let kept: { db: Handle; insert: ReturnType<Handle["prepare"]> } | undefined;
  const leak = workflow("leak", async (ctx) => {
    await ctx.tx("create", sqlite, (db) => db.exec(TABLE));
    await ctx.tx("keep", sqlite, (db) => {
      kept = { db, insert: db.prepare("insert into accounts values ('eve', 1)") };
    });
    const outcome = await ctx
      .tx("async", sqlite, (async (db: Handle) => {
        add(db, "ann", 1);
        await Promise.resolve();
        add(db, "ann", 1);
      }) as never)
      .catch((error: Error) => error.message);
    return { outcome, left: await ctx.tx("read", sqlite, (db) => balance(db, "ann") + balance(db, "eve")) };
  });
  await using engine = await createTestEngine({ definitions: [leak] });
  const run = await engine.start(leak);
  expect(await run.result()).toEqual({ outcome: expect.stringContaining("returned a promise"), left: 0 });
  expect(() => kept?.insert.run()).toThrow(/after the function of its ctx.tx had returned/);
  expect(() => kept?.db.exec("select 1")).toThrow(/after the function of its ctx.tx had returned/);
});

test.each<[string, (db: Handle, ctx: any) => unknown, string]>([
  ["begins", (db) => db.exec("begin"), "transaction"],
  ["commits", (db) => db.exec("commit"), "transaction"],
  ["rolls back", (db) => db.prepare("rollback").run(), "transaction"],
  ["sets a pragma", (db) => db.exec("pragma synchronous = off"), "pragma"],
  ["attaches", (db) => db.exec("attach ':memory:' as other"), "attaches"],
  ["makes a temporary table", (db) => db.exec("create temp table runs (a)"), "temporary"],
  ["writes the journal", (db) => db.exec("delete from journal"), "journal"],
  ["reads the runs", (db) => db.prepare("select id from RUNS").all(), "runs"],
  ["drops a table of the engine", (db) => db.exec("drop table inbox"), "inbox"],
  [
    "hangs a trigger on the journal",
    (db) => db.exec("create trigger t after insert on journal begin select 1; end"),
    "journal",
  ],
  ["uses a table name of the engine", (db) => db.exec("create table if not exists queue (a)"), "queue"],
  [
    "reaches our tables through a trigger of its own",
    (db) => {
      db.exec("create table mine (a); create trigger t after insert on mine begin delete from runs; end");
      db.exec("insert into mine values (1)");
    },
    "runs",
  ],
  ["uses ctx", (_db, ctx) => ctx.state.set("a", 1), "The function of step `wrong` used the ctx of its workflow"],
  ["waits for ctx", (_db, ctx) => ctx.run("inner", () => 1), "returned a promise"],
  ["returns what is not data", () => () => 1, "The result of transaction wrong"],
  [
    "continues after `or rollback`",
    (db) => {
      db.exec("create table mine (a primary key); insert into mine values (1)");
      try {
        db.exec("insert or rollback into mine values (1)");
      } catch {}
      db.exec("create table other (a)");
    },
    "ended the transaction of ctx.tx",
  ],
  [
    "hides an `or rollback`",
    (db) => {
      db.exec("create table mine (a primary key); insert into mine values (1)");
      try {
        db.exec("insert or rollback into mine values (1)");
      } catch {}
    },
    "ended the transaction of ctx.tx",
  ],
])("a function that %s is refused, and its SQL is rolled back", async (_what, act, text) => {
  const wrong = workflow("wrong", async (ctx) => {
    const outcome = await ctx
      .tx("wrong", sqlite, (db) => act(db, ctx) as string)
      .then(
        () => "nothing",
        (error: Error) => error.message,
      );
    const tables = await ctx.tx("tables", sqlite, (db) =>
      db.prepare("select count(*) as n from sqlite_schema where name in ('mine', 'other', 't')").get(),
    );
    return { outcome, left: tables?.["n"] };
  });
  await using engine = await createTestEngine({ definitions: [wrong] });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual({ outcome: expect.stringContaining(text), left: 0 });
  expect((await run.verify()).status).toBe("same");
});

test("a function may use savepoints, cursors, indexes and full text search, and see its own rows", async () => {
  const rich = workflow("rich", { ports: { words: stream<string>() } }, async (ctx) => {
    await ctx.tx("schema", sqlite, (db) =>
      db.exec(`create table notes (id integer primary key, queue text); create index notes_by on notes (queue);
        create virtual table search using fts5 (body)`),
    );
    const seen = await ctx.tx("fill", sqlite, (db) => {
      db.exec(
        "insert into notes values (1, 'a'); savepoint s; insert into notes values (2, 'b'); rollback to s; release s",
      );
      db.exec("insert into search values ('hello world')");
      const rows = [...db.prepare("select queue from notes").iterate()].map((row) => String(row["queue"]));
      const found = db.prepare("select count(*) as n from search where search match 'hello'").get()?.["n"];
      return { rows, found: Number(found) };
    });
    ctx.emit("words", "after");
    await ctx.sleep(5);
    return seen;
  });
  await using engine = await createTestEngine({ definitions: [rich] });
  const run = await engine.start(rich);
  await engine.clock.advance(5);
  expect(await run.result()).toEqual({ rows: ["a"], found: 1 });
});

test("a wrong database, no function and an empty name are refused before anything is written", async () => {
  const wrong = workflow("wrong", async (ctx) => {
    const tx = ctx.tx as (...args: unknown[]) => Promise<unknown>;
    const outcome = [];
    for (const args of [
      ["a", { "~kind": "postgres" }, () => 1],
      ["a", "sqlite", () => 1],
      ["a", sqlite],
      ["", sqlite, () => 1],
    ])
      outcome.push(await tx(...args).catch((error: { code: string }) => error.code));
    return outcome;
  });
  await using engine = await createTestEngine({ definitions: [wrong] });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual(["USAGE", "BAD_OPTIONS", "BAD_OPTIONS", "BAD_NAME"]);
  expect((await collect(run.journal())).map(({ type }) => type)).toEqual(["RunStarted", "RunCompleted"]);
});

test("a stub replaces a transaction", async () => {
  await using engine = await createTestEngine({
    definitions: [pay],
    stubs: [stub("create", () => undefined), stub("add", () => 1), stub("add again", () => 2)],
  });
  expect(await (await engine.start(pay, 5)).result()).toEqual([1, 2]);
});
