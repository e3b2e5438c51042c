// Values: what nodes return and receive, and what is rejected as a value.

import { expect, test } from "vitest";
import { flow, typed, type Run } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";

type Anything = unknown;

/** A flow whose every function in memory gives what `make` makes, one at a time. */
function flowOf(make: () => Anything) {
  return flow("any", { input: typed<string>() })
    .action("caught", ["input"], { catch: () => make() }, (_ctx, { input }): Anything => {
      if (input === "catch") throw new Error("no");
      return 1;
    })
    .inline("kept", ["input"], ({ input }): Anything => (input === "inline" ? make() : 1))
    .when(
      "test",
      ["input"],
      ({ input }) => (input === "when" ? (make() as boolean) : true),
      (branch) => branch.inline("taken", ["input"], () => true),
    )
    .spread(
      "items",
      ["kept"],
      ({ kept }) => (kept === 1 ? [1] : [kept]),
      (_ctx, item) => item,
    )
    .output(["input", "items", "caught", "taken"], ({ input, items }) => (input === "output" ? make() : items));
}

async function causeOf(run: Run<any>): Promise<unknown> {
  return ((await rejection(run.result())) as { cause?: unknown }).cause;
}

test("an inline function that returns a promise fails the run with its node, without an unhandled rejection", async () => {
  // Rejected: were it dropped, the process would end.
  const any = flowOf(() => Promise.reject(new Error("unheard")));
  await using engine = await createTestEngine({ definitions: [any] });
  for (const [where, node] of [
    ["inline", "kept"],
    ["catch", "caught"],
    ["when", "test?"],
    ["output", "[output]"],
  ] as const) {
    const run = await engine.start(any, where);
    expect(await causeOf(run)).toMatchObject({ code: "BAD_FLOW", message: expect.stringContaining(`Node ${node}:`) });
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
});

test("items and the input of a call cannot be promises either", async () => {
  const leaf = flow("leaf", { input: typed<number>() })
    .inline("n", ["input"], ({ input }) => input)
    .output(["n"], ({ n }) => n);
  const later = flow("later", { input: typed<boolean>() })
    .when(
      "items",
      ["input"],
      ({ input }) => input,
      (branch) =>
        branch.spread(
          "all",
          ["input"],
          () => Promise.resolve([1]) as never as number[],
          (_ctx, item) => item,
        ),
    )
    .otherwise("items", (branch) => branch.call("kid", ["input"], leaf, () => Promise.resolve(1) as never as number))
    .output(["all", "kid"], ({ all, kid }) => all ?? kid);
  await using engine = await createTestEngine({ definitions: [later, leaf] });
  for (const [input, node] of [
    [true, "all[]"],
    [false, "kid"],
  ] as const)
    expect(await causeOf(await engine.start(later, input))).toMatchObject({
      code: "BAD_FLOW",
      message: expect.stringContaining(`Node ${node}: its function returned a promise`),
    });
});

test("a value that cannot be stored fails the run, names its node, and replays to the same result", async () => {
  for (const make of [
    () => () => 1,
    () => Symbol("no"),
    () => "\ud800",
    () => JSON.parse('{"__proto__":{}}') as unknown,
  ]) {
    const any = flowOf(make);
    await using engine = await createTestEngine({ definitions: [any] });
    const run = await engine.start(any, "inline");
    expect(await causeOf(run)).toMatchObject({
      message: expect.stringContaining("The value of node kept cannot be stored"),
    });
    expect(await run.verify()).toMatchObject({ status: "same" });
    const entries = [];
    for await (const { type, command } of run.journal()) entries.push(`${type} ${command ?? ""}`);
    expect(entries).toContain("NodeFailed kept");
  }
});

test("items that are not a list, or have holes, fail the run", async () => {
  const listed = flow("listed", { input: typed<string>() })
    .spread(
      "all",
      ["input"],
      ({ input }) => {
        if (input === "holes") return Object.assign([], { 1: 1 });
        return (input === "set" ? new Set([1]) : input) as never as number[];
      },
      (_ctx, item) => item,
    )
    .output(["all"], ({ all }) => all);
  await using engine = await createTestEngine({ definitions: [listed] });
  expect(await causeOf(await engine.start(listed, "holes"))).toMatchObject({
    code: "NOT_DATA",
    message: "Item 0 of all is a hole in the list, which cannot be stored. Use undefined or null.",
  });
  expect(await causeOf(await engine.start(listed, "set"))).toMatchObject({
    code: "BAD_FLOW",
    message: "Flow listed: expected a list as the items of all, got Set(1) { 1 }.",
  });
  expect(await causeOf(await engine.start(listed, "text"))).toMatchObject({ code: "BAD_FLOW" });
});

test("items are passed unchanged: errors among them keep their fields", async () => {
  const errors = flow("errors", { input: typed<void>() })
    .spread(
      "tried",
      ["input"],
      { settle: true },
      () => [1],
      (): number => {
        throw Object.assign(new Error("broken"), { code: "E_PIPE", status: 503 });
      },
    )
    .spread(
      "reported",
      ["tried"],
      ({ tried }) => tried,
      (_ctx, one) => (one.status === "rejected" ? (one.reason as { code: string; status: number }) : undefined),
    )
    .output(["reported"], ({ reported }) => [reported[0]?.code, reported[0]?.status]);
  await using engine = await createTestEngine({ definitions: [errors] });
  expect(await (await engine.start(errors, undefined)).result()).toEqual(["E_PIPE", 503]);
});

test("a node's modification of a value is not visible to other nodes, items or attempts", async () => {
  const seen: string[] = [];
  const shared = flow("shared", { input: typed<{ list: number[] }>() })
    .action("a", ["input"], (_ctx, { input }) => {
      input.list.push(99);
      return { list: [3, 1, 2] };
    })
    .action(
      "b",
      ["a", "input"],
      (_ctx, { a, input }) => (seen.push(`b ${a.list.join()} ${input.list.join()}`), a.list.sort().length),
    )
    .action("c", ["a"], { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, (ctx, { a }) => {
      seen.push(`c ${a.list.join()}`);
      a.list.push(7);
      if (ctx.attempt === 1) throw new Error("once");
      return a.list.length;
    })
    .inline("kept", ["a"], ({ a }) => ({ list: a.list }))
    .inline("spoils", ["kept"], ({ kept }) => kept.list.sort().join(""))
    .action("d", ["kept", "b"], (_ctx, { kept }) => kept.list.join())
    .output(["c", "d", "spoils", "a"], ({ c, d, spoils, a }) => ({ c, d, spoils, a: a.list }));
  await using engine = await createTestEngine({ definitions: [shared] });
  const run = await engine.start(shared, { list: [0] });
  await engine.clock.advance("1 second");
  expect(await run.result()).toEqual({ c: 4, d: "3,1,2", spoils: "123", a: [3, 1, 2] });
  expect(seen.toSorted()).toEqual(["b 3,1,2 0", "c 3,1,2", "c 3,1,2"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retry passes the input again to a first inline node that threw", async () => {
  let broken = true;
  const first = flow("first", { input: typed<number>() })
    .inline("checked", ["input"], () => {
      if (broken) throw new Error("not yet");
    })
    .action("a", ["input"], (_ctx, { input }) => `got ${input}`)
    .output(["a", "checked"], ({ a }) => a);
  await using engine = await createTestEngine({ definitions: [first] });
  const run = await engine.start(first, 7);
  expect(await causeOf(run)).toMatchObject({ message: "not yet" });
  broken = false;
  await run.retry();
  expect(await run.result()).toBe("got 7");
});
