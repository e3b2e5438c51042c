// Seeded random: numbers and UUIDs that are the same in every replay (rules.A6). A node draws by the path of its item, so
// concurrent nodes do not affect each other.

import { drawUnit, drawUuid, seedOf } from "../base/index.ts";
import type { RunIdentity } from "./execution-host.ts";
import type { NodeScope } from "./scope.ts";

const CODE = "workflow";

export class SeededRandom {
  readonly #identity: RunIdentity;
  #seed: bigint | undefined;
  #count = 0;

  /** `seed`: that of the origin of a fork (fork.F3). */
  constructor(identity: RunIdentity, seed?: bigint) {
    this.#identity = identity;
    this.#seed = seed;
  }

  unit(node: NodeScope | undefined): number {
    return node === undefined
      ? drawUnit(this.#seedOfRun(), CODE, this.#count++)
      : drawUnit(this.#seedOfRun(), node.path, node.randomCount++);
  }

  uuid(node: NodeScope | undefined): string {
    return node === undefined
      ? drawUuid(this.#seedOfRun(), CODE, this.#count++)
      : drawUuid(this.#seedOfRun(), node.path, node.randomCount++);
  }

  #seedOfRun(): bigint {
    return (this.#seed ??= seedOf(this.#identity.id, this.#identity.generation));
  }
}
