// Two workers that execute the same pure steps at once on a server: every result is right, and different results are found.

import { expect, test } from "vitest";
import { createEngine, task, workflow, type Engine, type StoreSource } from "reprise";
import type { MemoGroup, Store } from "../../src/kernel/index.ts";
import { mysql, postgres } from "../../src/stores/index.ts";
import { createGate } from "../engine/world.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const RUNS = 60;
const INPUTS = 5;

/** A store that the test can read through the connections of its engine. */
function readable(source: StoreSource): StoreSource & { store(): Store } {
  let opened: Store | undefined;
  return {
    "~open": async (options) => (opened = await source["~open"](options)),
    store: () => opened!,
  };
}

async function groupsIn(store: Store): Promise<readonly MemoGroup[]> {
  return (await store.listMemos({ limit: 1_000 })).groups;
}

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `two workers on ${kind}`, () => {
    const at = (url: string): ReturnType<typeof readable> => readable(kind === "postgres" ? postgres(url) : mysql(url));

    test("reuse each other's results, and execute no known step", { timeout: 60_000 }, async () => {
      await using database = await freshDatabase(kind);
      let calls = 0;
      const square = task("square", { pure: "1" }, async (_ctx, n: number) => ((calls += 1), n * n));
      const squares = workflow("squares", async (ctx, n: number) => [
        await ctx.task(square, n),
        await ctx.run("cube", n, (_op, m) => ((calls += 1), m ** 3), { pure: "1" }),
      ]);
      const definitions = [square, squares];
      const [one, two] = [at(database.url), at(database.url)];
      await using first = await createEngine({ store: one, definitions, logger: SILENT });
      await using second = await createEngine({ store: two, definitions, logger: SILENT });
      const results = async (engines: readonly Engine[]): Promise<unknown[]> => {
        const runs = Array.from({ length: RUNS }, (_, n) => engines[n % engines.length]!.start(squares, n % INPUTS));
        return Promise.all(runs.map(async (run) => (await run).result()));
      };
      const expected = Array.from({ length: RUNS }, (_, n) => [(n % INPUTS) ** 2, (n % INPUTS) ** 3]);
      expect(await results([first, second] as unknown as Engine[])).toEqual(expected);
      const before = calls;
      expect(await results([second, first] as unknown as Engine[])).toEqual(expected);
      expect(calls).toBe(before);
      const groups = await groupsIn(two.store());
      expect(groups.map(({ status }) => status)).toEqual(Array.from({ length: 2 * INPUTS }, () => "known"));
    });

    test("that return different results switch the memo of the input off for both", { timeout: 60_000 }, async () => {
      await using database = await freshDatabase(kind);
      const gates = [createGate(), createGate()];
      let calls = 0;
      const draw = workflow("draw", (ctx) =>
        ctx.run(
          "draw",
          "x",
          async () => {
            const call = calls++;
            await gates[call]?.wait();
            return call;
          },
          { pure: "1" },
        ),
      );
      const [one, two] = [at(database.url), at(database.url)];
      await using first = await createEngine({ store: one, definitions: [draw], logger: SILENT });
      await using second = await createEngine({ store: two, definitions: [draw], logger: SILENT });
      const runs = [await first.start(draw, undefined, { id: "a" })];
      await gates[0]!.reached;
      runs.push(await second.start(draw, undefined, { id: "b" }));
      await gates[1]!.reached;
      for (const gate of gates) gate.open();
      await Promise.all(runs.map((run) => run.result()));
      const [group] = await groupsIn(one.store());
      expect(group).toMatchObject({ status: "divergent", rows: [{ runId: "a" }, { runId: "b" }] });
      expect(await (await first.start(draw)).result()).toBe(2);
      expect(await (await second.start(draw)).result()).toBe(3);
      expect((await groupsIn(two.store()))[0]!.rows).toHaveLength(2);
    });
  });
