// Executions: a program in many timings, and the claims of its runs.

import { aesGcm } from "reprise";
import { createTestEngine } from "reprise/testing";
import { expect } from "vitest";
import { storeAround } from "../engine/world.ts";
import type { Entry, RunRecord } from "../../src/kernel/index.ts";
import { deriveClaim, storeJournal } from "../../src/receipts/index.ts";
import { PROGRAMS } from "./programs.ts";
import { Timing } from "./timing.ts";

const codec = aesGcm({ keys: { one: Buffer.alloc(32, 7).toString("base64") }, current: "one" });

/** Engines at the same time: they mostly wait for idle moments of the thread, which they share. */
const AT_ONCE = 20;

export type Kind = keyof typeof PROGRAMS;

export interface Executed {
  readonly timing: Timing;
  /** By id and generation. */
  readonly runs: ReadonlyMap<
    string,
    { readonly record: RunRecord; readonly entries: readonly Entry[]; readonly key: string }
  >;
}

async function execute(kind: Kind, seed: number, isEncrypted: boolean): Promise<Executed> {
  const timing = new Timing(seed);
  const program = PROGRAMS[kind](timing);
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({
    definitions: program.definitions as never[],
    store: source,
    outbox: { mail: () => {} },
    worker: { concurrency: timing.chance.pick([1, 2, 8]), lease: "1 minute", labels: [] },
    ...(isEncrypted && { codec }),
  });
  const runs: [string, { record: RunRecord; entries: readonly Entry[]; key: string }][] = [];
  for (const id of await program.drive(engine as never))
    for (let generation = 0; ; generation += 1) {
      const record = await source.store.findRun(id, generation);
      if (record === undefined) break;
      const entries = await source.store.readJournal(record.run, 0);
      const { key } = await deriveClaim(record, storeJournal(source.store, record));
      runs.push([`${id}#${generation}`, { record, entries, key }]);
    }
  return { timing, runs: new Map(runs) };
}

export async function executeAll(kind: Kind, count: number, isEncrypted: boolean): Promise<readonly Executed[]> {
  const executed: Executed[] = [];
  while (executed.length < count) {
    const seeds = Array.from({ length: Math.min(AT_ONCE, count - executed.length) }, (_, n) => executed.length + n);
    executed.push(...(await Promise.all(seeds.map((seed) => execute(kind, seed, isEncrypted)))));
  }
  return executed;
}

/** The claims of each program, on every store. A change here is a change of what is hashed: the types of artifacts need another version. */
const CLAIMS: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  workflow: {
    "order#0": "82548f749b077a92a8a2c0c5a26906aadaa7dc530246f4f8b3abd0e96d0a6a54",
    "order#1": "b337825da3d9dcf88048dd7812eeeb6af15a0a3525ce50edb37165390eb7ffac",
    "asked-1#0": "eb0e7f7c36629ea5d8d9281c9a2c3e7ff4cf529a1d8ba56ed3875da7a8e5d263",
    "asked-2#0": "eb0e7f7c36629ea5d8d9281c9a2c3e7ff4cf529a1d8ba56ed3875da7a8e5d263",
  },
  graph: {
    "shop#0": "c9007437a89139f33276428397395025944a5188451b9dab5e0dd08dced34578",
    "forked#0": "f7ff4c6cb4bb6ed78cbcd2a4fe07a590da5b75a7023a6b40c473b22baf814fee",
  },
  flow: { "pipeline#0": "45947af3e289bd9e31027a23a9be1d2d37660d79646eaf6ce63ef1733ace6bd4" },
};

/** Every timing has the claims written above, and the timings are different: hardly two journals are equal, and some runs failed first. */
export async function expectOneClaim(kind: Kind, timings: number, isEncrypted: boolean): Promise<void> {
  const executed = await executeAll(kind, timings, isEncrypted);
  for (const [seed, { runs }] of executed.entries()) {
    const ends = [...runs.values()].map(({ record }) => record.status);
    expect({ seed, ends }).toEqual({ seed, ends: ends.map((end) => (end === "continued" ? end : "completed")) });
    const keys = Object.fromEntries([...runs].map(([id, { key }]) => [id, key]));
    expect({ seed, ...keys }).toEqual({ seed, ...CLAIMS[kind] });
  }
  const main = executed.map(({ runs }) => [...runs.values()][0]!);
  expect(new Set(main.map(({ record }) => record.chain)).size).toBeGreaterThan(timings / 2);
  expect(new Set(main.map(({ entries }) => entries.length)).size).toBeGreaterThan(1);
  const retried = main.map(({ entries }) => entries.some(({ type }) => type === "RunRetried"));
  expect(new Set(retried)).toEqual(new Set([true, false]));
}

/** Each kind, with and without encryption. */
export const CASES = (Object.keys(PROGRAMS) as Kind[]).flatMap((kind) => [
  { kind, how: "plain", isEncrypted: false },
  { kind, how: "encrypted", isEncrypted: true },
]);
