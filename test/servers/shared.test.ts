import { spawnSync } from "node:child_process";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import { expect, test } from "vitest";
import { runQuery } from "./run-query.ts";
import { describeOn, freshDatabase, sharedServer, type ServerKind } from "./index.ts";

const TIMEOUT = 120_000;

const DURABLE: Readonly<Record<ServerKind, readonly (readonly [query: string, answer: unknown])[]>> = {
  postgres: [
    ["show fsync", "on"],
    ["show synchronous_commit", "on"],
    ["show full_page_writes", "on"],
  ],
  mysql: [
    ["select @@innodb_flush_log_at_trx_commit", 1],
    ["select @@innodb_doublewrite", 1],
    ["select @@innodb_flush_method", "O_DIRECT"],
  ],
};

for (const kind of ["postgres", "mysql"] as const) {
  describeOn(kind, kind, () => {
    test("the shared server runs with production's durability", { timeout: TIMEOUT }, async () => {
      const { url, version } = await sharedServer(kind);
      expect((await runQuery(url, "select version()"))[0]).toContain(version);
      for (const [query, answer] of DURABLE[kind])
        expect([query, await runQuery(url, query)]).toEqual([query, [answer]]);
    });

    test("every process of a test run gets the same server", { timeout: TIMEOUT }, async () => {
      const module = JSON.stringify(import.meta.resolve("./shared-servers.ts"));
      const script = `import(${module}).then(async (it) => console.log((await it.sharedServer("${kind}")).url))`;
      const child = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
      expect(child.stdout.trim()).toBe((await sharedServer(kind)).url);
    });

    test("two fresh databases are separate, and dropped after their tests", { timeout: TIMEOUT }, async () => {
      const { url } = await sharedServer(kind);
      const names: string[] = [];
      {
        await using first = await freshDatabase(kind);
        await using second = await freshDatabase(kind);
        names.push(first.name, second.name);
        await first.run("create table notes (body text)", "insert into notes values ('first')");
        await second.run("create table notes (body text)", "insert into notes values ('second')");
        expect(await runQuery(first.url, "select body from notes")).toEqual(["first"]);
        expect(await runQuery(second.url, "select body from notes")).toEqual(["second"]);
      }
      const all = await runQuery(url, kind === "mysql" ? "show databases" : "select datname from pg_database");
      expect(names.filter((name) => all.includes(name))).toEqual([]);
    });

    test("a database is dropped although a client is still connected", { timeout: TIMEOUT }, async () => {
      const database = await freshDatabase(kind);
      await using _ = await stayConnected(database.url);
      await database[Symbol.asyncDispose]();
      await expect(runQuery(database.url, "select 1")).rejects.toThrow(database.name);
    });

    test("text is not compared as bytes by default", { timeout: TIMEOUT }, async () => {
      await using database = await freshDatabase(kind);
      await database.run("create table notes (body varchar(9))", "insert into notes values ('B'), ('a')");
      expect(await runQuery(database.url, "select body from notes order by body")).toEqual(["a", "B"]);
    });
  });
}

async function stayConnected(url: string): Promise<AsyncDisposable> {
  if (url.startsWith("mysql:")) {
    const connection = await createConnection(url);
    return { [Symbol.asyncDispose]: async () => connection.destroy() };
  }
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  return { [Symbol.asyncDispose]: () => client.end() };
}
