// EagerClaims: leases new work to this worker in the commit that creates it, so that no poll is needed.
//
// eager-claims.K1. The worker leases only work that it could claim by polling, and that it has capacity for.
// eager-claims.K2. Pending work goes first: while items wait, the worker leases new tasks within local-queue.Q4 only, and none that
//   has a queue.

import type { Random } from "../base/index.ts";
import type { Claim, DefinitionVersion, QueueSlot } from "../kernel/index.ts";
import type { Claimer } from "./claimer.ts";
import type { ClaimFilter } from "./claim-filter.ts";
import type { LocalQueue } from "./local-queue.ts";

/** worker.R1. How many runs a worker holds at most. */
export const HELD_LIMIT = 1_000;

export interface EagerClaimsHost {
  readonly random: Random;
  readonly filter: ClaimFilter;
  queue(): LocalQueue;
  claimer(): Claimer;
  /** This worker's number; undefined while the worker may not claim. */
  worker(): number | undefined;
  runsHeld(): number;
}

export class EagerClaims {
  readonly #host: EagerClaimsHost;
  readonly #prefix: string;
  #tokens = 0;

  constructor(host: EagerClaimsHost) {
    this.#host = host;
    this.#prefix = host.random.token().slice(0, 12);
  }

  newToken(): string {
    return `${this.#prefix}.${(this.#tokens += 1)}`;
  }

  newClaim(): Claim | undefined {
    const worker = this.#host.worker();
    return worker === undefined ? undefined : { worker, token: this.newToken() };
  }

  /** eager-claims.K1. For a run that is about to start here; undefined when any worker may claim it. */
  claimRun({ name, version }: DefinitionVersion): Claim | undefined {
    const hasRoom = this.#host.runsHeld() < HELD_LIMIT;
    return hasRoom && this.#host.filter.hasDefinition(name, version) ? this.newClaim() : undefined;
  }

  /** eager-claims.K2. The task, whose entry has `data`, starts once its commit is durable and a slot is free. */
  claimTask(name: string, slot: QueueSlot | undefined, data: string): Claim | undefined {
    const { filter } = this.#host;
    const queue = this.#host.queue();
    const claimer = this.#host.claimer();
    const isTaken = slot === undefined && filter.hasItem(name) && queue.admits(name, claimer.hasItemBacklog);
    const claim = isTaken ? this.newClaim() : undefined;
    if (claim === undefined) claimer.markItemBacklog();
    else queue.reserve(data);
    return claim;
  }
}
