// Transaction: what the rules know about the transaction that a write is applied in.

import type { Tx as RowsTx } from "../rows/rows.ts";
import type { FlowRows } from "./flow-rows.ts";

export interface Tx extends RowsTx {
  /** Rows of flows in memory (flow-rows.R1), once a node has ended. */
  flows?: FlowRows | undefined;
  /** Whether the ends of runs are noted (log.L5). Absent: they are not, or no run ends in the transaction. */
  readonly isFederated?: boolean;
}
