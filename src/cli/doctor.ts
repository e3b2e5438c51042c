// reprise doctor: checks the store's integrity and reports stuck work.

import { formatMs, RepriseError } from "../base/index.ts";
import { RUN_STATUSES, type Problem, type Store, type StoreInfo } from "../kernel/index.ts";
import {
  divergentLines,
  logLines,
  readFindings,
  outboxLines,
  stoppedLines,
  pendingLines,
  type Findings,
} from "./doctor-findings.ts";
import { stalledJson, stalledLines } from "./doctor-leases.ts";
import type { GlobalOptions } from "./global-options.ts";
import { historyJson, historyLines } from "./store-history.ts";
import { withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { withStoreOption } from "./next-command.ts";
import { lineWidth, paint, paintError, print, printJson, remark } from "./output.ts";
import { createProgress } from "./progress.ts";
import { wrapWords } from "./explanation.ts";
import { isUnclaimable, pendingJson } from "./pending-work.ts";
import { isoOf } from "./run-format.ts";
import { pluralize, plain, sizeText } from "./text.ts";
import { workerLabel } from "./worker-label.ts";

export async function doctor(options: GlobalOptions): Promise<number> {
  return withStoreToRead(options.store, async (store) => {
    const described = await describe(store);
    const { info, findings } = described;
    if (!options.json && info !== undefined) await printInfo(info, findings, store.now());
    const progress = createProgress("checking", "runs", () => store.now());
    const found = await store.check((done, total) => progress.at(done, total));
    progress.end();
    const problems = [...described.problems, ...found];
    if (options.json) await printJson(doctorJson(info, findings, problems, store.now()));
    else await printProblems(problems, problems.length > (findings?.problems.length ?? 0));
    return problems.length === 0 ? EXIT.ok : EXIT.problem;
  });
}

/** What `doctor --json` prints. */
export async function doctorReport(store: Store): Promise<object> {
  const { info, findings, problems } = await describe(store);
  return doctorJson(info, findings, [...problems, ...(await store.check(() => undefined))], store.now());
}

interface Described {
  readonly info: StoreInfo | undefined;
  readonly findings: Findings | undefined;
  readonly problems: readonly Problem[];
}

/** If the store is too damaged to be described, the error is one more problem. */
async function describe(store: Store): Promise<Described> {
  let info: StoreInfo | undefined;
  try {
    info = await store.info();
    // Nothing in a mirror moves, so nothing is stuck.
    if (store.mirrorOf !== undefined) return { info, findings: undefined, problems: [] };
    const findings = await readFindings(store);
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
  await row("durability", `${durabilityText(info)} (each process sets its own)`);
  const counts = RUN_STATUSES.flatMap((status) =>
    info.runs[status] === undefined ? [] : [`${info.runs[status]} ${status}`],
  );
  await row("runs", counts.join(", ") || "none");
  await row("work items", `${info.items.ready} ready, ${info.items.leased} running, ${info.items.delayed} delayed`);
  const rows = async (name: string, lines: readonly string[]): Promise<void> => {
    const wrapped = lines.flatMap((line) =>
      line.includes("next: ") ? [line] : wrapWords(line, Math.max(40, lineWidth() - 14)),
    );
    for (const [index, line] of wrapped.entries()) await row(index === 0 ? name : "", paint("yellow", line));
  };
  if (findings !== undefined) {
    await rows("pending", pendingLines(findings, now));
    await rows("stopped", stoppedLines(findings));
    await rows("stalled", stalledLines(findings.stalled));
    await rows("history", historyLines(findings.history));
    await rows("memo", divergentLines(findings));
    await rows("federation", logLines(findings));
  }
  await rows("outbox", outboxLines(info, now));
  if (info.workers.length === 0) await row("workers", "none");
  for (const [index, { worker, name, until }] of info.workers.entries()) {
    const left = until - now;
    const state =
      left > 0
        ? paint("green", `live, lease expires in ${formatMs(left)}`)
        : paint("yellow", `lease expired ${formatMs(-left)} ago`);
    await row(index === 0 ? "workers" : "", `${workerLabel(name, worker)}, ${state}`);
  }
}

function durabilityText({ durability }: StoreInfo): string {
  return durability === "full" ? "full" : paint("yellow", "relaxed");
}

/** `inData`: the data has problems. The messages of worker problems contain the next step. */
async function printProblems(problems: readonly Problem[], inData: boolean): Promise<void> {
  await print("");
  if (problems.length === 0) return print(`${paint(["green", "bold"], "healthy")}  all integrity checks passed`);
  await print(paint(["red", "bold"], pluralize(problems.length, "problem", "problems")));
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
      `  ${paintError("dim", "note:")} checkpoints are derived from the journal; while the journal is intact, nothing is lost`,
    );
  const next = withStoreOption("stop the workers, copy the database, then: reprise show <id>");
  if (inData) remark(`  ${paintError("dim", "next:")} ${next}`);
}

function doctorJson(
  described: StoreInfo | undefined,
  findings: Findings | undefined,
  problems: readonly Problem[],
  now: number,
): object {
  const pending = findings?.pending ?? [];
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
    dueRuns: (findings?.versions ?? [])
      .filter(({ due }) => due > 0)
      .map(({ name, version, due, live }) => ({ definition: name, version, due, live })),
    dueNodes: pending
      .filter(({ kind }) => kind === "node")
      .map(({ name, version, queue, count, oldestAt }) => ({
        definition: name,
        version,
        queue: queue ?? null,
        count,
        oldestAt: isoOf(oldestAt),
      })),
    unclaimable: pending.filter(isUnclaimable).map(pendingJson),
    stopped: findings?.stopped ?? [],
    stalled: findings === undefined ? null : stalledJson(findings.stalled),
    history: historyJson(findings?.history ?? []),
    divergent: findings?.divergent ?? [],
    log: findings?.log ?? null,
    problems: problems.map(({ invariant, run, seq, message }) => ({
      invariant,
      run: run ?? null,
      seq: seq ?? null,
      message,
    })),
  };
}
