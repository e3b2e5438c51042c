// Replays recorded journals with the current engine: a change of the engine that breaks old runs fails here.
//
// REPRISE_RECORD=1 records missing journals. It never overwrites one, because the test is about old journals.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { systemTimers } from "../../src/base/index.ts";
import { commandTypeOf, END_ENTRIES, findJournalFault, type Entry } from "../../src/kernel/index.ts";
import { replayJournal, workflowBody, type Replay } from "../../src/workflow/index.ts";
import { SPECIMENS, type Specimen } from "./corpus/workflows.ts";
import { LiveRun, testHost } from "./live-run.ts";
import { findDivergence } from "./replay-property.ts";
import { randomSource, type RandomSource } from "./random-source.ts";

const FOLDER = fileURLToPath(new URL("corpus/", import.meta.url));

/** One journal of the corpus. */
interface Recording {
  readonly definitions: "workflows.ts";
  readonly specimen: string;
  readonly runId: string;
  readonly entries: readonly Entry[];
  readonly chain: string;
  readonly verdict: { readonly status: "same" } | { readonly status: "mismatch"; readonly message: string };
}

// ── recording ──

/** One completion per commit, in a seeded order, with the results of the functions. */
async function play(run: LiveRun, random: RandomSource, specimen: Specimen): Promise<void> {
  while (!run.isOver) {
    run.now += 1 + random.below(1000);
    if (specimen.cancelled === true && run.entries.length > 4) await run.commit(run.cancels("recorded"));
    else if (run.execution.identity.id === "corpus-early" && !run.types.includes("PromiseResolved"))
      await run.commit(run.settles("reply", { value: 7 }));
    else if (run.execution.identity.id === "corpus-approvals" && !run.types.includes("PromiseResolved"))
      await run.commit(run.settles("go[bob]", { value: 7 }));
    else await step(run, random.pick(run.open()), random);
  }
}

async function step(run: LiveRun, command: string, random: RandomSource): Promise<void> {
  const type = commandTypeOf(command);
  if (type === "Timer") await run.commit(run.fires(command));
  else if (type === "Promise") await run.commit(run.timesOut(command));
  else if (type === "Settle")
    await run.commit(run.answersSettlement(command, random.happens(0.5) ? "accepted" : "no_run"));
  else if (type === "ChildWorkflow") {
    const failed = random.happens(0.3);
    await run.commit(
      run.answerOf(command, failed ? { error: new RangeError("too much") } : { value: random.below(100) }),
    );
  } else await run.finish(command);
}

function pinned(verdict: Replay): Recording["verdict"] {
  return verdict.status === "same" ? { status: "same" } : { status: "mismatch", message: verdict.message };
}

async function record(name: string, specimen: Specimen): Promise<Recording> {
  const runId = `corpus-${name}`;
  const recordedBy = specimen.recordedBy ?? specimen.definition;
  // Stacks contain paths of the machine.
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    const random = randomSource(specimen.seed);
    let run = await LiveRun.start(recordedBy, specimen.input, { id: runId });
    await play(run, random, specimen);
    if (specimen.unfinished === true)
      run = await LiveRun.resume(recordedBy, run.entries.slice(0, Math.ceil(run.entries.length / 2)), { id: runId });
    const { entries, chain } = run;
    const verdict = pinned(await replay(specimen, runId, entries, chain));
    return { definitions: "workflows.ts", specimen: name, runId, entries, chain, verdict };
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function replay(specimen: Specimen, runId: string, entries: readonly Entry[], chain: string): Promise<Replay> {
  const facts = { id: runId, generation: 0 };
  return replayJournal(workflowBody(specimen.definition), {
    identity: facts,
    entries,
    chain,
    host: testHost([]),
    timers: systemTimers,
  });
}

if (process.env["REPRISE_RECORD"] === "1")
  for (const [name, specimen] of Object.entries(SPECIMENS)) {
    const path = join(FOLDER, `${name}.json`);
    if (!existsSync(path))
      writeFileSync(path, `${JSON.stringify(await record(name, specimen), null, 1)}\n`, { flag: "wx" });
  }

// ── replaying ──

const recordings = new Map(
  readdirSync(FOLDER)
    .filter((file) => file.endsWith(".json"))
    .map((file) => [file.slice(0, -".json".length), JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as Recording]),
);

test("every journal of the corpus has a workflow, and every workflow a journal", () => {
  expect([...recordings.keys()].sort()).toEqual(Object.keys(SPECIMENS).sort());
});

for (const [name, { specimen, runId, entries, chain, verdict }] of recordings) {
  const found = SPECIMENS[specimen];
  test(`corpus: the journal of ${name} is intact and replays with the recorded verdict: ${verdict.status}`, async () => {
    expect(specimen).toBe(name);
    expect(found).toBeDefined();
    expect(findJournalFault(entries, { head: entries.length, chain })).toBeUndefined();
    const today = await replay(found!, runId, entries, chain);
    expect(pinned(today)).toEqual(verdict);
    if (today.status === "same") expect(today.digest).toBe(`sha256:${chain}`);
  });

  test(`corpus: damage to the journal of ${name} is detected`, () => {
    const damaged = entries.map((entry, index) => (index === 1 ? { ...entry, data: `${entry.data} ` } : entry));
    expect(findJournalFault(damaged, { head: entries.length, chain })?.seq).toBe(2);
    expect(findJournalFault(entries.slice(0, -1), { head: entries.length, chain })?.problem).toContain("says");
  });

  if (verdict.status === "same")
    test(`ACCEPTANCE 37: ${name} killed at every commit and resumed ends with the same journal`, async () => {
      const fixed = { id: runId };
      const whole = await LiveRun.resume(found!.definition, entries, fixed);
      expect(whole.stop).toBeUndefined();
      const played = await LiveRun.start(found!.definition, found!.input, fixed);
      if (!END_ENTRIES.includes(entries.at(-1)!.type)) return;
      const limit = Error.stackTraceLimit;
      Error.stackTraceLimit = 0;
      try {
        await play(played, randomSource(found!.seed), found!);
      } finally {
        Error.stackTraceLimit = limit;
      }
      expect(played.chain).toBe(chain);
      for (let cut = 1; cut < entries.length; cut += 1)
        expect(await findDivergence(found!.definition, played, cut)).toBeUndefined();
    });
}
