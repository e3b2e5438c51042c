// A store on a server that is opened to read: it writes nothing, and a standby will do.

import { join } from "node:path";
import { expect, test } from "vitest";
import { aesGcm, systemClock, systemRandom, systemTimers, type PayloadCodec } from "../../src/base/index.ts";
import type { Store, Write } from "../../src/kernel/index.ts";
import { openMysqlBackend } from "../../src/stores/mysql/backend.ts";
import { openPostgresBackend } from "../../src/stores/postgres/backend.ts";
import { storeOf } from "../../src/stores/store-url.ts";
import {
  commitTurn,
  registerWorker,
  startHeld,
  startWrite,
  WAITS,
} from "../../src/testing/store-cases/store-actions.ts";
import { createFolder } from "../engine/world.ts";
import { describeOn, freshDatabase, startCluster, type ServerKind } from "../servers/index.ts";
import { runQuery } from "../servers/run-query.ts";
import { runRow } from "./rows.ts";

const TIMEOUT = 240_000;
const MACHINE = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "full" } as const;

function open(url: string, codec?: PayloadCodec): Promise<Store> {
  return storeOf(url)["~open"]({ ...MACHINE, codec });
}

function openToRead(url: string, codec?: PayloadCodec): Promise<Store> {
  return storeOf(url)["~open"]({ ...MACHINE, codec, readOnly: true });
}

/** A run that waits, written by a process that has ended. */
async function writeRun(url: string, id: string): Promise<void> {
  const store = await open(url);
  const worker = await registerWorker(store);
  await commitTurn(store, await startHeld(store, worker, id), { entries: [WAITS], then: "release" });
  await store.releaseWorker(worker);
  await store.close();
}

/** Every row that opening, using and closing a store may write. */
async function bookkeeping(kind: ServerKind, url: string): Promise<readonly unknown[]> {
  const [writers, meta, counters] = ["writers", "meta", "counters"].map((table) =>
    kind === "postgres" ? `reprise.${table}` : `reprise_${table}`,
  );
  const key = kind === "postgres" ? "key" : "`key`";
  const texts = [
    `select concat(writer, ' ', batch, ' ', mark) from ${writers} order by 1`,
    `select concat(${key}, ' ', value) from ${meta} order by 1`,
    `select concat(name, ' ', value) from ${counters} order by 1`,
  ];
  return Promise.all(texts.map((text) => runQuery(url, text)));
}

async function readEverything(store: Store, id: string): Promise<void> {
  const record = await store.findRun(id);
  expect(record).toMatchObject({ id, status: "waiting", head: 2 });
  expect((await store.readJournal(record!.run, 0)).map(({ type }) => type)).toEqual(["RunStarted", "PromiseCreated"]);
  expect((await store.listRuns({ limit: 10 })).map((run) => run.id)).toEqual([id]);
  expect((await store.info()).runs).toEqual({ waiting: 1 });
  expect(await store.check()).toEqual([]);
  using folder = createFolder();
  await store.backup(join(folder.path, "copy.db"));
}

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `a ${kind} store that is opened to read`, () => {
    test("writes nothing, and refuses every write", { timeout: TIMEOUT }, async () => {
      await using database = await freshDatabase(kind);
      await writeRun(database.url, "order-1");
      const before = await bookkeeping(kind, database.url);
      const store = await openToRead(database.url);
      await readEverything(store, "order-1");
      const writes: readonly Write[] = [
        startWrite("order-2"),
        { write: "message", to: "order-1", arrival: { type: "SignalReceived", target: "s", data: "1" }, once: false },
        { write: "pause", id: "order-1" },
      ];
      const refused = { code: "STORE_READ_ONLY", message: expect.stringContaining("opened the store to read") };
      for (const write of writes) await expect(store.write([write])).rejects.toMatchObject(refused);
      await expect(store.registerWorker("w", 1_000)).rejects.toMatchObject(refused);
      await expect(
        store.transact(
          () => 1,
          () => undefined,
        ),
      ).rejects.toMatchObject(refused);
      expect(await bookkeeping(kind, database.url)).toEqual(before);
      await store.close();
      expect(await bookkeeping(kind, database.url)).toEqual(before);
    });

    test("has sessions that the server itself keeps from writing", { timeout: TIMEOUT }, async () => {
      await using database = await freshDatabase(kind);
      await writeRun(database.url, "order-1");
      const use = { url: database.url, random: systemRandom, durability: "relaxed", migrate: false } as const;
      const backend =
        kind === "postgres"
          ? await openPostgresBackend({ ...use, readOnly: true })
          : openMysqlBackend({ ...use, timers: systemTimers, readOnly: true });
      const connection = await backend.connect();
      // Known to the server as a read-only transaction: PostgreSQL 25006, MySQL 1792.
      const error = await connection
        .commit(1, 0, [{ change: "insert", table: "runs", rows: [runRow(99)] }])
        .then(String, (cause: Error) => `${String(cause)} ${String(cause.cause)}`);
      expect(error).toMatch(/read.only transaction/i);
      await connection.close();
      await backend.close();
    });

    test("records no codec, and creates no tables", { timeout: TIMEOUT }, async () => {
      await using database = await freshDatabase(kind);
      await expect(openToRead(database.url)).rejects.toMatchObject({ code: "STORE_OLDER_SCHEMA" });
      await writeRun(database.url, "order-1");
      const before = await bookkeeping(kind, database.url);
      const store = await openToRead(database.url, aesGcm({ keys: { a: Buffer.alloc(32, 7) }, current: "a" }));
      await store.findRun("order-1");
      await store.close();
      expect(await bookkeeping(kind, database.url)).toEqual(before);
    });

    test("needs an account that may only select", { timeout: TIMEOUT }, async () => {
      await using database = await freshDatabase(kind);
      await writeRun(database.url, "order-1");
      const user = `reader_${database.name}`;
      await database.run(
        ...(kind === "postgres"
          ? [
              `create role ${user} login`,
              `grant usage on schema reprise to ${user}`,
              `grant select on all tables in schema reprise to ${user}`,
            ]
          : [`create user ${user}@'%'`, `grant select on ${database.name}.* to ${user}@'%'`]),
      );
      try {
        const url = new URL(database.url);
        url.username = user;
        const store = await openToRead(url.href);
        await readEverything(store, "order-1");
        await store.close();
      } finally {
        await database.run(
          ...(kind === "postgres" ? [`drop owned by ${user}`, `drop role ${user}`] : [`drop user ${user}@'%'`]),
        );
      }
    });

    test("may be on a standby, which stays a standby, and follows its primary", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      await writeRun(database.url, "order-1");
      await cluster.catchUp();
      const standby = cluster.standby!.urlOf(database.name);
      await expect(open(standby)).rejects.toMatchObject({ code: "STORE_LOCATION" });
      const hosts = cluster.hostsUrlOf(database.name);
      for (const url of [standby, hosts]) {
        const store = await openToRead(url);
        await readEverything(store, "order-1");
        await store.close();
      }
      const store = await openToRead(standby);
      const primary = await open(database.url);
      await primary.write([{ write: "pause", id: "order-1" }]);
      await primary.close();
      await cluster.catchUp();
      expect((await store.findRun("order-1"))?.status).toBe("paused");
      // The standby becomes the primary while the store is open.
      await cluster.failOver();
      expect((await store.findRun("order-1"))?.status).toBe("paused");
      await store.checkHistory?.();
      await expect(store.write([{ write: "resume", id: "order-1" }])).rejects.toMatchObject({
        code: "STORE_READ_ONLY",
      });
      await store.close();
    });
  });
