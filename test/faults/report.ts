// The report: counts, by fault and store. The same figures in, the same text out; no date, no name of a machine.

import type { Rig, Tally } from "./rig.ts";
import type { Simulated } from "./simulated.ts";
import type { StoreKind } from "./subject.ts";

export interface Outcome {
  readonly rig: Rig;
  readonly store: StoreKind;
  readonly tally: Tally;
}

export interface Report {
  readonly commands: readonly string[];
  readonly machine: string;
  readonly stores: readonly { readonly kind: StoreKind; readonly title: string }[];
  readonly outcomes: readonly Outcome[];
  /** Why a store is not in it. */
  readonly missing: readonly string[];
  readonly simulated: Simulated | undefined;
}

/** They have columns of their own. */
const COLUMNS = ["acknowledged", "lost", "doubled"] as const;
const BESIDES: readonly string[] = [...COLUMNS, "broken", "steps", "transactions"];

const INTRODUCTION = `Made by \`npm run faults\`; do not edit. Real processes and real databases are killed, stopped, cut off, filled up and damaged while runs are live. Afterwards every invariant that is visible in the data is checked (\`reprise doctor\` does the same), and, by code that shares nothing with the engine:

* every run whose start was acknowledged is there and has ended with the result that was computed on paper (**lost** counts the others);
* no step, node or timer has two ends in its journal, and every line that \`ctx.tx\` wrote to the user's own ledger is there once (**doubled** counts the others); the sum of the bank's accounts is what it was.

What was acknowledged and what was not is known by the client, not by the store.`;

const LIMITS = `* A power cut is simulated for SQLite only, by replaying the recorded calls of a real process with unsynced sectors lost at random. PostgreSQL and MariaDB are trusted to keep what they have synced; both are refused when they are set up not to sync.
* A file has no clock of its own: a clock that is set forward carries the store's time forward, and timers with it, for every process on that file. They fire once, and never by a clock that went back. While clocks of its processes differ, a timer may be early by what one of them has not yet seen of the other's: some milliseconds.
* A run that never returns holds its process. An operator or orchestrator has to restart a worker that no longer answers; the store then isolates the run and stops it after eight takeovers.
* MySQL itself is not run here; MariaDB stands for it.`;

export function reportOf(report: Report): string {
  const { machine, stores, outcomes, missing, simulated } = report;
  const lines = [
    "# Reliability report",
    "",
    INTRODUCTION,
    "",
    `Command: ${report.commands.map((command) => `\`${command}\``).join(", ")}. Machine: ${machine}. Stores: ${stores.map(({ title }) => title).join(", ")}.`,
    ...missing.map((reason) => `\nLeft out: ${reason}.`),
    "",
    "## In all",
    "",
    ...table(
      ["store", "acknowledged", "steps checked", "user transactions checked", "lost", "doubled", "invariants broken"],
      stores.map(({ kind, title }) => {
        const own = outcomes.filter(({ store }) => store === kind);
        const sum = (what: string): string => format(own.reduce((all, { tally }) => all + countOf(tally, what), 0));
        return [title, ...["acknowledged", "steps", "transactions", "lost", "doubled", "broken"].map(sum)];
      }),
    ),
    "",
    ...simulation(simulated),
    "## By fault",
    "",
    ...[...new Set(outcomes.map(({ rig }) => rig))].flatMap((rig) => section(rig, report)),
    "## What is not shown",
    "",
    LIMITS,
    "",
  ];
  return lines.join("\n");
}

function simulation(simulated: Simulated | undefined): readonly string[] {
  if (simulated === undefined) return [];
  const { seeds, runs, commits, faults, failures } = simulated;
  const counts = `${format(seeds)} seeds, ${format(runs)} runs, ${format(commits)} commits, ${format(faults)} faults`;
  return [`Deterministic simulation (\`npm run sim\`): ${counts}, ${failures} violations.`, ""];
}

function section(rig: Rig, { outcomes, stores }: Report): readonly string[] {
  const own = outcomes.filter((outcome) => outcome.rig === rig);
  const rows = own.map(({ store, tally }) => {
    const done = [...tally.counts].filter(([what, count]) => !BESIDES.includes(what) && count > 0);
    const figures = [
      ...done.map(([what, count]) => `${what} ${format(count)}`),
      ...[...tally.notes].map((note) => note.join(" ")),
    ];
    const title = stores.find(({ kind }) => kind === store)?.title ?? store;
    return [title, figures.join(", "), ...COLUMNS.map((what) => format(countOf(tally, what))), verdict(tally)];
  });
  const head = ["store", "done", ...COLUMNS, ""];
  return [`### ${rig.name}: ${rig.title}`, "", `Shows ${rig.shows}.`, "", ...table(head, rows), ""];
}

function verdict({ problems }: Tally): string {
  return problems.length === 0
    ? "holds"
    : `**${problems.length} problems**: ${problems[0]!.split("\n")[0]!.replaceAll("|", "/")}`;
}

function countOf({ counts }: Tally, what: string): number {
  return counts.get(what) ?? 0;
}

const format = (count: number): string => count.toLocaleString("en-US");

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
}
