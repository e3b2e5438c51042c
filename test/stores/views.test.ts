// The views for reports show what the API says, on every database.

import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { createEngine, task, workflow, type RunInfo } from "reprise";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { Client } from "pg";
import { expect, test } from "vitest";
import { viewStatements } from "../../src/stores/maintenance/index.ts";
import { createFolder } from "../engine/world.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../servers/index.ts";

type Row = Readonly<Record<string, unknown>>;

const charge = task("charge", { retry: { maxAttempts: 2, baseDelay: "1 ms" } }, (ctx, secret: string) => {
  if (ctx.attempt === 1) throw new Error(`no answer for ${secret}`);
  return { paid: secret };
});
const pay = workflow("pay", async (ctx, secret: string) => {
  const paid = await ctx.task(charge, secret);
  return ctx.run("receipt", () => `receipt for ${paid.paid}`);
});
const fail = workflow("fail", async (ctx) => {
  await ctx.run("stock", { retry: { maxAttempts: 1 } }, () => {
    throw Object.assign(new Error("no canary-9 left"), { code: "NO_STOCK" });
  });
});

/** Two ended runs, and what the API says about them. */
async function writeRuns(store: string): Promise<{ runs: RunInfo[]; attempts: readonly string[] }> {
  await using engine = await createEngine({ store, definitions: [pay, fail, charge], logger: false });
  const paid = await engine.start(pay, "canary-9", { id: "pay-1" });
  const failed = await engine.start(fail, undefined, { id: "fail-1" });
  await paid.result();
  await failed.result().catch(() => undefined);
  const attempts = await Array.fromAsync(paid.attempts(), (one) => `${one.step} ${one.execution} ${one.outcome}`);
  // Both may end in one millisecond, so a report cannot order them by time.
  attempts.sort();
  return { runs: await Array.fromAsync(engine.list()), attempts };
}

/** `read`: the rows of a view. Times as milliseconds. */
async function expectViews(
  store: string,
  read: (view: string, order: string) => Promise<readonly Row[]>,
): Promise<void> {
  const { runs, attempts } = await writeRuns(store);
  const ms = (value: unknown): number => new Date(value as string).getTime();
  const seen = await read("runs", "number desc");
  expect(
    seen.map(({ id, definition, kind, status, error_code }) => [id, definition, kind, status, error_code]),
  ).toEqual(runs.map((run) => [run.id, run.definition, run.kind, run.status, run.errorCode ?? null]));
  expect(
    seen.map((row) => [Number(row["entries"]), row["digest"], ms(row["created_at"]), ms(row["ended_at"])]),
  ).toEqual(
    runs.map((run) => [
      run.entries,
      run.digest.slice("sha256:".length),
      run.createdAt.getTime(),
      run.endedAt!.getTime(),
    ]),
  );
  for (const row of seen) expect(Number(row["duration_ms"])).toBe(ms(row["ended_at"]) - ms(row["created_at"]));
  const steps = await read("steps", "run_number, seq");
  expect(steps.map(({ run_id, command, kind, outcome }) => [run_id, command, kind, outcome])).toEqual([
    ["pay-1", "Task(0)", "task", "completed"],
    ["pay-1", "Operation(0)", "operation", "completed"],
    ["fail-1", "Operation(0)", "operation", "failed"],
  ]);
  // Of work in another queue the start is an own fact; else it follows from the end.
  for (const row of steps) {
    expect(Number.isFinite(ms(row["started_at"] ?? Number.NaN)), String(row["command"])).toBe(true);
    expect(ms(row["started_at"]) + Number(row["took_ms"])).toBeLessThanOrEqual(ms(row["ended_at"]));
  }
  const executions = (await read("attempts", "run_number")).filter(({ run_id }) => run_id === "pay-1");
  expect(
    executions
      .map(({ command, execution, outcome }) => `${String(command)} ${Number(execution)} ${String(outcome)}`)
      .toSorted(),
  ).toEqual(attempts);
  for (const row of executions) {
    expect(row["started_at"], String(row["command"])).not.toBeNull();
    expect(ms(row["started_at"])).toBeLessThanOrEqual(ms(row["ended_at"]));
  }
  // views.V2
  expect(
    JSON.stringify([seen, steps, executions], (_, value: unknown) =>
      typeof value === "bigint" ? Number(value) : value,
    ),
  ).not.toContain("canary");
}

test("the views of a SQLite file show what the API says, without payloads", async () => {
  using folder = createFolder();
  const path = join(folder.path, "shop.db");
  await expectViews(`sqlite:${path}`, async (view, order) => {
    using db = new DatabaseSync(path, { readOnly: true });
    return db.prepare(`select * from reprise_v1_${view} order by ${order}`).all() as Row[];
  });
});

test("the runs of a definition are found by an index through the view of a SQLite file", async () => {
  using folder = createFolder();
  const path = join(folder.path, "shop.db");
  await writeRuns(`sqlite:${path}`);
  using db = new DatabaseSync(path, { readOnly: true });
  const planOf = (sql: string): string =>
    db
      .prepare(`explain query plan ${sql}`)
      .all()
      .map(({ detail }) => String(detail))
      .join("\n");
  expect(planOf("select id from reprise_v1_runs where definition = 'pay' order by number desc limit 10")).toContain(
    "runs_by_definition",
  );
  expect(planOf("select command from reprise_v1_steps where run_number = 7")).not.toMatch(/SCAN j\b/);
});

async function onPostgres<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

describeOn("postgres", "the views on PostgreSQL", () => {
  test("they show what the API says, without payloads", async () => {
    await using database = await freshDatabase("postgres");
    await expectViews(database.url, (view, order) =>
      onPostgres(
        database.url,
        async (client) => (await client.query<Row>(`select * from reprise_v1.${view} order by ${order}`)).rows,
      ),
    );
  });

  test("a role with the schema of the views reads them, and no table", async () => {
    await using database = await freshDatabase("postgres");
    await writeRuns(database.url);
    const role = `reports_${database.name}`;
    await database.run(
      `create role ${role} login password 'x'`,
      `grant usage on schema reprise_v1 to ${role}`,
      `grant select on all tables in schema reprise_v1 to ${role}`,
    );
    try {
      await onPostgres(withUser(database, role), async (client) => {
        expect((await client.query("select id from reprise_v1.runs")).rowCount).toBe(2);
        await expect(client.query("select data from reprise.journal")).rejects.toMatchObject({ code: "42501" });
      });
    } finally {
      await database.run(`drop owned by ${role}`, `drop role ${role}`);
    }
  });

  test("a role that may not create schemas gets a store without the views, and the printed statements add them", async () => {
    await using database = await freshDatabase("postgres");
    const role = `worker_${database.name}`;
    await database.run(
      `create role ${role} login password 'x'`,
      `create schema reprise authorization ${role}`,
      `revoke create on database ${database.name} from ${role}, public`,
    );
    try {
      const { runs } = await writeRuns(withUser(database, role));
      expect(runs).toHaveLength(2);
      await onPostgres(database.url, async (client) => {
        const schemas = await client.query("select 1 from pg_namespace where nspname = 'reprise_v1'");
        expect(schemas.rowCount).toBe(0);
        for (const statement of viewStatements(database.url)) await client.query(statement);
        expect((await client.query("select id from reprise_v1.runs")).rowCount).toBe(2);
      });
    } finally {
      await database.run(`drop owned by ${role} cascade`, `drop role ${role}`);
    }
  });
});

function withUser({ url }: FreshDatabase, user: string): string {
  const changed = new URL(url);
  changed.username = user;
  changed.password = "x";
  return changed.href;
}

describeOn("mysql", "the views on MariaDB", () => {
  test("they show what the API says, without payloads", async () => {
    await using database = await freshDatabase("mysql");
    await expectViews(database.url, async (view, order) => {
      const connection = await createConnection({ uri: database.url, timezone: "Z" });
      const [rows] = await connection.query<RowDataPacket[]>(`select * from reprise_v1_${view} order by ${order}`);
      await connection.end();
      return rows;
    });
  });

  test("a user that may not create views gets a store without them", async () => {
    await using database = await freshDatabase("mysql");
    const user = `w_${database.name.slice(2, 14)}`;
    await database.run(
      `create user '${user}'@'%' identified by 'x'`,
      `grant select, insert, update, delete, create, alter, index, lock tables on ${database.name}.* to '${user}'@'%'`,
    );
    try {
      const { runs } = await writeRuns(withUser(database, user));
      expect(runs).toHaveLength(2);
    } finally {
      await database.run(`drop user '${user}'@'%'`);
    }
  });
});
