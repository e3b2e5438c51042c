// receipts: what it costs to take a run out of a store and to check it elsewhere. A run of 100,000 operations; the rate is entries per
// second of CPU time, so that a busy machine changes it little.
//
// The stages are measured alone (`chain`, `tree`, `claim`: entries in memory) and together (`bundle`: store to file, `verify`: levels 0
// and 1 of that file, `import`: the same, and its rows into a mirror).

import { createWriteStream, openSync, readSync, closeSync, rmSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemClock, systemRandom, systemTimers } from "../src/base/index.ts";
import { copyOfBundle } from "../src/cli/bundle-copy.ts";
import { CHAIN_START, chainAfter, type Entry, type RunRecord } from "../src/kernel/index.ts";
import {
  checkBundle,
  deriveClaim,
  leafHash,
  listJournal,
  MerkleTree,
  signingKeyOf,
  storeJournal,
  writeBundle,
  type BundleInput,
} from "../src/receipts/index.ts";
import { journalLine } from "../src/receipts/journal-tree.ts";
import { Mirror, type CopiedRun } from "../src/stores/maintenance/index.ts";
import { heldAfter, newToken, startWrite, turnWrite } from "../src/testing/store-cases/store-actions.ts";
import { storeOf, type AnyStore } from "./open-store.ts";
import { scaled, type Workload } from "./workload.ts";

const ENTRIES = 100_000;
const LIST = 1_000;

/** A run of sequential operations with an input and a result each, written without an engine. */
async function createRun(store: AnyStore, count: number): Promise<RunRecord> {
  const worker = await store.registerWorker("bench", 3_600_000);
  const claim = { worker, token: newToken() };
  const started = '{"definition":"checkout","flags":[1],"input":{"order":7},"version":1}';
  const [outcome] = await store.write([{ ...startWrite(`bench ${newToken()}`, { started }), claim }]);
  if (outcome.status !== "started") throw new Error(`The start was ${outcome.status}.`);
  const { run, id, head, chain } = outcome.record;
  let held = { run, id, head, chain, token: claim.token, read: 0, inbox: [] as never[] };
  for (let index = 0; index < count; index += LIST) {
    const entries = Array.from({ length: Math.min(LIST, count - index) }, (_, n) => operation(index + n));
    const write = turnWrite(store, held, { entries });
    await store.write([write]);
    held = { ...heldAfter(held, write), inbox: [] };
  }
  const end = [["RunCompleted", "", '{"output":{"total":1}}']] as const;
  await store.write([turnWrite(store, held, { entries: end, then: "completed" })]);
  await store.releaseWorker(worker);
  return (await store.findRun(id))!;
}

function operation(index: number): ["OperationCompleted", string, string, number] {
  const data = `{"index":${index},"input":{"item":${index},"sku":"abc-${index}"},"operationName":"reserve","result":{"held":true,"until":"2026-11-17T20:00:00.000Z"}}`;
  return ["OperationCompleted", `Operation(${index})`, data, index % 7];
}

const key = signingKeyOf(Buffer.alloc(32, 7), "bench");

async function writeFile(store: AnyStore, record: RunRecord, path: string, sample: () => void): Promise<void> {
  const {
    run,
    head,
    chain,
    runtime: _runtime,
    evidence: _evidence,
    parent: _parent,
    parentCommand: _command,
    ...row
  } = record;
  const { endedAt, errorCode, ...rest } = row;
  const bundled = {
    ...rest,
    ...(endedAt !== undefined && { endedAt }),
    ...(errorCode !== undefined && { errorCode }),
  };
  const source = { run: bundled, head, chain, runtimes: [], journal: storeJournal(store, { run, head }), parts: {} };
  const chunks = async function* (): AsyncGenerator<string> {
    let lines: string[] = [];
    for await (const line of writeBundle(source, { form: "full", key, engine: "reprise/bench" })) {
      if (lines.push(line) < LIST) continue;
      yield `${lines.join("\n")}\n`;
      lines = [];
      sample();
    }
    yield `${lines.join("\n")}\n`;
  };
  await pipeline(Readable.from(chunks()), createWriteStream(path, { mode: 0o600 }));
}

function fileInput(path: string, sample: () => void): BundleInput {
  return {
    async *read(from) {
      const file = openSync(path, "r");
      try {
        for (let at = from; ;) {
          const chunk = Buffer.alloc(256 * 1024);
          const length = readSync(file, chunk, 0, chunk.length, at);
          if (length === 0) return;
          at += length;
          sample();
          yield chunk.subarray(0, length);
        }
      } finally {
        closeSync(file);
      }
    },
  };
}

type Stage = (work: {
  readonly store: AnyStore;
  readonly record: RunRecord;
  readonly entries: readonly Entry[];
  readonly path: string;
  readonly sample: () => void;
}) => Promise<void>;

const STAGES: Readonly<Record<string, Stage>> = {
  async chain({ entries, record }) {
    let chain = CHAIN_START;
    for (const { type, command, data } of entries) chain = chainAfter(chain, type, command, data);
    if (chain !== record.chain) throw new Error("The chain is not that of the row.");
  },
  async tree({ entries }) {
    const tree = new MerkleTree();
    for (const entry of entries) tree.push(leafHash(journalLine(entry)));
    tree.root();
  },
  async claim({ entries, record }) {
    const { steps } = await deriveClaim(record, listJournal(entries));
    if (steps !== entries.length - 2) throw new Error(`Expected ${entries.length - 2} steps, got ${steps}.`);
  },
  bundle: ({ store, record, path, sample }) => writeFile(store, record, path, sample),
  async verify({ path, sample }) {
    for await (const { problem, signature } of checkBundle(fileInput(path, sample), [key]))
      if (problem !== undefined || signature.status !== "trusted")
        throw new Error(`The bundle is ${problem?.message ?? signature.status}.`);
  },
  async import({ path, sample }) {
    const file = `${path}.mirror.db`;
    const mirror = await Mirror.open({
      path: file,
      name: "bench",
      clock: systemClock,
      timers: systemTimers,
      random: systemRandom,
    });
    const copies = async function* (): AsyncGenerator<CopiedRun> {
      for await (const report of checkBundle(fileInput(path, sample), [key])) yield await copyOfBundle(report, path);
    };
    const [put] = await mirror.put(copies());
    await mirror.close();
    for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
    if (put?.status !== "added") throw new Error(`The run was ${put?.status}.`);
  },
};

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Without garbage, which the resident memory of a process would include. A second execution: collecting takes time. */
async function peakMemoryMb(run: (sample: () => void) => Promise<void>): Promise<number> {
  const used = (): number => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  // The memory of buffers is released a moment after their collection.
  for (let turn = 0; turn < 5; turn += 1) {
    used();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const before = used();
  let peak = before;
  await run(() => void (peak = Math.max(peak, used())));
  return (peak - before) / 2 ** 20;
}

export const receiptsWorkload: Workload = {
  name: "receipts",
  variants: Object.keys(STAGES),
  warmUp: 0.1,
  hasNoRate: true,
  withoutWorker: true,
  async run(rig, plan) {
    const stage = STAGES[plan.variant];
    if (stage === undefined) throw new Error(`Expected one of ${Object.keys(STAGES).join(", ")}.`);
    const store = storeOf(rig.engine);
    const record = await createRun(store, scaled(ENTRIES, plan));
    const path = join(rig.database.folder, `receipts-${record.run}.bundle`);
    const isInMemory = ["chain", "tree", "claim"].includes(plan.variant);
    const entries = isInMemory ? await store.readJournal(record.run, 0) : [];
    if (["verify", "import"].includes(plan.variant)) await writeFile(store, record, path, () => {});
    const work = { store, record, entries, path };
    const usageBefore = process.cpuUsage();
    const startedAt = performance.now();
    await stage({ ...work, sample: () => {} });
    const elapsedMs = performance.now() - startedAt;
    const { user, system } = process.cpuUsage(usageBefore);
    const memoryMb = isInMemory ? undefined : await peakMemoryMb((sample) => stage({ ...work, sample }));
    rmSync(path, { force: true });
    const extra = {
      perSecond: record.head / ((user + system) / 1e6),
      cpuUsPerStep: (user + system) / record.head,
      ...(memoryMb !== undefined && { memoryMb }),
    };
    return { runs: 1, steps: record.head, elapsedMs, latenciesMs: [], extra };
  },
};
