// The write-ahead log of SQLite is deleted while processes use the store.

import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { createClient } from "reprise";
import { cli, DEFINITIONS, finished, jsonLines, waitForOutput, startCli, TemporaryFolder } from "./cli-process.ts";
import { pay } from "./definitions.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

test.skipIf(process.platform === "win32")(
  "a deleted log stops every process that uses the store, and no acknowledged commit is lost",
  { timeout: 60_000 },
  async () => {
    using folder = new TemporaryFolder();
    const store = `sqlite:${folder.file("shop.db")}`;
    const child = startCli(["worker", DEFINITIONS, "--lease", "1s", "--store", store]);
    const ended = finished(child);
    await waitForOutput(child, "started worker");
    const ids = Array.from({ length: 5 }, (_, n) => `pay-${n}`);
    {
      await using client = await createClient({ store, definitions: [pay], logger: SILENT });
      for (const id of ids) await (await client.start(pay, 7, { id })).result();
      const noticed = waitForOutput(child, "STORE_REPLACED");
      rmSync(folder.file("shop.db-wal"));
      await expect(client.start(pay, 7, { id: "late" })).rejects.toMatchObject({ code: "STORE_REPLACED" });
      // The heartbeat of the worker is a transaction.
      await noticed;
    }
    child.kill("SIGTERM");
    await ended;
    const listed = jsonLines((await cli(["list", "--json", "--store", store])).stdout);
    expect(listed.map(({ id, status }) => [id, status]).toSorted()).toEqual(ids.map((id) => [id, "completed"]));
    expect((await cli(["doctor", "--store", store])).stdout).toContain("healthy");
  },
);
