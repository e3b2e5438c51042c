// PlannedClaims: the leases that the plan of one commit may use.

import type { Claim, ClaimedItem, RunRecord } from "../kernel/index.ts";
import { hasKey, type FlowNode } from "../flow/index.ts";
import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<"claimer" | "eagerClaims" | "filter" | "slots">;

/** Leases that a plan may use. A node that runs user code takes its slot with the lease. */
export class PlannedClaims {
  readonly #parts: UsedParts;
  readonly #slots = new Set<string>();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  for(node: FlowNode, route: string, label: string | undefined): Claim | undefined {
    const { slots, claimer, filter, eagerClaims } = this.#parts;
    const { kind } = node.work;
    // keys.K1. A node with a key is not run under this lease: it moves to its queue.
    const takesSlot = (kind === "action" || kind === "spread" || kind === "call") && !hasKey(node);
    // Nodes that are only derived in memory run where their last input was committed, whatever queues the worker serves.
    if (takesSlot ? !filter.hasItem(route) : !filter.hasLabel(label)) return undefined;
    // Pending items go first.
    if (takesSlot && (slots.free <= 0 || claimer.hasItemBacklog)) {
      claimer.markItemBacklog();
      return undefined;
    }
    const claim = eagerClaims.newClaim();
    if (claim === undefined || !takesSlot) return claim;
    slots.acquire();
    this.#slots.add(claim.token);
    return claim;
  }

  /** The commit kept the lease: its node has a slot. */
  use(token: string): void {
    if (!this.#slots.delete(token)) this.#parts.slots.acquire();
  }

  release(): void {
    for (const _ of this.#slots) this.#parts.slots.release();
    this.#slots.clear();
  }
}

/** The claim of a node that a commit of this worker made ready and leased to it. */
export function claimedNode(
  { run, id, definition, generation, budget }: RunRecord,
  item: string,
  token: string,
  seq: number,
): ClaimedItem {
  return {
    run,
    runId: id,
    definition,
    generation,
    item,
    kind: "node",
    name: "",
    token,
    attempt: 0,
    execution: 1,
    failures: undefined,
    seq,
    data: "",
    suspicion: 0,
    budget,
  };
}
