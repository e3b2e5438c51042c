// reprise doctor: what the store is, and whether everything in it is as it must be.

import { formatMs, RepriseError } from "../base/index.ts";
import { STATUSES, type Problem, type Store, type StoreInfo } from "../kernel/index.ts";
import { findingsOf, outboxLines, stoppedLines, waitingLines, type Findings } from "./doctor-findings.ts";
import { quietJson, quietLines } from "./doctor-holders.ts";
import type { GlobalOptions } from "./global-options.ts";
import { historyJson, historyLines } from "./history.ts";
import { reading } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { progressOf } from "./progress.ts";
import { isUnserved, waitingJson } from "./serving.ts";
import { isoOf } from "./shown-run.ts";
import { countOf, plain, sizeText } from "./text.ts";
import { workerLabel } from "./worker-label.ts";

export async function doctor(options: GlobalOptions): Promise<number> {
  return reading(options.store, async (store) => {
    const described = await describe(store);
    const { info, findings } = described;
    if (!options.json && info !== undefined) await printInfo(info, findings, store.now());
    const progress = progressOf("checking", "runs", () => store.now());
    const found = await store.check((done, total) => progress.at(done, total));
    progress.end();
    const problems = [...described.problems, ...found];
    if (options.json) await printJson(doctorJson(info, findings, problems, store.now()));
    else await printProblems(problems, problems.length > (findings?.problems.length ?? 0));
    return problems.length === 0 ? EXIT.ok : EXIT.problem;
  });
}

interface Described {
  readonly info: StoreInfo | undefined;
  readonly findings: Findings | undefined;
  readonly problems: readonly Problem[];
}

/** A store too damaged to be described is still worth a look. */
async function describe(store: Store): Promise<Described> {
  let info: StoreInfo | undefined;
  try {
    info = await store.info();
    const findings = await findingsOf(store);
    return { info, findings, problems: findings.problems };
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    const problem = { invariant: "I34 store health", run: undefined, seq: undefined, message: error.message };
    return { info, findings: undefined, problems: [problem] };
  }
}

async function printInfo(info: StoreInfo, findings: Findings | undefined, now: number): Promise<void> {
  const row = (name: string, value: string): Promise<void> => print(`${paint("dim", name.padEnd(12))}${value}`);
  await row("store", `${info.kind} ${plain(info.location)} (${sizeText(info.bytes)})`);
  await row("schema", String(info.schemaVersion));
  if (info.codecs.length > 0) await row("codec", info.codecs.map(plain).join(", "));
  await row("durability", `${durabilityText(info)}; each process chooses its own`);
  const counts = STATUSES.flatMap((status) =>
    info.runs[status] === undefined ? [] : [`${info.runs[status]} ${status}`],
  );
  await row("runs", counts.join(", ") || "none");
  await row("items", `${info.items.ready} ready, ${info.items.leased} leased, ${info.items.delayed} delayed`);
  const rows = async (name: string, lines: readonly string[]): Promise<void> => {
    for (const [index, line] of lines.entries()) await row(index === 0 ? name : "", paint("yellow", line));
  };
  if (findings !== undefined) {
    await rows("waiting", waitingLines(findings, now));
    await rows("stopped", stoppedLines(findings));
    await rows("held", quietLines(findings.quiet, now));
    await rows("history", historyLines(findings.history));
  }
  await rows("outbox", outboxLines(info, now));
  if (info.workers.length === 0) await row("workers", "none");
  for (const [index, { worker, name, until }] of info.workers.entries()) {
    const left = until - now;
    const state =
      left > 0
        ? paint("green", `lease for another ${formatMs(left)}`)
        : paint("yellow", `lease ran out ${formatMs(-left)} ago`);
    await row(index === 0 ? "workers" : "", `${workerLabel(name, worker)}, ${state}`);
  }
}

function durabilityText({ durability }: StoreInfo): string {
  return durability === "full" ? "full" : paint("yellow", "relaxed");
}

/** `inData`: not only in what workers do; that says itself what to do. */
async function printProblems(problems: readonly Problem[], inData: boolean): Promise<void> {
  await print("");
  if (problems.length === 0)
    return print(`${paint(["green", "bold"], "healthy")}  every invariant that the data shows holds`);
  await print(paint(["red", "bold"], countOf(problems.length, "problem", "problems")));
  for (const { invariant, run, seq, message } of problems) {
    const place = [run === undefined ? "" : `run ${plain(run)}`, seq === undefined ? "" : `entry ${seq}`].filter(
      (part) => part !== "",
    );
    await print(
      `  ${paint("red", "✖")} ${plain(invariant)}${place.length === 0 ? "" : `  ${place.join(", ")}`}\n      ${plain(message)}`,
    );
  }
  if (problems.some(({ invariant }) => invariant.startsWith("I12 ")))
    remark(
      `  ${paintError("dim", "note:")} a checkpoint says nothing its journal does not: while that is whole, nothing is lost`,
    );
  if (inData)
    remark(`  ${paintError("dim", "next:")} stop the workers, copy the database, and look at the runs named above`);
}

function doctorJson(
  described: StoreInfo | undefined,
  findings: Findings | undefined,
  problems: readonly Problem[],
  now: number,
): object {
  const waiting = findings?.waiting ?? [];
  return {
    healthy: problems.length === 0,
    store:
      described === undefined
        ? null
        : {
            ...described,
            workers: described.workers.map(({ worker, name, until }) => ({
              worker,
              name,
              until: isoOf(until),
              alive: until > now,
            })),
          },
    waiting: (findings?.versions ?? [])
      .filter(({ due }) => due > 0)
      .map(({ name, version, due, live }) => ({ definition: name, version, due, live })),
    dueNodes: waiting
      .filter(({ kind }) => kind === "node")
      .map(({ name, version, queue, count, oldestAt }) => ({
        definition: name,
        version,
        queue: queue ?? null,
        count,
        oldestAt: isoOf(oldestAt),
      })),
    unserved: waiting.filter(isUnserved).map(waitingJson),
    stopped: findings?.stopped ?? [],
    quiet: findings === undefined ? null : quietJson(findings.quiet),
    history: historyJson(findings?.history ?? []),
    problems: problems.map(({ invariant, run, seq, message }) => ({
      invariant,
      run: run ?? null,
      seq: seq ?? null,
      message,
    })),
  };
}
