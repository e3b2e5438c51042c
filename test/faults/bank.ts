// Bank: transfers between accounts in `ctx.tx`. The sum must stay constant, and each transfer must leave its two ledger rows.
//
// Accounts are locked in no fixed order, so that the bank's own transactions deadlock, too.

import { existsSync, rmSync } from "node:fs";
import { workflow, type WorkflowContext, type Workflow } from "reprise";
import { mysql } from "reprise/mysql";
import { postgres } from "reprise/postgres";
import { sqlite } from "reprise/sqlite";
import type { RandomSource } from "../replay/random-source.ts";
import type { Tally } from "./rig.ts";
import type { StoreKind, Subject } from "./subject.ts";

export interface Transfer {
  readonly from: number;
  readonly to: number;
  readonly cents: number;
}

const ACCOUNTS = 10;
const CENTS_EACH = 100_000;

/** One statement of a transfer, with the values of its placeholders. */
type SqlStatement = readonly [text: string, ...values: readonly (string | number)[]];

const move = (run: string, { from, to, cents }: Transfer): readonly SqlStatement[] => [
  ["update accounts set cents = cents - ? where account = ?", cents, from],
  ["update accounts set cents = cents + ? where account = ?", cents, to],
  ["insert into ledger (run, part) values (?, 'moved')", run],
];
const sign = (run: string): readonly SqlStatement[] => [["insert into ledger (run, part) values (?, 'signed')", run]];

type Transact = (
  ctx: WorkflowContext<any, any>,
  name: string,
  lines: readonly SqlStatement[],
  then?: () => void,
) => Promise<number>;

/** The handle depends on the database; the statements are the same. `then` is called inside the transaction. */
function transactOn(kind: StoreKind): Transact {
  if (kind === "sqlite") {
    return (ctx, name, lines, then) =>
      ctx.tx(name, sqlite, (db) => {
        for (const [text, ...values] of lines) db.prepare(text).run(...values);
        then?.();
        return lines.length;
      });
  }
  if (kind === "mysql") {
    return (ctx, name, lines, then) =>
      ctx.tx(name, mysql, async (db) => {
        for (const [text, ...values] of lines) await db.query(text, values);
        then?.();
        return lines.length;
      });
  }
  return (ctx, name, lines, then) =>
    ctx.tx(name, postgres, async (db) => {
      for (const [text, ...values] of lines) await db.query(numbered(text), values);
      then?.();
      return lines.length;
    });
}

function numbered(text: string): string {
  let n = 0;
  return text.replaceAll("?", () => `$${(n += 1)}`);
}

export function bankOn(kind: StoreKind): Workflow<"transfer", Transfer, string> {
  const transact = transactOn(kind);
  return workflow("transfer", async (ctx, transfer: Transfer) => {
    await transact(ctx, "move", move(ctx.runId, transfer));
    await ctx.run("between", () => transfer.cents);
    await transact(ctx, "sign", sign(ctx.runId));
    return ctx.runId;
  });
}

/** A transfer whose process is stopped inside its transaction, once, if the file exists. */
export function stoppedOn(kind: StoreKind): Workflow<"stopped", { transfer: Transfer; file: string }, string> {
  const transact = transactOn(kind);
  return workflow("stopped", async (ctx, { transfer, file }: { transfer: Transfer; file: string }) => {
    await transact(ctx, "move", move(ctx.runId, transfer), () => {
      if (!existsSync(file)) return;
      rmSync(file);
      process.kill(process.pid, "SIGSTOP");
    });
    await transact(ctx, "sign", sign(ctx.runId));
    return ctx.runId;
  });
}

/** Creates the bank's tables beside those of Reprise, which must exist. */
export async function foundBank(subject: Subject): Promise<void> {
  const text = subject.kind === "mysql" ? "varchar(200)" : "text";
  const engine = subject.kind === "mysql" ? " engine=InnoDB" : "";
  await subject.sql(`create table accounts (account integer primary key, cents integer not null)${engine}`);
  await subject.sql(`create table ledger (run ${text} not null, part ${text} not null)${engine}`);
  const rows = Array.from({ length: ACCOUNTS }, (_, account) => `(${account}, ${CENTS_EACH})`);
  await subject.sql(`insert into accounts values ${rows.join(", ")}`);
}

export function anyTransfer(chance: RandomSource): Transfer {
  const from = chance.below(ACCOUNTS);
  return { from, to: (from + 1 + chance.below(ACCOUNTS - 1)) % ACCOUNTS, cents: 1 + chance.below(50) };
}

/** Checks that the sum is unchanged, and that each completed transfer left each of its rows once. */
export async function auditBank(subject: Subject, ended: readonly string[], tally: Tally): Promise<void> {
  const [total] = await subject.sql("select sum(cents) as cents from accounts");
  const cents = Number(total?.["cents"]);
  if (cents !== ACCOUNTS * CENTS_EACH) tally.broken(`the bank has ${cents} cents, not ${ACCOUNTS * CENTS_EACH}`);
  const lines = new Map<string, number>();
  for (const row of await subject.sql("select run, part, count(*) as count from ledger group by run, part"))
    lines.set(`${String(row["run"])} ${String(row["part"])}`, Number(row["count"]));
  for (const run of ended) {
    for (const part of ["moved", "signed"]) {
      const count = lines.get(`${run} ${part}`) ?? 0;
      lines.delete(`${run} ${part}`);
      if (count === 0) tally.lost(`the row "${part}" of transfer ${run}`);
      if (count > 1) tally.doubled(`the row "${part}" of transfer ${run}: ${count} times`);
    }
  }
  for (const line of lines.keys()) tally.broken(`a ledger row that no transfer wrote: ${line}`);
  tally.add("transactions", ended.length * 2);
}
