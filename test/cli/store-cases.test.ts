// reprise doctor --store-cases: the store conformance tests on a user's database.

import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { createFolder } from "../engine/world.ts";
import { runQuery } from "../servers/run-query.ts";
import { describeOn, fastFolder, freshDatabase, startServer } from "../servers/index.ts";
import { cli } from "./cli-process.ts";

test("the store tests run beside a file and leave nothing behind", { timeout: 120_000 }, async () => {
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
    stdout: expect.stringMatching(/^passed {2}\d+ store tests on this/),
  });
  expect(readdirSync(folder.path)).toEqual([]);
});

test("a text that no test name contains is refused", { timeout: 60_000 }, async () => {
  const { code, stderr } = await cli(["doctor", "--store-cases", "no such test", "--store", "sqlite:x.db"]);
  expect(code).toBe(2);
  expect(stderr).toContain("no test name contains");
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `on ${kind}`, () => {
    test("the store tests run beside existing data and leave nothing behind", { timeout: 240_000 }, async () => {
      // A separate server: other tests create such databases on the shared one.
      await using server = await startServer(kind, { under: fastFolder() });
      await using database = await freshDatabase(server);
      const { code, stdout } = await cli(["doctor", "--store-cases", "transaction", "--store", database.url, "--json"]);
      expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({ code: 0, failed: [] });
      const left = await runQuery(
        database.url,
        kind === "postgres"
          ? "select nspname from pg_namespace where nspname like 'reprise%'"
          : "select schema_name from information_schema.schemata where schema_name like 'reprise_cases%'",
      );
      expect(left).toEqual([]);
    });
  });
