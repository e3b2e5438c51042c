// Changed inputs: on replay, the code passes another input than the journal recorded (seed 004, command-matcher.D5).

import { describe, expect, test } from "vitest";
import { FatalError, promise, signal, task, workflow, type WorkflowContext } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection, watchEvents } from "./world.ts";

const ports = { go: promise<string>(), ask: promise<string>() };
const charge = task("charge", (_ctx, cents: number) => `charged ${cents}`);
const receipt = workflow("receipt", { ports: { paid: signal<number>() } }, async (_ctx, cents: number) => cents);

type Determinism = "strict" | "per-type";
type Context = WorkflowContext<typeof ports>;

interface Case {
  readonly command: string;
  readonly what: string;
  readonly act: (ctx: Context, value: number) => unknown;
}

/** Every command that takes an input, and requests it with the value of the deployed version. */
const CASES: readonly Case[] = [
  { command: "Task(0)", what: "task input", act: (ctx, value) => ctx.task(charge, value) },
  {
    command: "Operation(0)",
    what: "step input",
    act: (ctx, value) => ctx.run("load", value, (_op, given) => given),
  },
  { command: "ChildWorkflow(0)", what: "child workflow input", act: (ctx, value) => ctx.child(receipt, value) },
  {
    command: "ChildWorkflow(0)",
    what: "signal value",
    act: async (ctx, value) => {
      const child = ctx.child(receipt, 1);
      await child.signal("paid", value);
      return child;
    },
  },
  { command: "Message(0)", what: "message payload", act: (ctx, value) => ctx.send("billing", value) },
  { command: "State(0)", what: "state value", act: (ctx, value) => ctx.state.set("total", value) },
  { command: "Timer(0)", what: "timer duration", act: (ctx, value) => void ctx.sleep(`${value} h`) },
  { command: "Promise(0)", what: "`show`", act: (ctx, value) => void ctx.promise("ask", { show: value }) },
];

const codeOf = ({ act }: Case, value: number, determinism: Determinism) =>
  workflow("order", { ports, determinism }, async (ctx) => {
    await act(ctx, value);
    return ctx.promise("go");
  });

const messageOf = ({ what, command }: Case): string =>
  `the journal recorded another ${what} than the code now passes (at ${command}`;

/** A store with the run `order-1`, which passed 1 and waits for `go`. */
async function deployFirst(one: Case, store: string): Promise<void> {
  const code = codeOf(one, 1, "strict");
  await using engine = await createTestEngine({ definitions: [code, charge, receipt], store });
  await engine.start(code, undefined, { id: "order-1" });
  await engine.clock.advance(0);
}

describe.each(CASES.map((one) => [one.what, one] as const))("a changed %s", (_what, one) => {
  test("does not stop a per-type run: an event, a log line and one entry tell it", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    await deployFirst(one, store);
    const changed = codeOf(one, 2, "per-type");
    const warnings: string[] = [];
    const logger = { info: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
    const deploy = () => createTestEngine({ definitions: [changed, charge, receipt], store, logger });
    using watched = watchEvents();
    const changes = () => watched.events.filter(({ event }) => event === "input.changed");
    {
      await using engine = await deploy();
      // A message makes a worker replay the run.
      await engine.get(changed, "order-1").resolve("ask", "");
      await engine.clock.advance(0);
      expect(changes()).toMatchObject([{ run: "order-1", definition: "order", step: one.command }]);
      expect((changes()[0] as { message: string }).message).toContain(messageOf(one));
      expect(warnings).toEqual([expect.stringContaining(messageOf(one))]);
    }
    {
      // The next replay finds the entry and does not repeat it.
      await using engine = await deploy();
      const run = engine.get(changed, "order-1");
      await run.resolve("go", "done");
      expect(await run.result()).toBe("done");
      expect(changes()).toHaveLength(1);
      const noted = (await collect(run.journal())).filter(({ type }) => type === "InputChanged");
      expect(noted).toMatchObject([{ command: one.command, data: { what: one.what } }]);
      expect(await run.verify()).toMatchObject({ status: "mismatch", where: one.command });
      expect(await run.replay({ strict: false })).toMatchObject({
        status: "same",
        warnings: [{ where: one.command, message: expect.stringContaining(messageOf(one)) as unknown }],
      });
    }
    {
      // The restored code matches the journal again; its verdict still mentions the difference.
      const restored = codeOf(one, 1, "per-type");
      await using engine = await createTestEngine({ definitions: [restored, charge, receipt], store });
      expect(await engine.get(restored, "order-1").verify()).toMatchObject({
        status: "same",
        inputChanges: [{ where: one.command, what: one.what }],
      });
    }
  });

  test("stops a strict run", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    await deployFirst(one, store);
    const changed = codeOf(one, 2, "strict");
    await using engine = await createTestEngine({ definitions: [changed, charge, receipt], store });
    const run = engine.get(changed, "order-1");
    const result = rejection(run.result());
    await run.resolve("go", "done");
    expect(await result).toMatchObject({ code: "DETERMINISM_VIOLATION", details: { where: one.command } });
    expect((await collect(run.journal())).map(({ type }) => type)).not.toContain("InputChanged");
  });
});

test("a crash before the commit of a note loses nothing: the next worker notes it", async () => {
  const [one] = CASES as [Case];
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  await deployFirst(one, store);
  const changed = codeOf(one, 2, "per-type");
  await using engine = await createTestEngine({ definitions: [changed, charge, receipt], store });
  const run = engine.get(changed, "order-1");
  await run.resolve("go", "done");
  await engine.crash();
  expect(await run.result()).toBe("done");
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types.filter((type) => type === "InputChanged")).toHaveLength(1);
});

test("the input of an attempt that failed is compared before the next attempt runs", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const given: number[] = [];
  const code = (value: number, fails: boolean) =>
    workflow("order", { determinism: "per-type" }, async (ctx) => {
      const load = (_op: unknown, input: number): number => {
        given.push(input);
        if (fails) throw new Error("not yet");
        return input;
      };
      return ctx.run("load", value, load, { retry: { maxAttempts: 3, baseDelay: "1 h" } });
    });
  {
    const first = code(1, true);
    await using engine = await createTestEngine({ definitions: [first], store });
    await engine.start(first, undefined, { id: "order-1" });
    await engine.clock.advance(0);
  }
  using watched = watchEvents();
  const second = code(2, false);
  await using engine = await createTestEngine({ definitions: [second], store });
  await engine.clock.advance("3 h");
  expect(await engine.get(second, "order-1").result()).toBe(2);
  expect(given).toEqual([1, 2]);
  expect(watched.events.filter(({ event }) => event === "input.changed")).toMatchObject([{ step: "Operation(0)" }]);
});

test("an unchanged input is not noted", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const everything = workflow("order", { ports, determinism: "per-type" }, async (ctx) => {
    for (const { act } of CASES) await act(ctx, 1);
    return ctx.promise("go");
  });
  const deploy = () => createTestEngine({ definitions: [everything, charge, receipt], store });
  {
    await using engine = await deploy();
    await engine.start(everything, undefined, { id: "order-1" });
    await engine.clock.advance(0);
  }
  using watched = watchEvents();
  await using engine = await deploy();
  await engine.get(everything, "order-1").resolve("go", "done");
  expect(await engine.get(everything, "order-1").result()).toBe("done");
  expect(watched.events.filter(({ event }) => event === "input.changed")).toEqual([]);
});

test("a run that noted a changed input can fail and be retried", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  let isBroken = true;
  const code = (value: number) =>
    workflow("order", { ports, determinism: "per-type" }, async (ctx) => {
      const paid = await ctx.task(charge, value);
      await ctx.promise("go");
      await ctx.run("ship", () => {
        if (isBroken) throw new FatalError("no stock");
      });
      return paid;
    });
  {
    await using engine = await createTestEngine({ definitions: [code(1), charge], store });
    await engine.start("order", undefined, { id: "order-1" });
    await engine.clock.advance(0);
  }
  const changed = code(2);
  await using engine = await createTestEngine({ definitions: [changed, charge], store });
  const run = engine.get(changed, "order-1");
  await run.resolve("go", "");
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED" });
  isBroken = false;
  await run.retry();
  expect(await run.result()).toBe("charged 1");
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types.filter((type) => type === "InputChanged")).toHaveLength(1);
  expect(await run.verify()).toMatchObject({ status: "mismatch", where: "Task(0)" });
});
