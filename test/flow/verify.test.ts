// Verify: the differences that a replay finds, and those it must not report.

import { expect, test } from "vitest";
import { flow, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate, rejection } from "../engine/world.ts";

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

test("an input that a call now passes to its child, or cannot compute, is a mismatch", async () => {
  let now: "same" | "other" | "throws" = "same";
  const child = workflow("child", { input: typed<number>() }, async (_ctx, cents) => cents);
  const pay = flow("pay", { input: typed<number>() })
    .call("kid", ["input"], child, ({ input }) => {
      if (now === "throws") throw new Error("now");
      return now === "same" ? input : input + 1;
    })
    .output(["kid"], ({ kid }) => kid);
  await using engine = await createTestEngine({ definitions: [pay, child] });
  const run = await engine.start(pay, 5);
  expect(await run.result()).toBe(5);
  expect(await run.verify()).toMatchObject({ status: "same" });
  now = "other";
  expect(await run.verify()).toMatchObject({
    status: "mismatch",
    where: "kid",
    message: "the journal recorded another input of kid than the code now passes.",
  });
  now = "throws";
  expect(await run.verify()).toMatchObject({ status: "mismatch", where: "kid" });
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
