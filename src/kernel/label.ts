// Label: what a worker must have to take a piece of work, such as a machine with a GPU, or one that stands in a country.
//
// LB1. Work that has a label is claimed, and leased ahead of its commit, only by workers that have it. Work that has none is
//      anybody's.
// LB2. A label belongs to the definition, as its code does: it is nowhere in the store but in the route of a flow's node.
//      Given another label, work that waits goes to other workers from then on.

import { inspect } from "node:util";
import { checkName, RepriseError } from "../base/index.ts";

/** Undefined: any worker may take it. */
export function labelOption({ label }: { readonly label?: unknown }, what: string): string | undefined {
  return label === undefined ? undefined : checkName(label, `${what}: label`);
}

/** The labels a worker has: those of a list, or any there may be. */
export class Labels {
  readonly #names: ReadonlySet<string> | undefined;

  private constructor(names: ReadonlySet<string> | undefined) {
    this.#names = names;
  }

  static readonly any: Labels = new Labels(undefined);

  static of(labels: unknown = []): Labels {
    if (labels === "any") return Labels.any;
    if (!Array.isArray(labels))
      throw new RepriseError(
        "BAD_OPTIONS",
        `worker.labels: expected an array of names, or "any", got ${inspect(labels, { depth: 0 })}.`,
      );
    return new Labels(new Set(labels.map((label: unknown) => checkName(label, "worker.labels"))));
  }

  /** LB1 */
  includes(label: string | undefined): boolean {
    return label === undefined || this.#names === undefined || this.#names.has(label);
  }

  /** Undefined: any. */
  get names(): readonly string[] | undefined {
    return this.#names && [...this.#names];
  }
}
