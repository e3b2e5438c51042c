// Large bundle: writes and checks the bundle of a long journal in a process with little memory (memory.test.ts).

import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { CHAIN_START, chainAfter, markOf, type Entry, type EntryType } from "../../src/kernel/index.ts";
import {
  checkBundle,
  signingKeyOf,
  writeBundle,
  type BundledRun,
  type JournalSource,
} from "../../src/receipts/index.ts";

const [file = "", count = "0"] = process.argv.slice(2);
const head = Number(count);
const key = signingKeyOf(Buffer.alloc(32, 7), "edge7");
const payload = "x".repeat(300);

function* entries(): Generator<Entry & { readonly chain: string }> {
  let chain = CHAIN_START;
  for (let seq = 1; seq <= head; seq += 1) {
    const index = seq - 2;
    const [type, command, data]: [EntryType, string, string] =
      seq === 1
        ? ["RunStarted", "", '{"definition":"many","flags":[1],"input":4,"version":1}']
        : ["StateSet", `State(${index})`, `{"index":${index},"key":"k","value":"${payload}"}`];
    chain = chainAfter(chain, type, command, data);
    yield { seq, type, command, data, at: 1_763_280_000_000 + seq, mark: markOf(chain), chain };
  }
}

const journal: JournalSource = {
  async *pages() {
    let page: Entry[] = [];
    for (const { chain: _, ...entry } of entries()) {
      page.push(entry);
      if (page.length < 500) continue;
      yield page;
      page = [];
    }
    yield page;
  },
};
let chain = CHAIN_START;
for (const entry of entries()) chain = entry.chain;
const counts = { arrivals: 0, read: 0, unread: 0, lostTurns: 0, priority: 0, generation: 0, version: 1 };
const run: BundledRun = {
  id: "many",
  definition: "many",
  kind: "workflow",
  status: "waiting",
  tags: [],
  createdAt: 0,
  ...counts,
};
const out = createWriteStream(file, { flags: "wx" });
for await (const line of writeBundle(
  { run, head, chain, runtimes: [], journal, parts: {} },
  { form: "full", key, engine: "e/0" },
))
  if (!out.write(`${line}\n`)) await once(out, "drain");
out.end();
await once(out, "finish");
for await (const { problem, signature, entries: read } of checkBundle(
  { read: (start) => createReadStream(file, { start }) },
  [key],
))
  process.stdout.write(`${JSON.stringify({ problem: problem ?? null, signature: signature.status, read })}\n`);
