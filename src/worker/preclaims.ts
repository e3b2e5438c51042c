// Preclaims: work that is leased to this worker by the commit that makes it, so that nobody has to look for it.
//
// K1. Only what this worker would claim by itself, and has room for.
// K2. Work that already waits goes first, and what stands in a line waits with the others.

import type { Random } from "../base/index.ts";
import type { Claim, DefinitionVersion, Line } from "../kernel/index.ts";
import type { Claimer } from "./claimer.ts";
import type { Served } from "./served.ts";
import type { Slots } from "./slots.ts";

/** R4. How many runs may be held. */
export const HELD_LIMIT = 1_000;

export interface PreclaimsHost {
  readonly random: Random;
  readonly served: Served;
  readonly slots: Slots;
  claimer(): Claimer;
  /** This worker's number; undefined while nothing may be claimed. */
  worker(): number | undefined;
  runsHeld(): number;
}

export class Preclaims {
  readonly #host: PreclaimsHost;
  readonly #prefix: string;
  #tokens = 0;

  constructor(host: PreclaimsHost) {
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

  /** For a run about to be started here; undefined when it is better left to the queue. */
  run({ name, version }: DefinitionVersion): Claim | undefined {
    const hasRoom = this.#host.runsHeld() < HELD_LIMIT;
    return hasRoom && this.#host.served.hasDefinition(name, version) ? this.newClaim() : undefined;
  }

  /** K2. With a claim goes a slot. */
  task(name: string, line: Line | undefined): Claim | undefined {
    const { served, slots } = this.#host;
    const claimer = this.#host.claimer();
    const isTaken = line === undefined && served.hasItem(name) && slots.free > 0 && !claimer.itemsWait;
    const claim = isTaken ? this.newClaim() : undefined;
    if (claim === undefined) claimer.noteItems();
    else slots.take();
    return claim;
  }
}
