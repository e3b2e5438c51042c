// A real PgBouncer in front of PostgreSQL: session mode works, the other modes are refused.

import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { openPostgresBackend } from "../../../src/stores/postgres/backend.ts";
import { runQuery } from "../../servers/run-query.ts";
import { describeOn, freshDatabase, startPgBouncer } from "../../servers/index.ts";

const TIMEOUT = 240_000;

describeOn("pgbouncer", "PgBouncer", () => {
  test("several hundred runs complete in session mode", { timeout: TIMEOUT }, async () => {
    await using database = await freshDatabase("postgres");
    await using pooler = await startPgBouncer(database.url, "session");
    const add = workflow("add", async (ctx, input: number) => {
      let sum = input;
      for (let step = 0; step < 3; step += 1) sum = await ctx.run("add", () => sum + 1);
      return sum;
    });
    const store = `${pooler.url}?pooler=session`;
    const open = () => createEngine({ store, definitions: [add] });
    await using one = await open();
    await using two = await open();
    const runs = await Promise.all(
      Array.from({ length: 400 }, (_, at) => (at % 2 === 0 ? one : two).start(add, at, { id: `run-${at}` })),
    );
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results).toEqual(Array.from({ length: 400 }, (_, at) => at + 3));
  });

  test.each(["transaction", "statement"] as const)(
    "%s mode is refused by name, also where it is said to be another",
    { timeout: TIMEOUT },
    async (mode) => {
      await using database = await freshDatabase("postgres");
      await using pooler = await startPgBouncer(database.url, mode);
      const plain = await openPostgresBackend({ url: pooler.url });
      await expect(plain.connect()).rejects.toMatchObject({ code: "STORE_LOCATION" });
      const said = await openPostgresBackend({ url: `${pooler.url}?pooler=session` });
      const error = await said.connect().catch((cause: unknown) => cause);
      expect(error).toMatchObject({ code: "STORE_LOCATION" });
      expect((error as Error).message).toContain(`${mode} mode`);
      expect((error as Error).message).toContain("pool_mode = session");
      expect(await runQuery(database.url, "select count(*)::int from pg_namespace where nspname = 'reprise'")).toEqual([
        0,
      ]);
    },
  );

  test("transaction mode is also refused when server processes alternate", { timeout: TIMEOUT }, async () => {
    await using database = await freshDatabase("postgres");
    await (await (await openPostgresBackend({ url: database.url })).connect()).close();
    await using pooler = await startPgBouncer(database.url, "transaction", { server_round_robin: 1 });
    const backend = await openPostgresBackend({ url: `${pooler.url}?pooler=session` });
    await expect(backend.connect()).rejects.toThrow("transaction mode");
  });
});
