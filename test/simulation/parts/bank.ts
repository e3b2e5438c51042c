// Bank: runs move money between accounts in `ctx.tx` (rules.I33): no transfer is lost or doubled, and the sum stays constant.

import { workflow } from "reprise";
import type { SimUserHandle } from "../store/sim-backend.ts";
import { between, expectOutput, type Part, type PartHost } from "../part.ts";

const ACCOUNTS = 3;
const OPENING = 100;

/** A user's rows by key, on either kind of database. */
interface Rows {
  get(key: string): number | undefined | Promise<number | undefined>;
  put(key: string, value: number): void | Promise<void>;
}

interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...args: unknown[]): unknown;
    get(...args: unknown[]): Record<string, unknown> | undefined;
  };
}

interface Transfer {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly amount: number;
}

export function bankPart({ chance, database, kind, scale }: PartHost): Part {
  const transfers = Array.from({ length: Math.max(1, Math.round(between(chance, 1, 4) * scale)) }, (_run, run) =>
    Array.from({ length: between(chance, 1, 4) }, (_, n): Transfer => {
      const from = chance.below(ACCOUNTS);
      return { key: `${run}/${n}`, from, to: (from + 1) % ACCOUNTS, amount: 1 + chance.below(9) };
    }),
  );
  const idOf = (index: number): string => `transfers-${index}`;
  // Synchronous where the database is: a function between BEGIN and COMMIT cannot wait.
  const move =
    kind === "sqlite"
      ? (db: SqliteHandle, transfer: Transfer): number => {
          const rows = sqliteRows(db);
          const times = (rows.get(transfer.key) ?? 0) + 1;
          rows.put(transfer.key, times);
          rows.put(`a${transfer.from}`, (rows.get(`a${transfer.from}`) ?? OPENING) - transfer.amount);
          rows.put(`a${transfer.to}`, (rows.get(`a${transfer.to}`) ?? OPENING) + transfer.amount);
          return times;
        }
      : async (db: SimUserHandle, transfer: Transfer): Promise<number> => {
          const rows = simRows(db);
          const times = ((await rows.get(transfer.key)) ?? 0) + 1;
          await rows.put(transfer.key, times);
          await rows.put(`a${transfer.from}`, ((await rows.get(`a${transfer.from}`)) ?? OPENING) - transfer.amount);
          await rows.put(`a${transfer.to}`, ((await rows.get(`a${transfer.to}`)) ?? OPENING) + transfer.amount);
          return times;
        };
  return {
    name: "bank",
    features: ["tx", "start"],
    definitions: (machine) => [
      workflow("transfers", async (ctx, index: number) => {
        const times: number[] = [];
        for (const transfer of transfers[index]!) {
          await ctx.run("think", () => machine.work("think"));
          times.push(await ctx.tx("move", database, ((db: never) => move(db, transfer)) as never));
        }
        // The whole bank, in one transaction.
        const sum =
          kind === "sqlite"
            ? await ctx.tx("sum", database, ((db: SqliteHandle) => sumOf(sqliteRows(db))) as never)
            : await ctx.tx("sum", database, (async (db: SimUserHandle) => {
                let total = 0;
                for (let n = 0; n < ACCOUNTS; n += 1) total += (await simRows(db).get(`a${n}`)) ?? OPENING;
                return total;
              }) as never);
        return [times, sum];
      }),
    ],
    async drive(client) {
      await Promise.all(
        transfers.map(async (_transfers, index) => {
          await client.sleep(chance.below(1_500));
          await client.start("transfers", index, idOf(index));
        }),
      );
    },
    *judge(ends) {
      for (const [index, list] of transfers.entries())
        yield* expectOutput(idOf(index), ends.get(idOf(index)), [list.map(() => 1), ACCOUNTS * OPENING]);
    },
  };
}

function sumOf(rows: { get(key: string): number | undefined }): number {
  return Array.from({ length: ACCOUNTS }, (_, n) => rows.get(`a${n}`) ?? OPENING).reduce((sum, each) => sum + each, 0);
}

function sqliteRows(db: SqliteHandle) {
  db.exec("create table if not exists bank (key text primary key, value integer not null)");
  return {
    get(key: string): number | undefined {
      const row = db.prepare("select value from bank where key = ?").get(key);
      return row === undefined ? undefined : Number(row["value"]);
    },
    put(key: string, value: number): void {
      db.prepare("insert into bank values (?, ?) on conflict (key) do update set value = excluded.value").run(
        key,
        value,
      );
    },
  };
}

function simRows(db: SimUserHandle): Rows {
  return {
    get: async (key) => {
      const value = await db.get(key);
      return value === undefined ? undefined : Number(value);
    },
    put: (key, value) => db.put(key, String(value)),
  };
}
