// Draws: chance that comes out the same in every replay (A6). A node draws by the path of its item, so that whoever else
// draws meanwhile changes nothing.

import { drawUnit, drawUuid, seedOf } from "../base/index.ts";
import type { RunFacts } from "./execution-host.ts";
import type { NodeScope } from "./scope.ts";

const CODE = "workflow";

export class Draws {
  readonly #facts: RunFacts;
  #seed: bigint | undefined;
  #count = 0;

  /** `seed`: that of the run a fork comes from (FK3). */
  constructor(facts: RunFacts, seed?: unknown) {
    this.#facts = facts;
    if (typeof seed === "bigint") this.#seed = seed;
  }

  unit(node: NodeScope | undefined): number {
    return node === undefined
      ? drawUnit(this.#seedOfRun(), CODE, this.#count++)
      : drawUnit(this.#seedOfRun(), node.path, node.draws++);
  }

  uuid(node: NodeScope | undefined): string {
    return node === undefined
      ? drawUuid(this.#seedOfRun(), CODE, this.#count++)
      : drawUuid(this.#seedOfRun(), node.path, node.draws++);
  }

  #seedOfRun(): bigint {
    return (this.#seed ??= seedOf(this.#facts.id, this.#facts.generation));
  }
}
