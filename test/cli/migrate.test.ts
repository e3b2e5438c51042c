// reprise migrate: live runs continue with another version of their definition.

import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { jsonLines } from "./cli-process.ts";
import { review } from "./definitions.ts";
import { parcel1, parcel2, parcel3 } from "./parcels.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const code = fileURLToPath(new URL("parcels.ts", import.meta.url));

const parcels = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([parcel1, parcel2, parcel3, review]).start(
    { id: "p-1", what: parcel1, tags: ["eu"], until: "waiting" },
    { id: "p-2", what: parcel1, until: "waiting" },
    { id: "review-1", what: review, tags: ["eu"], until: "waiting" },
  );

test("migrate moves a named run to the version, and says what it did", async () => {
  using store = await parcels();
  const dry = await store.cli("migrate", "p-1", "--to", "2", "--code", code, "--dry-run");
  expect([dry.code, dry.stdout]).toEqual([0, "would migrate p-1 parcel\n"]);
  const { code: exit, stdout } = await store.cli("migrate", "p-1", "--to", "2", "--code", code);
  expect([exit, stdout]).toEqual([0, "migrated p-1 parcel\n"]);
  const again = await store.cli("migrate", "p-1", "--to", "2", "--code", code);
  expect([again.code, again.stderr.split("\n")[0]]).toEqual([1, "skipped p-1: it already has version 2"]);
  expect((await store.cli("show", "p-1")).stdout).toContain("from version 1 to version 2");
  await store.cli("resolve", "p-1", "go");
  expect(await store.finish("p-1")).toMatchObject({ status: "completed", output: 2 });
});

test("migrate moves the runs of a filter, and skips those whose code the file does not have", async () => {
  using store = await parcels();
  const { stdout } = await store.cli("migrate", "--all", "--to", "2", "--code", code, "--yes", "--json");
  expect(jsonLines(stdout)).toEqual([{ action: "migrate", dryRun: false, count: 2, ids: ["p-1", "p-2"], skipped: [] }]);
  const named = await store.cli("migrate", "review-1", "--to", "2", "--code", code);
  expect([named.code, named.stderr]).toMatchObject([1, expect.stringContaining("exports no version 2 of review")]);
});

test("a run whose journal does not fit is skipped with the first difference; the exit code is 4", async () => {
  using store = await parcels();
  for (const more of [["--dry-run"], []]) {
    const refused = await store.cli("migrate", "--tag", "eu", "--to", "3", "--code", code, "--yes", "--json", ...more);
    expect(refused.code).toBe(4);
    expect(jsonLines(refused.stdout)[0]).toMatchObject({
      count: 0,
      skipped: [
        {
          id: "p-1",
          reason: expect.stringContaining("cannot continue with version 3 of parcel, at Operation(0)") as string,
        },
      ],
    });
  }
  const missing = await store.cli("migrate", "p-1", "--to", "9", "--code", code);
  expect([missing.code, missing.stderr]).toMatchObject([
    2,
    expect.stringContaining("exports no workflow, graph or flow of version 9"),
  ]);
  expect((await store.cli("migrate", "p-1")).code).toBe(2);
});
