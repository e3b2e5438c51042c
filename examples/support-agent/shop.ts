// The shop: what the tools of the agent reach. The bank notes every call in a ledger, a file outside of the engine.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const ORDERS = [
  { order: "1042", cents: 4_990, problem: "arrived broken" },
  { order: "1043", cents: 2_495, problem: "was charged twice" },
  { order: "1044", cents: 700, problem: null },
];

export type Order = (typeof ORDERS)[number];

export function findOrder(order: string): Order | { readonly order: string; readonly problem: null } {
  return ORDERS.find((one) => one.order === order) ?? { order, problem: null };
}

export interface Refund {
  readonly order: string;
  readonly cents: number;
  readonly why: string;
}

/** A slow bank. It makes one refund per key, however often it is called. */
export async function refundOrder({ order, cents }: Refund, key: string): Promise<string> {
  const { LEDGER: ledger, BANK_MS: ms = 0 } = process.env;
  if (ledger !== undefined) appendFileSync(ledger, `${JSON.stringify({ order, cents, key })}\n`);
  await pause(Number(ms));
  return `${(cents / 100).toFixed(2)} EUR for order ${order} are on their way`;
}

export interface BankCall {
  readonly order: string;
  readonly cents: number;
  readonly key: string;
}

/** The calls that the bank has received. */
export function readLedger(file: string): readonly BankCall[] {
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as BankCall);
}
