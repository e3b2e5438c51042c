// npm run faults: runs every rig on every store for a given time, and writes a report.

import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, type as systemName } from "node:os";
import { parseArgs } from "node:util";
import { reportIn, textOf } from "./figures.ts";
import { reportOf, type Outcome, type Report } from "./report.ts";
import { runRig, type Rig, type Tally } from "./rig.ts";
import { RIGS } from "./rigs/index.ts";
import { simulateFor } from "./simulated.ts";
import { ALL, endSharedServers, obstacle, titleOf, type StoreKind } from "./subject.ts";

const USAGE = `npm run faults -- [options]
  --minutes M   how long it may take in all (default 10)
  --store S     only these stores: sqlite, postgres, mysql
  --only R      only these rigs, or none; see --list
  --postgres V  on PostgreSQL 16, 17 or 18 instead of the machine's; fetched once, below .reprise
  --seed N      what decides about chance (default 1)
  --report F    where the report goes (default: docs/reliability-report.md, if everything was run)
  --figures F   keeps the figures in this file, after each rig
  --from F,G    makes the report of such files, and runs nothing
  --json        the figures as JSON on standard output
  --list        names and titles of the rigs`;

const REPORT = "docs/reliability-report.md";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    store: { type: "string" },
    only: { type: "string" },
    seed: { type: "string", default: "1" },
    report: { type: "string" },
    figures: { type: "string" },
    from: { type: "string" },
    json: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const say = (text: string): void => void process.stderr.write(text);

function chosen<T extends string>(what: string, asked: string | undefined, known: readonly T[]): readonly T[] {
  if (asked === undefined) return known;
  return asked.split(",").map((name) => {
    const found = known.find((each) => each === name);
    if (found === undefined) throw new Error(`${what}: expected some of ${known.join(", ")}, got ${name}.`);
    return found;
  });
}

function lineOf({ counts, notes }: Tally): string {
  return [...counts, ...notes].map(([what, figure]) => `${what} ${figure}`).join(", ");
}

async function tryOut(rig: Rig, store: StoreKind, shareMs: number): Promise<Outcome> {
  const begun = performance.now();
  const name = `${rig.name} ${store}`.padEnd(32);
  const onProgress = (tally: Tally): void => {
    if (process.stderr.isTTY) say(`\r\u001B[2K${name}${lineOf(tally).slice(0, 100)}`);
  };
  const tally = await runRig(rig, {
    store,
    rounds: rig.rounds,
    until: begun + shareMs,
    seed: Number(values.seed),
    onProgress,
  });
  const seconds = (performance.now() - begun) / 1_000;
  if (process.stderr.isTTY) say("\r\u001B[2K");
  say(
    `${tally.problems.length === 0 ? "ok    " : "FAILED"} ${name}${seconds.toFixed(0).padStart(4)} s  ${lineOf(tally)}\n`,
  );
  for (const problem of tally.problems.slice(0, 10)) say(`       ${problem}\n`);
  return { rig, store, tally };
}

async function main(): Promise<number> {
  if (values.help) return (say(`${USAGE}\n`), 0);
  if (values.list) return (RIGS.forEach(({ name, title }) => say(`${name.padEnd(20)}${title}\n`)), 0);
  const report = values.from === undefined ? await runAll() : joined(values.from.split(","));
  const path = values.report ?? (isWhole(report) ? REPORT : undefined);
  if (path !== undefined) {
    writeFileSync(path, reportOf(report));
    say(`The report is in ${path}.\n`);
  }
  if (values.json) process.stdout.write(textOf(report));
  const bad = report.outcomes.filter(({ tally }) => tally.problems.length > 0).length;
  return bad + (report.simulated?.failures ?? 0) === 0 ? 0 : 1;
}

async function runAll(): Promise<Report> {
  const names = chosen(
    "--only",
    values.only,
    RIGS.map(({ name }) => name),
  );
  const wanted = chosen("--store", values.store, ALL);
  const rigs = RIGS.filter(({ name }) => names.includes(name));
  const missing = [
    ...wanted.flatMap((store) => obstacle(store) ?? []),
    ...rigs.flatMap((rig) => rig.obstacle?.()?.replace(/^/, `${rig.name}: `) ?? []),
  ];
  for (const reason of missing) say(`left out: ${reason}\n`);
  const stores = wanted.filter((store) => obstacle(store) === undefined);
  const pairs = rigs
    .filter((rig) => rig.obstacle?.() === undefined)
    .flatMap((rig) => stores.filter((store) => rig.stores.includes(store)).map((store) => ({ rig, store })));
  const titles = await Promise.all(stores.map(async (kind) => ({ kind, title: await titleOf(kind) })));
  let report: Report = {
    commands: [commandText()],
    machine: `${systemName()}, ${availableParallelism()} cores, Node ${process.versions.node}`,
    stores: titles,
    outcomes: [],
    missing,
    simulated: undefined,
  };
  // The simulator gets a tenth of the time.
  const shareMs = (Number(values.minutes) * 60_000 * 0.9) / pairs.length;
  for (const { rig, store } of pairs) {
    report = { ...report, outcomes: [...report.outcomes, await tryOut(rig, store, shareMs)] };
    if (values.figures !== undefined) writeFileSync(values.figures, textOf(report));
  }
  if (values.only === undefined && values.store === undefined)
    report = { ...report, simulated: await simulateFor(Number(values.minutes) / 10, say) };
  if (values.figures !== undefined) writeFileSync(values.figures, textOf(report));
  await endSharedServers();
  return report;
}

/** Without file names, which depend on the machine. */
function commandText(): string {
  const given = (["minutes", "store", "only", "seed"] as const).filter((name) => values[name] !== undefined);
  return `npm run faults -- ${given.map((name) => `--${name} ${values[name]}`).join(" ")}`;
}

/** Merges the figures of several runs. */
function joined(files: readonly string[]): Report {
  const reports = files.map((file) => reportIn(readFileSync(file, "utf8")));
  const [first] = reports;
  if (first === undefined) throw new Error("--from: expected files that --figures made.");
  const outcomes = reports.flatMap((each) => each.outcomes);
  return {
    commands: [...new Set(reports.flatMap(({ commands }) => commands))],
    machine: first.machine,
    stores: ALL.flatMap((kind) => reports.flatMap(({ stores }) => stores).find((each) => each.kind === kind) ?? []),
    outcomes: RIGS.flatMap((rig) =>
      ALL.flatMap((kind) => outcomes.findLast((each) => each.rig === rig && each.store === kind) ?? []),
    ),
    missing: reports.flatMap((each) => each.missing),
    simulated: reports.find(({ simulated }) => simulated !== undefined)?.simulated,
  };
}

function isWhole({ outcomes }: Report): boolean {
  return outcomes.length === RIGS.flatMap(({ stores }) => stores).length;
}

process.exit(await main());
