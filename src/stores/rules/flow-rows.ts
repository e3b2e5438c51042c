// Flow rows: the rows that completions change, kept in memory between the writes of one transaction.
//
// Completions of one spread share a transaction, and each reads and changes the same two rows: the run's and the barrier's.
// A completion takes 18 µs; with both rows written each time it takes 28 (50,000 items of one spread in batches of 100, CPU
// time on a busy machine, best of five; a journal row alone takes 2.6). Flows of ten nodes, 2,000 at once, share no rows within
// a batch: 26 and 28.
//
// flow-rows.R1. The rows exist as long as the transaction. Every other read of these tables comes after `save`.
// flow-rows.R2. The row of a node that becomes ready is written before the node is queued.

import type { RunNumber, RunStatus } from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import type { Tx } from "./transaction.ts";

/** The row in `runs` of a flow that has not ended. */
export interface FlowRun {
  readonly run: RunNumber;
  status: RunStatus;
  head: number;
  chain: string;
  readonly arrivals: number;
  readonly read: number;
  readonly token: string | null;
  savedHead: number;
  savedStatus: RunStatus;
  readonly nodes: Map<string, ReadinessRow>;
}

export interface ReadinessRow {
  readonly node: string;
  readonly required: number;
  completed: number;
  /** Only for a barrier: the first item that is not queued yet. */
  queued: number | null;
  readonly window: number | null;
  readonly firstSeq: number | null;
  readonly perEntry: number | null;
  state: "new" | "changed" | "saved";
}

export class FlowRows {
  readonly #rows: Rows;
  readonly #runs = new Map<RunNumber, FlowRun>();

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  find(run: RunNumber): FlowRun | undefined {
    const known = this.#runs.get(run);
    if (known !== undefined) return known;
    const row = this.#rows.get("runs", [run], FLOW);
    if (row === undefined || row.ended_at !== null) return undefined;
    const { status, head, chain, arrivals, read, turn_token: token } = row;
    const nodes = new Map<string, ReadinessRow>();
    const found = { run, status, head, chain, arrivals, read, token, savedHead: head, savedStatus: status, nodes };
    this.#runs.set(run, found);
    return found;
  }

  readiness({ run, nodes }: FlowRun, node: string): ReadinessRow | undefined {
    const known = nodes.get(node);
    if (known !== undefined) return known;
    const row = this.#rows.get("readiness", [run, node], READINESS);
    if (row === undefined) return undefined;
    const { required, completed, queued, window, first_seq: firstSeq, per_entry: perEntry } = row;
    const found: ReadinessRow = { node, required, completed, queued, window, firstSeq, perEntry, state: "saved" };
    nodes.set(node, found);
    return found;
  }

  saveNode({ run }: FlowRun, row: ReadinessRow): void {
    const { node, required, completed, queued, window, firstSeq, perEntry } = row;
    if (row.state === "new")
      this.#rows.insert("readiness", {
        run,
        node,
        required,
        completed,
        queued,
        window,
        first_seq: firstSeq,
        per_entry: perEntry,
      });
    else if (row.state === "changed") this.#rows.set("readiness", [run, node], { completed, queued });
    row.state = "saved";
  }

  /** Saves the nodes of a flow and forgets the flow: the caller writes the run's row. */
  release(flow: FlowRun): void {
    for (const row of flow.nodes.values()) this.saveNode(flow, row);
    this.#runs.delete(flow.run);
  }

  save(): void {
    for (const flow of this.#runs.values()) {
      const { run, status, head, chain } = flow;
      for (const row of flow.nodes.values()) this.saveNode(flow, row);
      if (status !== flow.savedStatus) this.#rows.set("runs", [run], { head, chain, status });
      else if (head !== flow.savedHead) this.#rows.set("runs", [run], { head, chain });
    }
    this.#runs.clear();
  }
}

const FLOW = ["status", "head", "chain", "arrivals", "read", "turn_token", "ended_at"] as const;
const READINESS = ["required", "completed", "queued", "window", "first_seq", "per_entry"] as const;

/** flow-rows.R1 */
export function saveFlows(tx: Tx): void {
  tx.flows?.save();
}
