// The example agent with real processes: one is killed before or after each of its commits, another finishes the run.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Run } from "reprise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { agent, QUESTION } from "../../../examples/agent/agent.ts";
import type { LedgerLine } from "../../../examples/agent/outside.ts";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { findJournalFault, isTerminal, type Store } from "../../../src/kernel/index.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { finished as finishedProcess, ROOT, startNode } from "../../cli/cli-process.ts";
import type { Work } from "./agent-worker.ts";

type Kill = NonNullable<Work["kill"]>;

let folder: string;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reprise-agent-"));
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

async function startWorker(): Promise<ChildProcess> {
  const child = fork(new URL("./agent-worker.ts", import.meta.url), {
    execArgv: ["--conditions=reprise-source"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  children.add(child);
  child.once("exit", () => children.delete(child));
  await once(child, "message");
  return child;
}

/** What a run leaves behind, and what must not depend on who died when. */
interface Left {
  readonly output: string | null;
  /** The entries of the steps, byte for byte as they are stored: what changed, what follows, the key of the whole. */
  readonly steps: readonly string[];
  readonly checkpoints: readonly unknown[];
  /** The commands that have ended. */
  readonly ended: readonly string[];
  /** What the outside was called for, and with which keys. */
  readonly called: readonly string[];
}

const POLL = { interval: 20 };

/** Eve answers when she is asked, whoever asks. */
async function answer(store: Store, run: Run<typeof agent>): Promise<void> {
  const { run: number } = (await store.findRun(run.id))!;
  const types = async (): Promise<string[]> => (await store.readJournal(number, 0)).map(({ type }) => type);
  await expect.poll(types, POLL).toContain("PromiseCreated");
  await run.resolve("approval", { ok: true, by: "Eve" });
}

/** One run in a store of its own, by a process that is killed and one that is not. */
async function runThrough(finisher: ChildProcess, kill?: Kill): Promise<{ left: Left; killed: boolean }> {
  const name = join(folder, kill === undefined ? "undisturbed" : `${kill.when}-${kill.commit}`);
  const work = { path: `${name}.db`, ledger: `${name}.jsonl` };
  await using client = await createClient({ store: `sqlite:${work.path}`, definitions: [agent] });
  const run = await client.start(agent, QUESTION, { id: "ticket" });
  await using store = await openStore(work.path);
  const answered = answer(store, run);
  const finished = run
    .result({ timeout: "60 s" })
    .then(() => expect.poll(async () => (await store.info()).outbox.pending, POLL).toBe(0));
  let killed = false;
  if (kill !== undefined) {
    const victim = await startWorker();
    const died = once(victim, "exit");
    victim.send({ ...work, kill } satisfies Work);
    // With a number beyond its last commit it lives to see the end.
    killed = await Promise.race([died.then(() => true), finished.then(() => false)]);
    victim.kill("SIGKILL");
    await died;
  }
  finisher.send(work satisfies Work);
  await Promise.all([answered, finished]);
  const closed = once(finisher, "message");
  finisher.send("leave");
  await closed;
  expect((await run.verify()).status).toBe("same");
  return { left: await readLeft(store, run, work.ledger), killed };
}

async function openStore(path: string): Promise<Store & AsyncDisposable> {
  const store = await openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom });
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

async function readLeft(store: Store, run: Run<typeof agent>, ledger: string): Promise<Left> {
  expect(await store.check()).toEqual([]);
  const record = (await store.findRun(run.id))!;
  const entries = await store.readJournal(record.run, 0);
  expect(findJournalFault(entries, record)).toBeUndefined();
  const ended = entries.flatMap(({ type, command }) => (isTerminal(type) && command !== "" ? [command] : []));
  expect(new Set(ended).size, "a command ended twice").toBe(ended.length);
  const steps = entries.flatMap(({ type, data }) => (type === "StepCommitted" ? [data] : []));
  expect(new Set(steps).size, "a step was committed twice").toBe(steps.length);
  const checkpoints = await store.readCheckpoints(record.run, -1);
  const lines = readFileSync(ledger, "utf8").split("\n");
  const calls = lines.flatMap((line) => (line === "" ? [] : [JSON.parse(line) as LedgerLine]));
  return {
    output: await run.result(),
    steps,
    // Where a step stands in the journal depends on what else was taken in; what it says does not.
    checkpoints: checkpoints.map(({ step, key, label, state }) => [step, key, label, state]),
    ended: ended.toSorted(),
    called: [...new Set(calls.map(({ what, key }) => `${what} ${key}`))].toSorted(),
  };
}

/** Odd and even commits, before and after: a killed process is mostly waited for, so four go at once. */
const SERIES = [
  { when: "before", from: 1 },
  { when: "before", from: 2 },
  { when: "after", from: 1 },
  { when: "after", from: 2 },
] as const;

test(
  "the agent, its process killed before and after every commit: another finishes it, with the same states, checkpoints, steps and keys",
  { timeout: 480_000 },
  async () => {
    const [one, ...others] = await Promise.all(SERIES.map(startWorker));
    const { left: undisturbed } = await runThrough(one!);
    expect(undisturbed.output).toBe("Done: refunded 49.90 EUR. Sorry for the trouble.");
    expect(undisturbed.checkpoints).toHaveLength(10);
    expect(undisturbed.called.filter((call) => call.startsWith("refund"))).toHaveLength(1);
    const killsIn = async ({ when, from }: (typeof SERIES)[number], finisher: ChildProcess): Promise<number> => {
      for (let commit = from; ; commit += 2) {
        const { left, killed } = await runThrough(finisher, { when, commit });
        expect(left, `killed ${when} commit ${commit}`).toEqual(undisturbed);
        if (!killed) return (commit - from) / 2;
      }
    };
    const kills = await Promise.all([one!, ...others].map((finisher, index) => killsIn(SERIES[index]!, finisher)));
    const places = kills.reduce((sum, count) => sum + count);
    // No two checkpoints are one commit. What else shares one depends on how busy the machine is.
    expect(places).toBeGreaterThanOrEqual(2 * undisturbed.checkpoints.length);
    console.info(`killed at ${places} places: nothing lost, nothing doubled`);
  },
);

test("the story of the agent: a crash, the state after each step, a replay without calls, a fork with another answer", async () => {
  const main = join(ROOT, "examples/agent/main.ts");
  const { code, stdout, stderr } = await finishedProcess(startNode([main], { env: { TMPDIR: folder } }));
  expect(stderr).toBe("");
  expect(code).toBe(0);
  for (const line of [
    'Another worker takes over: "Done: refunded 49.90 EUR. Sorry for the trouble."',
    "The bank was called 2 times, with 1 key: the bank makes one refund.",
    "5          → approve     That much is too much.",
    "6 approved → tool        That much is too much.",
    "9 answered → END         Done: refunded 49.90 EUR. Sorry for the trouble.",
    "same, with 0 calls to the outside.",
    'From step 5: "I may not do that myself: a colleague will handle it. (Refused by Eve.)"',
    "The runs differ from step 6: a yes leads to tool, a no to think.",
    "The bank was called 2 times, as before.",
  ])
    expect(stdout).toContain(`${line}\n`);
  expect(readdirSync(folder).filter((name) => name.startsWith("reprise-agent-"))).toEqual([]);
});
