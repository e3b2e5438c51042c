// Every verb of the row port (rows.ts) has one meaning: the same random calls on SQLite, over a working set and outside of a
// transaction have the same answers and leave the same rows. REPRISE_SEEDS=n for more seeds.

import { expect, test } from "vitest";
import { drawInt } from "../../src/base/index.ts";
import { RandomCalls, type Call, type LooseRows } from "./verbs/random-calls.ts";
import { RandomRows } from "./verbs/random-rows.ts";
import { RemoteTwin, SqliteTwin } from "./verbs/row-twins.ts";

const SEEDS = Number(process.env["REPRISE_SEEDS"] ?? 40);
const FIRST = Number(process.env["REPRISE_FIRST_SEED"] ?? 1);
const TRANSACTIONS = 6;

interface World extends Disposable {
  readonly draw: (max: number) => number;
  readonly calls: RandomCalls;
  readonly sqlite: SqliteTwin;
  readonly remote: RemoteTwin;
}

function newWorld(seed: number): World {
  let index = 0;
  const draw = (max: number): number => drawInt(BigInt(seed), "verbs", index++, Math.max(1, max));
  const sqlite = new SqliteTwin(draw(2) === 0);
  const remote = new RemoteTwin();
  const calls = new RandomCalls(new RandomRows(draw), sqlite);
  calls.fill();
  remote.load(sqlite.dump());
  return { draw, calls, sqlite, remote, [Symbol.dispose]: () => sqlite.close() };
}

function compare(calls: readonly Call[], answers: readonly unknown[], expected: readonly unknown[]): void {
  for (const [at, call] of calls.entries()) {
    const before = calls.slice(0, at + 1).map(({ text }) => text);
    expect(call.view(answers[at] as never), before.join("\n")).toEqual(call.view(expected[at] as never));
  }
}

for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
  for (const mode of ["write", "claim"] as const) {
    test(`random verbs ${seed} have the same results on SQLite and in a working set, mode ${mode}`, async () => {
      using world = newWorld(seed);
      const { draw, sqlite, remote } = world;
      for (let transaction = 0; transaction < TRANSACTIONS; transaction++) {
        const calls: Call[] = [];
        const expected: unknown[] = [];
        sqlite.begin();
        for (let count = 1 + draw(draw(3) === 0 ? 40 : 8); count > 0; count--) {
          const call = world.calls.call();
          calls.push(call);
          expected.push(call.run(sqlite.rows as unknown as LooseRows));
        }
        sqlite.commit();
        const mayGuess = draw(2) === 0;
        const answers = await remote
          .transact(mode, mayGuess, (rows) => calls.map((call) => call.run(rows as unknown as LooseRows)))
          .catch((error: unknown) => {
            throw new Error(calls.map(({ text }) => text).join("\n"), { cause: error });
          });
        compare(calls, answers, expected);
        expect(remote.dump(), calls.map(({ text }) => text).join("\n")).toEqual(sqlite.dump());
      }
    });
  }

  test(`random reads ${seed} have the same results on SQLite and outside of a transaction`, async () => {
    using world = newWorld(seed);
    const calls = Array.from({ length: 60 }, () => world.calls.read());
    const expected = calls.map((call) => call.run(world.sqlite.rows as unknown as LooseRows));
    const read = (rows: unknown): unknown[] => calls.map((call) => call.run(rows as LooseRows));
    compare(calls, await world.remote.read(read), expected);
    compare(calls, await world.remote.transact("read", true, read), expected);
  });
}
