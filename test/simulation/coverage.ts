// Coverage: which feature ran together with which fault, over many seeds. A pair that never occurred was not tested.

import { FAULTS } from "./faults.ts";
import type { SimReport } from "./simulate.ts";

export class Coverage {
  readonly #met = new Map<string, Map<string, number>>();
  readonly totals = { seeds: 0, runs: 0, commits: 0, steps: 0, virtualMs: 0, faults: 0, rollbacks: 0, vanished: 0 };
  readonly #fired = new Map<string, number>();

  add(report: SimReport): void {
    const { features, fired, runs, commits, steps, virtualMs, rollbacks, vanished } = report;
    this.totals.seeds += 1;
    this.totals.runs += runs;
    this.totals.commits += commits;
    this.totals.steps += steps;
    this.totals.virtualMs += virtualMs;
    this.totals.faults += fired.length;
    this.totals.rollbacks += rollbacks;
    this.totals.vanished += vanished;
    const kinds = fired.map((name) => name.slice(0, name.indexOf(":")));
    for (const kind of kinds) this.#fired.set(kind, (this.#fired.get(kind) ?? 0) + 1);
    for (const feature of features) {
      const met = this.#met.get(feature) ?? new Map<string, number>();
      this.#met.set(feature, met);
      for (const kind of new Set(kinds)) met.set(kind, (met.get(kind) ?? 0) + 1);
    }
  }

  /** The number of fired faults of each kind. */
  get fired(): Readonly<Record<string, number>> {
    return Object.fromEntries(FAULTS.map((kind) => [kind, this.#fired.get(kind) ?? 0]));
  }

  /** Seeds with both the feature and the fault. */
  get table(): Readonly<Record<string, Readonly<Record<string, number>>>> {
    return Object.fromEntries(
      [...this.#met]
        .toSorted()
        .map(([feature, met]) => [feature, Object.fromEntries(FAULTS.map((kind) => [kind, met.get(kind) ?? 0]))]),
    );
  }

  /** Pairs that never occurred; SQLite has no `abort`. */
  get blanks(): readonly string[] {
    return Object.entries(this.table).flatMap(([feature, met]) =>
      Object.entries(met).flatMap(([kind, count]) => (count === 0 ? [`${feature} × ${kind}`] : [])),
    );
  }
}
