// Rules work: transactions of the rules other than lists of writes, such as reaping, pruning and releasing a worker.

import type { Tx } from "../rules/transaction.ts";
import { applyRules } from "./apply-writes.ts";
import type { TransactionWork } from "./runner.ts";

export function rulesWork<T>(what: string, body: (tx: Tx) => T): TransactionWork<T> {
  return {
    what,
    isOrdered: true,
    apply: (ws, now, _next, _isOptimistic, { subscriptions }) =>
      applyRules(ws, (rows) => body({ rows, now, nextRun: undefined, subscriptions })),
  };
}
