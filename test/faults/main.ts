// npm run faults: every rig on every store, for as long as it is told, and a report of what came of it.

import { writeFileSync } from "node:fs";
import { availableParallelism, type as systemName } from "node:os";
import { parseArgs } from "node:util";
import { reportOf, type Outcome, type Report } from "./report.ts";
import { runRig, type Rig, type Tally } from "./rig.ts";
import { RIGS } from "./rigs/index.ts";
import { simulateFor } from "./simulated.ts";
import { ALL, endSharedServers, obstacle, titleOf, type StoreKind } from "./subject.ts";

const USAGE = `npm run faults -- [options]
  --minutes M   how long it may take in all (default 10)
  --store S     only these stores: sqlite, postgres, mysql
  --only R      only these rigs, or none; see --list
  --seed N      what decides about chance (default 1)
  --report F    where the report goes (default: docs/reliability-report.md, if everything was run)
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
  const names = chosen(
    "--only",
    values.only,
    RIGS.map(({ name }) => name),
  );
  const wanted = chosen("--store", values.store, ALL);
  const missing = wanted.flatMap((store) => obstacle(store) ?? []);
  for (const reason of missing) say(`left out: ${reason}\n`);
  const stores = wanted.filter((store) => obstacle(store) === undefined);
  const pairs = RIGS.filter(({ name }) => names.includes(name)).flatMap((rig) =>
    stores.filter((store) => rig.stores.includes(store)).map((store) => ({ rig, store })),
  );
  const isWhole = names.length === RIGS.length && stores.length === ALL.length;
  // The simulator gets a tenth of the time.
  const shareMs = (Number(values.minutes) * 60_000 * 0.9) / pairs.length;
  const outcomes: Outcome[] = [];
  for (const { rig, store } of pairs) outcomes.push(await tryOut(rig, store, shareMs));
  const simulated = values.only === undefined ? await simulateFor(Number(values.minutes) / 10, say) : undefined;
  const report: Report = {
    command: `npm run faults -- ${process.argv.slice(2).join(" ")}`.trim(),
    machine: `${systemName()}, ${availableParallelism()} cores, Node ${process.versions.node}`,
    stores: await Promise.all(stores.map(async (kind) => ({ kind, title: await titleOf(kind) }))),
    outcomes,
    missing,
    simulated,
  };
  await endSharedServers();
  const path = values.report ?? (isWhole ? REPORT : undefined);
  if (path !== undefined) {
    writeFileSync(path, reportOf(report));
    say(`The report is in ${path}.\n`);
  }
  if (values.json) process.stdout.write(`${JSON.stringify(plain(report), null, 2)}\n`);
  const bad = outcomes.filter(({ tally }) => tally.problems.length > 0).length + (simulated?.failures ?? 0);
  return bad === 0 ? 0 : 1;
}

function plain({ outcomes, ...rest }: Report): unknown {
  const figures = outcomes.map(({ rig, store, tally }) => ({
    rig: rig.name,
    shows: rig.shows,
    store,
    counts: Object.fromEntries(tally.counts),
    notes: Object.fromEntries(tally.notes),
    problems: tally.problems,
  }));
  return { ...rest, outcomes: figures };
}

process.exit(await main());
