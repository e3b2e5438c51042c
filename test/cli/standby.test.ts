// The command line on a standby: every command that reads works, and the standby and its primary stay as they were.

import { expect, test } from "vitest";
import { createEngine } from "reprise";
import { describeOn, freshDatabase, startCluster } from "../servers/index.ts";
import { runQuery } from "../servers/run-query.ts";
import { command, DEFINITIONS, TemporaryFolder } from "./cli-process.ts";
import { cart, charge, pay, review } from "./definitions.ts";
import { loop } from "./graphs.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const GRAPHS = DEFINITIONS.replace("definitions.ts", "graphs.ts");

const READING = [
  ["list"],
  ["show", "review-1"],
  ["show", "loop-1"],
  ["show", "pay-1", "--watch"],
  ["journal", "pay-1"],
  ["promises"],
  ["doctor"],
  ["top", "--once"],
  ["queue", "list"],
  ["schedule", "list"],
  ["checkpoints", "loop-1"],
  ["diff", "loop-1", "loop-1"],
  ["verify", "pay-1", DEFINITIONS],
  ["replay", "pay-1", DEFINITIONS],
  ["replay", "loop-1", GRAPHS, "--mode", "resume"],
  ["query", "cart-1", "count", "--file", DEFINITIONS],
  ["stream", "cart-1", "said"],
] as const;

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `the command line on a standby of ${kind}`, () => {
    test("reads every run, replays and verifies, and writes nothing", { timeout: 240_000 }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      {
        await using engine = await createEngine({
          store: database.url,
          definitions: [pay, charge, review, cart, loop],
          logger: SILENT,
        });
        await (await engine.start(pay, 1, { id: "pay-1" })).result();
        await (await engine.start(loop, {}, { id: "loop-1" })).result();
        const run = await engine.start(cart, undefined, { id: "cart-1" });
        await run.signal("add", { sku: "lamp" });
        await run.signal("checkout");
        await run.result();
        await engine.start(review, undefined, { id: "review-1" });
      }
      await cluster.catchUp();
      const writers = `select count(*) from ${kind === "postgres" ? "reprise.writers" : "reprise_writers"}`;
      const before = await runQuery(database.url, writers);
      const standby = cluster.standby!.urlOf(database.name);
      using folder = new TemporaryFolder();
      const all = [
        ...READING,
        ["journal", "pay-1", "--save", folder.file("pay.json")],
        ["backup", folder.file("b.db")],
      ];
      for (const args of all) {
        const { code, stderr } = await command([...args, "--store", standby]);
        expect([args.join(" "), code, stderr]).toEqual([args.join(" "), 0, expect.not.stringContaining("error")]);
      }
      expect((await command(["doctor", "--store", standby])).stdout).toContain("healthy");
      expect(await runQuery(database.url, writers)).toEqual(before);
      const refused = await command(["cancel", "review-1", "--store", standby]);
      expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining("is a standby, which is read-only") });
    });
  });
