// Label: a requirement on the worker, such as a GPU or a region.
//
// label.L1. Only workers with the label claim work that has one, also with an eager claim. Any worker claims work without one.
// label.L2. A label belongs to the definition, like its code: the store has it only in the route of a flow's node. If the
//   definition gets another label, other workers claim the waiting work.

import { inspect } from "node:util";
import { checkName, RepriseError } from "../base/index.ts";

/** Undefined: any worker may claim it. */
export function labelOption({ label }: { readonly label?: unknown }, what: string): string | undefined {
  return label === undefined ? undefined : checkName(label, `${what}: label`);
}

/** The labels of a worker: those of a list, or any. */
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

  /** label.L1 */
  includes(label: string | undefined): boolean {
    return label === undefined || this.#names === undefined || this.#names.has(label);
  }

  /** Undefined: any. */
  get names(): readonly string[] | undefined {
    return this.#names && [...this.#names];
  }
}
