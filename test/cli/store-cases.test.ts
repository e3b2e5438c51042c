// reprise doctor --store-cases, where a user's own store would be.

import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { createFolder } from "../engine/world.ts";
import { runQuery } from "../servers/run-query.ts";
import { describeOn, fastFolder, freshDatabase, startServer } from "../servers/index.ts";
import { cli } from "./cli-process.ts";

test("the promises of a store are tried beside a file, and nothing is left there", { timeout: 120_000 }, async () => {
  using folder = createFolder();
  const { code, stdout } = await cli([
    "doctor",
    "--store-cases",
    "lease",
    "--store",
    `sqlite:${folder.file("shop.db")}`,
  ]);
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^kept {2}\d+ promises of a store/),
  });
  expect(readdirSync(folder.path)).toEqual([]);
});

test("a part of a name that no promise has is refused", { timeout: 60_000 }, async () => {
  const { code, stderr } = await cli(["doctor", "--store-cases", "no such promise", "--store", "sqlite:x.db"]);
  expect(code).toBe(2);
  expect(stderr).toContain("no promise of a store has");
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `on ${kind}`, () => {
    test("the promises are tried beside what is there, and nothing is left", { timeout: 240_000 }, async () => {
      // Its own: on the shared one other tests have places of this kind.
      await using server = await startServer(kind, { under: fastFolder() });
      await using database = await freshDatabase(server);
      const { code, stdout } = await cli(["doctor", "--store-cases", "transaction", "--store", database.url, "--json"]);
      expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({ code: 0, broken: [] });
      const left = await runQuery(
        database.url,
        kind === "postgres"
          ? "select nspname from pg_namespace where nspname like 'reprise%'"
          : "select schema_name from information_schema.schemata where schema_name like 'reprise_cases%'",
      );
      expect(left).toEqual([]);
    });
  });
