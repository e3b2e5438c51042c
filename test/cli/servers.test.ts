// The command line on a database server without tables.

import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { describeMigration } from "../../src/cli/maintenance.ts";
import { SCHEMA_VERSION as MYSQL_SCHEMA } from "../../src/stores/mysql/schema.ts";
import { SCHEMA_VERSION as POSTGRES_SCHEMA } from "../../src/stores/postgres/schema.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../servers/index.ts";
import { cli, jsonLines } from "./cli-process.ts";

/** The URL of a user who can connect but has no other privilege. */
async function poorUrl({ kind, name, url, run }: FreshDatabase): Promise<string> {
  const user = `poor_${name}`;
  if (kind === "postgres") await run(`create role ${user} login`);
  else await run(`create user ${user}@'%'`, `grant select on ${name}.* to ${user}@'%'`);
  const poor = new URL(url);
  poor.username = user;
  poor.password = "";
  return poor.href;
}

const dropPoor = ({ kind, name, run }: FreshDatabase): Promise<void> =>
  run(kind === "postgres" ? `drop role poor_${name}` : `drop user poor_${name}@'%'`);

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `a new ${kind}`, () => {
    test("has no tables; migrate creates them, and doctor reports a healthy store", { timeout: 60_000 }, async () => {
      await using database = await freshDatabase(kind);
      const on = (...args: readonly string[]): ReturnType<typeof cli> => cli([...args, "--store", database.url]);
      const early = await on("list");
      expect(early).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(
          /STORE_OLDER_SCHEMA: .* has no tables of Reprise yet\. Run `reprise migrate --store \S+`/,
        ),
      });
      const to = kind === "postgres" ? POSTGRES_SCHEMA : MYSQL_SCHEMA;
      const schema = { from: 0, to, backup: null };
      const dry = jsonLines((await on("migrate", "--dry-run", "--json")).stdout);
      expect(dry).toMatchObject([{ ...schema, migrated: false, dryRun: true }]);
      expect((await on("list")).code).toBe(3);
      const made = jsonLines((await on("migrate", "--json")).stdout);
      expect(made).toMatchObject([{ ...schema, migrated: true, dryRun: false }]);
      expect((await on("migrate")).stdout).toMatch(new RegExp(`^up to date {2}.* has schema ${to}\n$`));
      const copying = await on("migrate", "--backup", "copy.db");
      expect(copying).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("Dump a database server with its own tools"),
      });
      // doctor opens the store with relaxed durability, but reports what the server guarantees.
      const [report] = jsonLines((await on("doctor", "--json")).stdout);
      expect(report).toMatchObject({ healthy: true, store: { kind, durability: "full" } });
    });

    test("reports the missing privilege of its user", { timeout: 60_000 }, async () => {
      await using database = await freshDatabase(kind);
      const url = await poorUrl(database);
      try {
        for (const command of [["migrate"], ["doctor", "--store-cases", "lease"]]) {
          const { code, stderr } = await cli([...command, "--store", url]);
          expect({ code, stderr }).toMatchObject({ code: 3, stderr: expect.stringContaining("error STORE_IO: ") });
          expect(stderr).toMatch(/ denied .*lacks a privilege/);
        }
      } finally {
        await dropPoor(database);
      }
    });
  });

describe("migrate on a server", () => {
  const textsOf = (from: number, dryRun: boolean): readonly string[] => {
    const { done, notes } = describeMigration({ location: "postgres://db/shop", from, to: 3 }, dryRun);
    return [stripVTControlCharacters(done), ...notes];
  };

  test("reports that it makes no copy, before and after the migration, unless there is nothing to copy", () => {
    expect(textsOf(2, true)).toEqual([
      "would migrate  postgres://db/shop: schema 2 → 3",
      expect.stringMatching(/migrate does not copy a database server; dump it first .*pg_dump, mariadb-dump/),
    ]);
    expect(textsOf(2, false)).toEqual([
      "migrated  postgres://db/shop: schema 2 → 3",
      "no copy of the database was made",
      expect.stringContaining("restart all workers"),
    ]);
    expect(textsOf(0, false)).toEqual(["created  the tables of schema 3 in postgres://db/shop"]);
    expect(textsOf(3, false)).toEqual(["up to date  postgres://db/shop has schema 3"]);
  });
});
