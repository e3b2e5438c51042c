// Forks of flows whose spreads have a window, keys and settled failures.

import { expect, test } from "vitest";
import { flow, queue, typed } from "reprise";
import { createTestEngine } from "reprise/testing";

let ran: string[] = [];

test("a flow with windows, keys and settled items is forked as it was derived", async () => {
  const line = queue("keyed-parts", { perKey: { concurrency: 1 } });
  const many = flow("many", { input: typed<number>() })
    .action("seed", ["input"], (_ctx, { input }) => input)
    .spread(
      "wide",
      ["seed"],
      { concurrency: 2, settle: true },
      () => [1, 2, 3, 4, 5, 6],
      (_ctx, n) => {
        ran.push(`wide ${n}`);
        if (n === 3) throw new Error("three");
        return n;
      },
    )
    .spread(
      "keyed",
      ["seed"],
      { queue: line, key: (n) => `k${n % 2}` },
      () => [1, 2, 3],
      (_ctx, n) => (ran.push(`keyed ${n}`), n),
    )
    .action("last", ["wide", "keyed"], (_ctx, { wide }) => (ran.push("last"), wide.length))
    .output(["last", "wide"], ({ last, wide }) => [last, wide.filter(({ status }) => status === "rejected").length]);
  await using engine = await createTestEngine({ definitions: [many] });
  ran = [];
  const run = await engine.start(many, 1);
  await engine.clock.advance("1 minute");
  expect(await run.result()).toEqual([6, 1]);
  ran = [];
  const last = await run.fork({ at: "last" });
  await engine.clock.advance("1 minute");
  expect(await last.result()).toEqual([6, 1]);
  expect(ran).toEqual(["last"]);
  const item = await run.fork({ at: "wide[0]" });
  await engine.clock.advance("1 minute");
  expect(await item.result()).toEqual([6, 1]);
  expect(ran).toEqual(["last", "wide 1", "last"]);
  ran = [];
  const keyed = await run.fork({ answers: { "keyed[2]": 1 }, at: "keyed[0]" });
  await engine.clock.advance("1 minute");
  expect(await keyed.result()).toEqual([6, 1]);
  expect(ran).toEqual(["keyed 1", "last"]);
});
