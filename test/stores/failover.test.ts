// URLs with several hosts, and connections after a failover, on real clusters.

import { expect, test } from "vitest";
import { RepriseError, systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { openMysqlBackend } from "../../src/stores/mysql/backend.ts";
import { openPostgresBackend } from "../../src/stores/postgres/backend.ts";
import { ConnectionError, type Backend } from "../../src/stores/remote/backend.ts";
import { storeOf } from "../../src/stores/store-url.ts";
import { describeOn, freshDatabase, startCluster, type ServerKind } from "../servers/index.ts";
import { runRow } from "./rows.ts";

const TIMEOUT = 240_000;
/** No server listens there. */
const NOWHERE = "127.0.0.1:1";

const MACHINE = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "full" } as const;

async function open(kind: ServerKind, url: string): Promise<Backend> {
  return kind === "postgres"
    ? openPostgresBackend({ url })
    : openMysqlBackend({ url, random: systemRandom, timers: systemTimers, durability: "full" });
}

async function errorOf(act: Promise<unknown>): Promise<ConnectionError | RepriseError> {
  const error = await act.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (error instanceof ConnectionError || error instanceof RepriseError) return error;
  throw new Error(`expected an error of ours, got ${String(error)}`);
}

for (const kind of ["postgres", "mysql"] as const) {
  const scheme = kind === "postgres" ? "postgres://postgres@" : "mysql://root@";

  describeOn(kind, `several hosts of ${kind}`, () => {
    test("a connection finds the primary, wherever it is in the list", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      await (await (await open(kind, cluster.primary.urlOf(database.name))).connect()).close();
      await cluster.catchUp();
      const [primary, standby] = [cluster.primary, cluster.standby!].map(({ port }) => `127.0.0.1:${port}`);
      const lists = [`${primary},${standby}`, `${standby},${primary}`, `${NOWHERE},${standby},${primary}`];
      for (const [at, hosts] of lists.entries()) {
        const backend = await open(kind, `${scheme}${hosts}/${database.name}`);
        const pool = await Promise.all([1, 2, 3].map(() => backend.connect()));
        const rows = [runRow(at + 1)];
        expect(await pool[0]!.commit(1, 0, [{ change: "insert", table: "runs", rows }])).toBe("committed");
        await Promise.all(pool.map((connection) => connection.close()));
        await backend.close();
      }
    });

    test("if no host can be used, the error lists each of them", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      const standby = `127.0.0.1:${cluster.standby!.port}`;
      const database = new URL(cluster.url).pathname;
      const error = await errorOf((await open(kind, `${scheme}${NOWHERE},${standby}${database}`)).connect());
      expect(error).toMatchObject({ reason: "lost" });
      const said = causesOf(error);
      expect(said).toContain(`${NOWHERE}: connect ECONNREFUSED`);
      expect(said).toContain(`${standby}: is a standby`);
    });

    test("a single standby is refused at once when a store is opened", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      const error = await errorOf((await open(kind, cluster.standby!.url)).connect());
      expect(error).toMatchObject({ code: "STORE_LOCATION" });
      expect(error.message).toContain("Use the address of the primary");
    });

    test("a store that is open retries while the address leads to a standby", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      const backend = await open(kind, database.url);
      await (await backend.connect()).close();
      await cluster.catchUp();
      cluster.address.pointTo(cluster.standby!.url);
      expect(await errorOf(backend.connect())).toMatchObject({ reason: "lost" });
      cluster.address.pointTo(cluster.primary.url);
      await (await backend.connect()).close();
    });

    test("a store continues at the new primary after a failover", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "sync" });
      await using database = await freshDatabase(cluster);
      for (const url of [database.url, cluster.hostsUrlOf(database.name)]) {
        const store = await storeOf(url)["~open"](MACHINE);
        await store.info();
        await cluster.failOver();
        await store.info();
        await cluster.addStandby();
        await store.close();
      }
    });
  });
}

describeOn("postgres", "an old primary of PostgreSQL", () => {
  test("is skipped for the one that replaced it", { timeout: TIMEOUT }, async () => {
    await using cluster = await startCluster("postgres", { replication: "async" });
    await using database = await freshDatabase(cluster);
    const backend = await open("postgres", cluster.hostsUrlOf(database.name));
    await (await backend.connect()).close();
    await cluster.catchUp();
    await cluster.failOver({ primary: "leave" });
    const former = cluster.former!;
    await former.kill();
    await (await backend.connect()).close();
    await former.start();
    cluster.primary.signal("SIGSTOP");
    const error = await errorOf(backend.connect());
    cluster.primary.signal("SIGCONT");
    expect(error).toMatchObject({ reason: "lost" });
    expect(causesOf(error)).toContain("is on timeline 1");
    const connection = await backend.connect();
    expect(await connection.commit(1, 0, [{ change: "insert", table: "runs", rows: [runRow(1)] }])).toBe("committed");
    await connection.close();
  });
});

describeOn("mysql", "a switchover of MariaDB", () => {
  test("a connection to a server that became read-only is lost", { timeout: TIMEOUT }, async () => {
    await using cluster = await startCluster("mysql", { replication: "async" });
    await using database = await freshDatabase(cluster);
    await cluster.run("create user shop@'127.0.0.1'", `grant all on ${database.name}.* to shop@'127.0.0.1'`);
    const backend = await open("mysql", database.url.replace("root@", "shop@"));
    const [writer, reader] = [await backend.connect(), await backend.connect()];
    await cluster.run("set global read_only = 1");
    const rows = [runRow(1)];
    expect(await errorOf(writer.commit(1, 0, [{ change: "insert", table: "runs", rows }]))).toMatchObject({
      reason: "lost",
    });
    expect(writer.isUsable).toBe(false);
    expect(await errorOf(backend.connect())).toMatchObject({ reason: "lost" });
    await cluster.run("set global read_only = 0");
    expect(await reader.read([{ kind: "count", table: "runs", where: [] }])).toEqual([[{ count: 0 }]]);
    await reader.close();
  });
});

/** The messages of an error and its causes. */
function causesOf(error: unknown): string {
  return error instanceof Error ? `${error.message}; ${causesOf(error.cause)}` : "";
}
