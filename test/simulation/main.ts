// npm run sim: runs seeds, one after the other, up to a count or a time limit.

import { parseArgs } from "node:util";
import type { Isolation } from "./store/sim-database.ts";
import { Coverage } from "./coverage.ts";
import { FAULTS, type Fault } from "./faults.ts";
import { findMutant, type Found } from "./find-mutants.ts";
import { MUTANTS } from "./mutants.ts";
import { readSavedSeeds, saveSeed } from "./saved-seeds.ts";
import { reproduction, shrink } from "./shrink.ts";
import { simulate, type SimOptions, type SimReport } from "./simulate.ts";
import type { StoreName } from "./stores.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    minutes: { type: "string" },
    first: { type: "string", default: "1" },
    seed: { type: "string" },
    store: { type: "string" },
    mode: { type: "string" },
    scenario: { type: "string" },
    faults: { type: "string" },
    always: { type: "string" },
    keep: { type: "string" },
    workers: { type: "string" },
    scale: { type: "string" },
    json: { type: "boolean", default: false },
    mutants: { type: "string" },
    "no-shrink": { type: "boolean", default: false },
  },
});

const SHOWN = 20;
const started = performance.now();
const coverage = new Coverage();
const failures: { readonly reproduction: string; readonly problems: readonly string[]; readonly saved: string }[] = [];

function listOf(text: string | undefined): readonly string[] | undefined {
  return text === undefined ? undefined : text === "none" ? [] : text.split(",");
}

function optionsOf(seed: number): SimOptions {
  const keep = listOf(values.keep);
  const store = (values.store ?? storeOf(seed)) as StoreName;
  return {
    seed,
    store,
    ...(store === "remote" && { mode: (values.mode ?? (seed % 16 === 0 ? "serial" : "rc")) as Isolation }),
    scenario: listOf(values.scenario),
    faults: listOf(values.faults) as readonly Fault[] | undefined,
    always: listOf(values.always) as readonly Fault[] | undefined,
    ...(keep !== undefined && { keep: new Set(keep) }),
    ...(values.workers !== undefined && { workers: Number(values.workers) }),
    ...(values.scale !== undefined && { scale: Number(values.scale) }),
  };
}

/** Both stores, in turn. */
function storeOf(seed: number): StoreName {
  return seed % 2 === 0 ? "remote" : "sqlite";
}

function say(text: string): void {
  if (!values.json) process.stdout.write(text);
}

function showProgress(isLast: boolean): void {
  const { seeds, runs, commits, faults, rollbacks, vanished, virtualMs } = coverage.totals;
  const minutes = (performance.now() - started) / 60_000;
  const line = `${seeds} seeds · ${Math.round(seeds / minutes)}/min · ${runs} runs · ${commits} commits · ${faults} faults · ${rollbacks} rollbacks, ${vanished} runs gone · ${(virtualMs / 3_600_000).toFixed(1)} simulated hours · ${failures.length} violations`;
  if (process.stdout.isTTY) say(`\r${line}${isLast ? "\n" : ""}`);
  else if (isLast || seeds % 100 === 0) say(`${line}\n`);
}

async function runSeed(options: SimOptions): Promise<SimReport> {
  const report = await simulate(options);
  coverage.add(report);
  if (report.problems.length > 0) await tellFailure(options, report);
  return report;
}

async function tellFailure(options: SimOptions, report: SimReport): Promise<void> {
  say(`\nFAIL ${report.problems[0]}\n  seed ${options.seed}, ${report.steps} steps, faults ${report.fired.length}\n`);
  const small = values["no-shrink"] ? { options, report, tries: 0 } : await shrink(options, report);
  const again = reproduction(small.options);
  const saved = values["no-shrink"] ? "" : saveSeed(small.options, small.report.problems[0]!);
  failures.push({ reproduction: again, problems: small.report.problems, saved });
  say(
    `  smaller after ${small.tries} tries: ${small.report.steps} steps, faults ${small.report.fired.join(" ") || "none"}\n`,
  );
  for (const problem of small.report.problems.slice(0, SHOWN)) say(`  ${problem}\n`);
  for (const [process, lines] of small.report.logs) {
    say(`  ${process}\n`);
    for (const line of lines.slice(-SHOWN)) say(`    ${line}\n`);
  }
  say(`repro:  ${again}\n${saved === "" ? "" : `saved:  ${saved}\n`}`);
}

async function main(): Promise<void> {
  for (const fault of [...(listOf(values.faults) ?? []), ...(listOf(values.always) ?? [])])
    if (!FAULTS.includes(fault as Fault))
      throw new Error(`There is no fault ${fault}; there are: ${FAULTS.join(", ")}.`);
  if (values.mutants !== undefined) return huntMutants(Number(values.mutants));
  if (values.seed !== undefined) {
    const report = await runSeed(optionsOf(Number(values.seed)));
    say(
      `digest ${report.digest.toString(16)}, ${report.parts.join("+")}, faults ${report.fired.join(" ") || "none"}\n`,
    );
  } else {
    for (const { options } of readSavedSeeds()) await runSeed(options);
    const minutes = values.minutes === undefined ? Infinity : Number(values.minutes);
    const seeds = values.seeds === undefined ? (minutes === Infinity ? 100 : Infinity) : Number(values.seeds);
    const first = Number(values.first);
    for (let seed = first; seed < first + seeds && performance.now() - started < minutes * 60_000; seed += 1) {
      await runSeed(optionsOf(seed));
      showProgress(false);
    }
  }
  showProgress(true);
  if (values.json) process.stdout.write(`${JSON.stringify(summary(), null, 2)}\n`);
  else if (coverage.totals.seeds >= 1_000 && coverage.blanks.length > 0)
    say(`never combined: ${coverage.blanks.join(", ")}\n`);
  process.exitCode = failures.length === 0 ? 0 : 1;
}

/** Runs each mutant on up to `count` seeds until it is found. */
async function huntMutants(seeds: number): Promise<void> {
  const found: Found[] = [];
  for (const mutant of MUTANTS) {
    const one = await findMutant(mutant, seeds);
    found.push(one);
    say(
      `${one.seed === undefined ? "not found" : `seed ${one.seed}`.padEnd(9)}  ${one.mutant}\n           ${one.by.slice(0, 200)}\n`,
    );
  }
  if (values.json) process.stdout.write(`${JSON.stringify(found, null, 2)}\n`);
  process.exitCode = found.every(({ seed }) => seed !== undefined) ? 0 : 1;
}

function summary(): unknown {
  const seconds = (performance.now() - started) / 1_000;
  const { user, system } = process.cpuUsage();
  const cpuSeconds = (user + system) / 1_000_000;
  const { seeds } = coverage.totals;
  return {
    ...coverage.totals,
    seconds: Math.round(seconds),
    seedsPerMinute: Math.round((seeds * 60) / seconds),
    /** The rate of a machine that does nothing else. */
    seedsPerCpuMinute: Math.round((seeds * 60) / cpuSeconds),
    fired: coverage.fired,
    met: coverage.table,
    neverMet: coverage.blanks,
    failures,
  };
}

await main();
