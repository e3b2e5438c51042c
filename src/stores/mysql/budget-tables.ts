// Budget tables: the migration that adds budgets. sqlite/budget-tables.ts explains them.

import type { Step } from "./schema.ts";

const INT = "bigint not null";
const MAYBE_INT = "bigint null";
const KIND = "varbinary(64) not null";
const ID = "varbinary(765) not null";
const PLACE = "varbinary(1100) not null";

export const BUDGETS: readonly Step[] = [
  { table: "runs", column: "budget", type: MAYBE_INT },
  {
    name: "run_budgets",
    columns: {
      budget: INT,
      owner: ID,
      parent: MAYBE_INT,
      on_reached: KIND,
      closed: INT,
      cap_usd: MAYBE_INT,
      cap_tokens: MAYBE_INT,
      cap_calls: MAYBE_INT,
      moved_usd: INT,
      moved_tokens: INT,
      moved_calls: INT,
      spent_usd: INT,
      spent_tokens: INT,
      spent_calls: INT,
      reserved_usd: INT,
      reserved_tokens: INT,
      reserved_calls: INT,
      lost_usd: INT,
      lost_tokens: INT,
      lost_calls: INT,
    },
    primary: ["budget"],
  },
  {
    name: "budget_reservations",
    columns: {
      run: INT,
      command: PLACE,
      budget: INT,
      execution: INT,
      state: INT,
      item: INT,
      usd: INT,
      tokens: INT,
      calls: INT,
      at: INT,
    },
    primary: ["run", "command"],
    indexes: { budget_reservations_waiting: ["state", "budget", "at"] },
  },
];
