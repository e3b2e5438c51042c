// Transaction: what the rules know about the transaction that a write is applied in.

import type { EventSubscription } from "../../kernel/index.ts";
import type { Tx as RowsTx } from "../rows/rows.ts";
import type { FlowRows } from "./flow-rows.ts";

/** What a process knows about its store, for every transaction. */
export interface TxSettings {
  /** Whether the ends of runs are noted (log.L5). Absent: they are not, or no run ends in the transaction. */
  readonly isFederated?: boolean;
  /** The events that this process writes (run-event.E1). Absent: none. */
  readonly subscriptions?: readonly EventSubscription[] | undefined;
}

export interface Tx extends RowsTx, TxSettings {
  /** Rows of flows in memory (flow-rows.R1), once a node has ended. */
  flows?: FlowRows | undefined;
}
