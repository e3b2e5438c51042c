// ctx.patched: code that changes while runs are in progress.

import { describe, expect, test } from "vitest";
import { promise, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection } from "./world.ts";

const ports = { go: promise<string>(), end: promise() };
const charge = task("charge", (_ctx, cents: number) => `charged ${cents}`);
const check = task("check", (_ctx, cents: number) => cents < 1_000);

const before = workflow("order", { ports }, async (ctx, cents: number) => {
  await ctx.promise("go");
  const paid = await ctx.task(charge, cents);
  await ctx.promise("end");
  return paid;
});
/** Step one: both paths. */
const patched = workflow("order", { ports }, async (ctx, cents: number) => {
  await ctx.promise("go");
  const checked = ctx.patched("check first") ? await ctx.task(check, cents) : "unchecked";
  const paid = await ctx.task(charge, cents);
  await ctx.promise("end");
  return `${paid} ${checked}`;
});
/** Step two: no live run passed the call without the mark. */
const deprecated = workflow("order", { ports }, async (ctx, cents: number) => {
  await ctx.promise("go");
  ctx.patched("check first");
  const checked = await ctx.task(check, cents);
  const paid = await ctx.task(charge, cents);
  await ctx.promise("end");
  return `${paid} ${checked}`;
});
/** Step three: no live run has the mark. */
const removed = workflow("order", { ports }, async (ctx, cents: number) => {
  await ctx.promise("go");
  const checked = await ctx.task(check, cents);
  const paid = await ctx.task(charge, cents);
  await ctx.promise("end");
  return `${paid} ${checked}`;
});

type Version = typeof patched;

/** Runs each version in turn on one store; each continues where the version before stopped. */
async function deploy(store: string, version: Version, act: (engine: EngineOf) => Promise<void>): Promise<void> {
  await using engine = await createTestEngine({ definitions: [version, charge, check], store });
  await act(engine);
  await engine.clock.advance(0);
}
const openEngine = (store: string) => createTestEngine({ definitions: [patched, charge, check], store });
type EngineOf = Awaited<ReturnType<typeof openEngine>>;

describe("ctx.patched", () => {
  test("is false for a run that passed it, and true for a run that had not and for a new run", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    await deploy(store, before as Version, async (engine) => {
      for (const id of ["past", "waiting"]) await engine.start("order", 5, { id });
      await engine.get("order", "past").resolve("go", "");
    });
    await deploy(store, patched, async (engine) => {
      await engine.get("order", "waiting").resolve("go", "");
      await engine.start("order", 5, { id: "new" });
      await engine.get("order", "new").resolve("go", "");
    });
    await deploy(store, patched, async (engine) => {
      const answers = [];
      for (const id of ["past", "waiting", "new"]) {
        const run = engine.get("order", id);
        await run.resolve("end");
        answers.push(await run.result());
        expect(await run.verify(), id).toMatchObject({ status: "same" });
      }
      expect(answers).toEqual(["charged 5 unchecked", "charged 5 true", "charged 5 true"]);
    });
  });

  test("can be deprecated and then removed without a violation", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    await deploy(store, patched, async (engine) => {
      for (const id of ["one", "two"]) await engine.start("order", 5, { id });
      await engine.get("order", "one").resolve("go", "");
    });
    await deploy(store, deprecated, (engine) => engine.get("order", "two").resolve("go", ""));
    await deploy(store, removed, async (engine) => {
      for (const id of ["one", "two"]) {
        const run = engine.get("order", id);
        expect((await collect(run.journal())).filter(({ type }) => type === "PatchMarked")).toHaveLength(1);
        await run.resolve("end");
        expect(await run.result()).toBe("charged 5 true");
        expect(await run.verify()).toMatchObject({ status: "same" });
      }
    });
  });

  test("repairs a run that a bad deploy stopped", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    await deploy(store, before as Version, async (engine) => {
      const run = await engine.start("order", 5, { id: "run-1" });
      await run.resolve("go", "");
    });
    await deploy(store, removed, async (engine) => {
      const run = engine.get("order", "run-1");
      const result = rejection(run.result());
      await run.resolve("end");
      expect(await result).toMatchObject({ code: "DETERMINISM_VIOLATION", details: { expected: "check" } });
    });
    await deploy(store, patched, async (engine) => {
      const run = engine.get("order", "run-1");
      await run.resume();
      expect(await run.result()).toBe("charged 5 unchecked");
      expect(await run.verify()).toMatchObject({ status: "same" });
    });
  });

  test("has one answer per run, in a loop and after a crash, and one mark", async () => {
    const loop = (isPatched: boolean) =>
      workflow("loop", async (ctx) => {
        const seen: boolean[] = [];
        for (let n = 0; n < 4; n += 1) {
          seen.push(isPatched ? ctx.patched("p") : false);
          if (isPatched && ctx.patched("p")) await ctx.run("new", () => 1);
          await ctx.sleep("1 hour");
        }
        return seen;
      });
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    {
      await using engine = await createTestEngine({ definitions: [loop(false)], store });
      await engine.start("loop", undefined, { id: "old" });
      await engine.clock.advance("90 minutes");
    }
    await using engine = await createTestEngine({ definitions: [loop(true)], store });
    const fresh = await engine.start("loop", undefined, { id: "new" });
    await engine.clock.advance("90 minutes");
    await engine.crash();
    await engine.clock.advance("4 hours");
    expect(await engine.get("loop", "old").result()).toEqual([false, false, false, false]);
    expect(await fresh.result()).toEqual([true, true, true, true]);
    for (const [id, marks] of [
      ["old", 0],
      ["new", 1],
    ] as const) {
      const run = engine.get("loop", id);
      expect((await collect(run.journal())).filter(({ type }) => type === "PatchMarked")).toHaveLength(marks);
      expect(await run.verify()).toMatchObject({ status: "same" });
    }
  });

  test("keeps a run of the new code on the new code wherever the process is killed", async () => {
    const branches = workflow("branches", { ports }, async (ctx) => {
      const slow = ctx.run("slow", () => "slow");
      const [first, second] = await Promise.all([
        ctx.promise("go").then(async () => (ctx.patched("a") ? await ctx.task(check, 1) : await ctx.task(charge, 1))),
        ctx.promise("end").then(() => (ctx.patched("b") ? ctx.run("b", () => "b") : "old")),
      ]);
      return [first, second, await slow, ctx.patched("c"), ctx.patched("a")];
    });
    const { output, crashes } = await crashEverywhere(branches, undefined, {
      definitions: [check, charge],
      async drive(engine, id) {
        await Promise.all([engine.get(branches, id).resolve("go", ""), engine.get(branches, id).resolve("end")]);
      },
    });
    expect(output).toEqual([true, "b", "slow", true, true]);
    expect(crashes).toBeGreaterThan(8);
  });

  test("is refused inside a step, and with an invalid id", async () => {
    const wrong = workflow("wrong", async (ctx, name: string) => {
      if (name === "") return ctx.patched("");
      return ctx.run("inside", () => ctx.patched(name));
    });
    await using engine = await createTestEngine({ definitions: [wrong] });
    const causeOf = async (name: string) => (await rejection((await engine.start(wrong, name)).result())).cause;
    expect(await causeOf("x")).toMatchObject({ code: "USAGE" });
    expect(await causeOf("")).toMatchObject({ code: "BAD_NAME" });
  });
});
