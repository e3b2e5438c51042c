// Figures: converts a report to JSON and back.

import type { Report } from "./report.ts";
import { Tally } from "./rig.ts";
import { RIGS } from "./rigs/index.ts";
import type { StoreKind } from "./subject.ts";

interface Figures extends Omit<Report, "outcomes"> {
  readonly outcomes: readonly {
    readonly rig: string;
    readonly shows: string;
    readonly store: StoreKind;
    readonly counts: Readonly<Record<string, number>>;
    readonly notes: Readonly<Record<string, string>>;
    readonly problems: readonly string[];
  }[];
}

export function textOf({ outcomes, ...rest }: Report): string {
  const figures: Figures = {
    ...rest,
    outcomes: outcomes.map(({ rig, store, tally }) => ({
      rig: rig.name,
      shows: rig.shows,
      store,
      counts: Object.fromEntries(tally.counts),
      notes: Object.fromEntries(tally.notes),
      problems: tally.problems,
    })),
  };
  return `${JSON.stringify(figures, null, 2)}\n`;
}

/** Omits rigs that no longer exist. */
export function reportIn(text: string): Report {
  const { outcomes, ...rest } = JSON.parse(text) as Figures;
  return {
    ...rest,
    outcomes: outcomes.flatMap(({ rig: name, store, counts, notes, problems }) => {
      const rig = RIGS.find((each) => each.name === name);
      if (rig === undefined) return [];
      const tally = new Tally();
      for (const [what, count] of Object.entries(counts)) tally.add(what, count);
      for (const [what, figure] of Object.entries(notes)) tally.note(what, figure);
      tally.problems.push(...problems);
      return [{ rig, store, tally }];
    }),
  };
}
