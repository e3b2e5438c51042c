// Verify: the differences that a replay finds, and those it must not report.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createEngine, flow, typed } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, createGate, rejection } from "../engine/world.ts";

test("an items function that throws or returns no list in changed code is a mismatch, not a failure of the replay", async () => {
  let now: "list" | "throws" | "text" = "list";
  const list = flow("list", { input: typed<void>() })
    .spread(
      "all",
      ["input"],
      () => {
        if (now === "throws") throw new Error("now");
        return (now === "text" ? "text" : [1, 2]) as number[];
      },
      (_ctx, item) => item,
    )
    .output(["all"], ({ all }) => all);
  await using engine = await createTestEngine({ definitions: [list] });
  const run = await engine.start(list, undefined);
  await run.result();
  expect(await run.verify()).toMatchObject({ status: "same" });
  now = "throws";
  expect(await run.verify()).toMatchObject({ status: "mismatch", where: "all[]" });
  now = "text";
  expect(await run.verify()).toMatchObject({ status: "mismatch", where: "all[]" });
});

test("a flow whose values were changed in the database does not verify, although its code derives the same", async () => {
  using folder = createFolder();
  const path = folder.file("runs.db");
  const doubled = flow("doubled", { input: typed<number>() })
    .action("read", ["input"], (_ctx, { input }) => input)
    .output(["read"], ({ read }) => read);
  await using engine = await createEngine({ store: `sqlite:${path}`, definitions: [doubled] });
  const run = await engine.start(doubled, 100);
  expect(await run.result()).toBe(100);
  expect(await run.verify()).toMatchObject({ status: "same" });
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec(
    `update journal set data = cast(replace(cast(data as text), '100', '999') as blob) where type in ('NodeCompleted', 'RunCompleted')`,
  );
  db.close();
  const verdict = await run.verify();
  expect(verdict).toMatchObject({ status: "mismatch", where: expect.stringMatching(/^entry \d+$/) as string });
});

test("a join that never ran stays open in a replay", async () => {
  const gate = createGate();
  const open = flow("open", { input: typed<void>() })
    .action("a", ["input"], () => 1)
    .action("b", ["input"], async () => (await gate.wait(), 2))
    .inline("join", ["a", "b"], (): number => {
      throw new Error("it would throw");
    })
    .output(["join"], ({ join }) => join);
  await using engine = await createTestEngine({ definitions: [open] });
  const run = await engine.start(open, undefined);
  await gate.reached;
  await run.pause();
  gate.open();
  await engine.clock.advance("1 second");
  await run.terminate("enough");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a replay derives nothing after a function that threw", async () => {
  const broken = flow("broken", { input: typed<void>() })
    .action("a", ["input"], () => 1)
    .inline("b", ["a"], (): number => {
      throw new Error("b");
    })
    .inline("c", ["a"], (): number => {
      throw new Error("c");
    })
    .output(["b", "c"], ({ b, c }) => b + c);
  await using engine = await createTestEngine({ definitions: [broken] });
  const run = await engine.start(broken, undefined);
  await rejection(run.result());
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a replay finds a changed test, inline value or output, with both values", async () => {
  let version = 1;
  const changed = flow("changed", { input: typed<string>() })
    .action("a", ["input"], () => 1)
    .inline("b", ["a", "input"], ({ input }) => (input === "b" ? version : 0))
    .when(
      "w",
      ["a", "input"],
      ({ input }) => input !== "w" || version === 1,
      (branch) => branch.action("in", ["b"], () => 1),
    )
    .action("d", ["b", "in"], () => 2)
    .output(["d", "input"], ({ d, input }) => (input === "o" ? d + version : d));
  await using engine = await createTestEngine({ definitions: [changed] });
  for (const [input, where] of [
    ["b", "b"],
    ["w", "w?"],
    ["o", "[output]"],
  ] as const) {
    version = 1;
    const run = await engine.start(changed, input);
    await run.result();
    expect(await run.verify()).toMatchObject({ status: "same" });
    version = 2;
    expect(await run.verify()).toMatchObject({ status: "mismatch", where });
  }
});
