// EagerClaims: leases new work to this worker in the commit that creates it, so that no poll is needed.
//
// eager-claims.K1. The worker leases only work that it could claim by polling, and that it has capacity for.
// eager-claims.K2. Pending work goes first: while items wait, the worker leases new tasks within local-queue.Q4 only, and none that
//   has a queue.

import type { Claim, DefinitionVersion, NextGeneration, QueueSlot } from "../kernel/index.ts";
import { nextRun, versionOf } from "../process/index.ts";
import type { ChildRequest } from "../workflow/index.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { PartsOf } from "./worker-parts.ts";
import type { Continued } from "./run-end.ts";

type UsedParts = PartsOf<"claimant" | "claimer" | "filter" | "options" | "localQueue" | "registry" | "runs">;

export class EagerClaims {
  readonly #parts: UsedParts;
  readonly #prefix: string;
  #tokens = 0;

  constructor(parts: UsedParts) {
    this.#parts = parts;
    this.#prefix = parts.options.random.token().slice(0, 12);
  }

  newToken(): string {
    return `${this.#prefix}.${(this.#tokens += 1)}`;
  }

  newClaim(): Claim | undefined {
    const worker = this.#parts.claimant;
    return worker === undefined ? undefined : { worker, token: this.newToken() };
  }

  /** eager-claims.K1. For a run that is about to start here; undefined when any worker may claim it. */
  claimRun({ name, version }: DefinitionVersion): Claim | undefined {
    return this.#parts.runs.room > 0 && this.#parts.filter.hasDefinition(name, version) ? this.newClaim() : undefined;
  }

  /** For a child that its parent is about to start; one with a queue slot waits for its limits. */
  claimChild({ slot, definition }: ChildRequest): Claim | undefined {
    const body = this.#parts.registry.findWorkflow(definition.name, versionOf(definition));
    return slot === undefined && body !== undefined ? this.claimRun(body) : undefined;
  }

  /** The next generation of a run, leased to this worker. */
  newGeneration(
    { record: { definition }, trace }: JournalWriter,
    { version, input, models }: Continued,
  ): Omit<NextGeneration, "carried"> {
    const { options, claimer } = this.#parts;
    const { started, runtime } = nextRun(options, definition, version, input, trace, models);
    // Waiting runs go first: a run that continues as new without end must not starve them.
    const claim = claimer.isRequested("turns") ? undefined : this.claimRun({ name: definition, version });
    return { version, started, runtime, ...(claim && { claim }) };
  }

  /** eager-claims.K2. The task, whose entry has `data`, starts once its commit is durable and a slot is free. */
  claimTask(name: string, slot: QueueSlot | undefined, data: string): Claim | undefined {
    const { filter, localQueue, claimer } = this.#parts;
    const isTaken = slot === undefined && filter.hasItem(name) && localQueue.admits(name, claimer.hasItemBacklog);
    const claim = isTaken ? this.newClaim() : undefined;
    if (claim === undefined) claimer.markItemBacklog();
    else localQueue.reserve(data);
    return claim;
  }
}
