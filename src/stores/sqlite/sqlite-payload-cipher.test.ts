import { DatabaseSync } from "node:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  aesGcm,
  decode,
  systemClock,
  systemRandom,
  systemTimers,
  type PayloadCodec,
  type RepriseError,
} from "../../base/index.ts";
import type { Store } from "../../kernel/index.ts";
import { PAYLOADS } from "../rows/tables.ts";
import { MIGRATIONS } from "./schema.ts";
import { openSqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";

const ONE = aesGcm({ keys: { one: Buffer.alloc(32, 1) }, current: "one" });
const BOTH = aesGcm({ keys: { one: Buffer.alloc(32, 1), two: Buffer.alloc(32, 2) }, current: "two" });
const TWO = aesGcm({ keys: { two: Buffer.alloc(32, 2) }, current: "two" });
const WRONG = aesGcm({ keys: { one: Buffer.alloc(32, 9) }, current: "one" });

interface File {
  readonly path: string;
  open(codec?: PayloadCodec, more?: Partial<SqliteStoreOptions>): Promise<Store>;
  sql<T>(text: string): T[];
  [Symbol.dispose](): void;
}

function createFile(): File {
  const folder = mkdtempSync(join(tmpdir(), "reprise-codec-"));
  const path = join(folder, "store.db");
  return {
    path,
    open: (codec, more) =>
      openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom, codec, ...more }),
    sql<T>(text: string): T[] {
      const db = new DatabaseSync(path);
      try {
        return db.prepare(text).all() as T[];
      } finally {
        db.close();
      }
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function start(store: Store, id: string, started = `{"input":"${id}"}`): Promise<number> {
  const run = { id, definition: "d", kind: "workflow", version: 1, priority: 0, tags: [], runtime: "{}" } as const;
  const [outcome] = await store.write([{ write: "start", run: { ...run, started } }]);
  return outcome.record.run;
}

async function refusalOf(work: Promise<unknown>): Promise<RepriseError> {
  return work.then(
    () => {
      throw new Error("nothing was refused");
    },
    (error: unknown) => error as RepriseError,
  );
}

test("every blob column of the schema is in PAYLOADS", () => {
  const db = new DatabaseSync(":memory:");
  for (const migration of MIGRATIONS) db.exec(migration);
  const blobs = db
    .prepare(
      `select t.name as "table", c.name as "column" from sqlite_schema t, pragma_table_info(t.name) c
       where t.type = 'table' and c.type = 'BLOB' order by 1, 2`,
    )
    .all()
    .map((row) => `${String(row["table"])}.${String(row["column"])}`);
  const known = Object.entries(PAYLOADS).map(([table, { column }]) => `${table}.${column}`);
  expect(blobs).toEqual(known.toSorted());
});

test("rows from before the codec are readable, and new ones are encoded", async () => {
  using file = createFile();
  const plain = await file.open();
  const first = await start(plain, "before");
  await plain.close();
  const encrypted = await file.open(ONE);
  const second = await start(encrypted, "after");
  expect((await encrypted.readJournal(first, 0))[0]?.data).toBe('{"input":"before"}');
  expect((await encrypted.readJournal(second, 0))[0]?.data).toBe('{"input":"after"}');
  expect(await encrypted.check()).toEqual([]);
  expect((await encrypted.info()).codecs).toEqual(["aes-256-gcm one"]);
  await encrypted.close();
  expect(file.sql("select cast(data as text) as data from journal where run = (select min(run) from runs)")).toEqual([
    { data: '{"input":"before"}' },
  ]);
  expect(file.sql("select 1 from journal where instr(data, cast('after' as blob)) > 0")).toEqual([]);
});

test("a process that cannot decode every probe is refused before anything is written", async () => {
  using file = createFile();
  await (await file.open(ONE)).close();
  await (await file.open(BOTH)).close();
  const before = file.sql("select key from meta");
  const refused: [PayloadCodec | undefined, string, string][] = [
    [undefined, "PAYLOAD_KEY_MISSING", "Pass `codec` to createEngine"],
    [TWO, "PAYLOAD_KEY_MISSING", "'one'"],
    [ONE, "PAYLOAD_KEY_MISSING", "'two'"],
    [WRONG, "PAYLOAD_UNREADABLE", "'one'"],
    [{ name: "upside down", encode: (text) => Buffer.from(text), decode: () => "?" }, "BAD_OPTIONS", "upside down"],
  ];
  for (const [codec, code, said] of refused) {
    const refusal = await refusalOf(file.open(codec));
    expect([refusal.code, refusal.message.includes(said)]).toEqual([code, true]);
  }
  expect(file.sql("select key from meta")).toEqual(before);
});

test("a store opened without a key lists its runs, and every payload names the missing key", async () => {
  using file = createFile();
  const encrypted = await file.open(ONE);
  const run = await start(encrypted, "a");
  await encrypted.close();
  const locked = await file.open(undefined, { locked: true, migrate: false });
  expect((await locked.listRuns({ limit: 5 })).map(({ id }) => id)).toEqual(["a"]);
  const [entry] = await locked.readJournal(run, 0);
  expect(() => decode(entry!.data)).toThrow(expect.objectContaining({ code: "PAYLOAD_KEY_MISSING" }));
  expect((await refusalOf(locked.check())).code).toBe("PAYLOAD_KEY_MISSING");
  expect((await refusalOf(start(locked, "b"))).code).toBe("PAYLOAD_KEY_MISSING");
  expect((await refusalOf(locked.rekey())).code).toBe("PAYLOAD_KEY_MISSING");
  await locked.close();
});

test("swapped ciphertexts are detected, and other runs are not affected", async () => {
  using file = createFile();
  const store = await file.open(ONE);
  const [a, b, c] = [await start(store, "a"), await start(store, "b"), await start(store, "c")];
  file.sql(`with old as materialized (select run, data from journal)
    update journal set data = (select old.data from old where old.run = ${a + b} - journal.run) where run in (${a}, ${b})`);
  for (const run of [a, b]) {
    const [entry] = await store.readJournal(run, 0);
    expect(() => decode(entry!.data)).toThrow(expect.objectContaining({ code: "PAYLOAD_UNREADABLE" }));
  }
  expect((await store.readJournal(c, 0))[0]?.data).toBe('{"input":"c"}');
  expect((await store.check()).map(({ run, seq, message }) => [run, seq, message.split(":")[0]])).toEqual([
    ["a", 1, "PAYLOAD_UNREADABLE"],
    ["b", 1, "PAYLOAD_UNREADABLE"],
  ]);
  await store.close();
});

test("after a rekey a store needs only the new key, and the file holds none of the old bytes", async () => {
  using file = createFile();
  const plain = await file.open();
  await start(plain, "plain", '{"input":"canary-1234"}');
  await plain.close();
  const old = await file.open(ONE);
  for (let n = 0; n < 1_200; n += 1) await start(old, `run-${n}`);
  await old.close();
  const both = await file.open(BOTH);
  const seen: number[] = [];
  expect(await both.rekey((done, total) => seen.push(done / total))).toEqual({ payloads: 1_201, unreadable: 0 });
  expect(seen.at(-1)).toBe(1);
  expect(seen.length).toBeGreaterThan(2);
  await both.close();
  expect(file.sql("select 1 from journal where instr(data, cast('canary' as blob)) > 0")).toEqual([]);
  const next = await file.open(TWO);
  expect(await next.check()).toEqual([]);
  expect((await next.readJournal((await next.findRun("plain"))!.run, 0))[0]?.data).toBe('{"input":"canary-1234"}');
  expect((await next.info()).codecs).toEqual(["aes-256-gcm two"]);
  await next.close();
});

test("a rekey leaves unreadable payloads as they are, and their key is still required", async () => {
  using file = createFile();
  const store = await file.open(ONE);
  await start(store, "a");
  await start(store, "b");
  await store.close();
  file.sql(
    "update journal set data = cast(substr(data, 1, length(data) - 1) || x'00' as blob) where run = (select min(run) from runs)",
  );
  const both = await file.open(BOTH);
  expect(await both.rekey()).toEqual({ payloads: 1, unreadable: 1 });
  expect((await both.info()).codecs).toEqual(["aes-256-gcm one", "aes-256-gcm two"]);
  await both.close();
});

test("a backup of an encrypted store is encrypted, and opens with the same keys", async () => {
  using file = createFile();
  const store = await file.open(ONE);
  await start(store, "a", '{"input":"canary-1234"}');
  const copy = `${file.path}.copy`;
  await store.backup(copy);
  await store.close();
  const options = { path: copy, clock: systemClock, timers: systemTimers, random: systemRandom };
  expect((await refusalOf(openSqliteStore(options))).code).toBe("PAYLOAD_KEY_MISSING");
  const opened = await openSqliteStore({ ...options, codec: ONE });
  expect((await opened.readJournal((await opened.findRun("a"))!.run, 0))[0]?.data).toBe('{"input":"canary-1234"}');
  await opened.close();
});
