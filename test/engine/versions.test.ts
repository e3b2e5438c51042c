// Versions: a run is pinned to the version of its definition that started it.

import { describe, expect, test } from "vitest";
import { promise, queue, workflow, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, rejection } from "./world.ts";

const ports = { go: promise() };
const define = (version: number) =>
  workflow("checkout", { ports, version }, async (ctx) => {
    await ctx.run(`step of version ${version}`, () => version);
    await ctx.promise("go");
    return `version ${version}`;
  });
const [one, two] = [define(1), define(2)];

describe("a run of a definition with versions", () => {
  test("is pinned to the version that started it; a new run gets the highest version", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    {
      await using engine = await createTestEngine({ definitions: [one], store });
      await engine.start("checkout", undefined, { id: "old" });
      await engine.clock.advance(0);
    }
    await using engine = await createTestEngine({ definitions: [one, two], store });
    await engine.start("checkout", undefined, { id: "new" });
    await engine.start(one, undefined, { id: "asked" });
    const versions = [];
    for (const id of ["old", "new", "asked"]) {
      const run = engine.get("checkout", id);
      await run.resolve("go");
      versions.push([await run.result(), (await run.info()).version]);
      expect(await run.verify()).toMatchObject({ status: "same" });
      // For any version of the handle.
      expect(await engine.get(two, id).verify()).toMatchObject({ status: "same" });
    }
    expect(versions).toEqual([
      ["version 1", 1],
      ["version 2", 2],
      ["version 1", 1],
    ]);
  });

  test("waits if its version is not registered, and the engine logs that once", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    {
      await using engine = await createTestEngine({ definitions: [one], store });
      for (const id of ["a", "b"]) await engine.start(one, undefined, { id });
      await engine.clock.advance(0);
    }
    {
      const warnings: string[] = [];
      const logger = { info: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
      await using engine = await createTestEngine({ definitions: [two], store, logger });
      await engine.get(two, "a").resolve("go");
      await engine.clock.advance("1 day");
      expect(await engine.find("a")).toMatchObject({ status: "waiting", version: 1 });
      expect(warnings).toEqual([
        "2 live runs of checkout are pinned to version 1, which is not registered here. Add it to `definitions` beside the newer one, or let another worker finish them.",
      ]);
      const error = (await rejection(engine.get(two, "a").verify())) as RepriseError;
      expect([error.code, error.message]).toEqual([
        "UNKNOWN_DEFINITION",
        "Version 1 of checkout is not registered; registered versions: 2. Add it to `definitions` of createEngine, beside the newer one.",
      ]);
      expect((await rejection(engine.start(one as never))).code).toBe("UNKNOWN_DEFINITION");
    }
    await using engine = await createTestEngine({ definitions: [two, one], store });
    await engine.clock.advance(0);
    expect(await engine.get(one, "a").result()).toBe("version 1");
  });

  test("continues as new with the same version, or with the version in the options", async () => {
    const loop = (version: number) =>
      workflow("loop", { version }, async (ctx, path: readonly string[]): Promise<readonly string[]> => {
        const all = [...path, `v${version}`];
        if (all.length === 4) return all;
        return all.length === 2 ? ctx.continueAsNew(all, { version: 2 }) : ctx.continueAsNew(all);
      });
    const [first, second] = [loop(1), loop(2)];
    await using engine = await createTestEngine({ definitions: [first, second] });
    const run = await engine.start(first, []);
    expect(await run.result()).toEqual(["v1", "v1", "v2", "v2"]);
    for (const generation of [0, 1, 2, 3]) expect(await run.verify({ generation })).toMatchObject({ status: "same" });
  });

  test("is blocked when it continues as an unregistered version, and resumes once that version is registered", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    const next = workflow("next", { version: 2 }, async () => "second");
    const first = workflow("next", async (ctx): Promise<string> => ctx.continueAsNew(undefined, { version: 2 }));
    {
      await using engine = await createTestEngine({ definitions: [first], store });
      const run = await engine.start(first, undefined, { id: "run-1" });
      const error = await rejection(run.result());
      expect([error.code, error.message.includes("next version 2")]).toEqual(["RUN_BLOCKED", true]);
    }
    await using engine = await createTestEngine({ definitions: [first, next], store });
    await engine.get(first, "run-1").resume();
    expect(await engine.get(first, "run-1").result()).toBe("second");
  });

  test("starts a child in the version of the definition it names", async () => {
    const parent = workflow("parent", async (ctx) => {
      const child = ctx.child(one, undefined, { id: "child" });
      await ctx.sleep(1);
      return child;
    });
    await using engine = await createTestEngine({ definitions: [parent, one, two] });
    const run = await engine.start(parent);
    await engine.clock.advance(1);
    await engine.get(one, "child").resolve("go");
    expect(await run.result()).toBe("version 1");
  });

  test("with an unregistered version does not occupy a slot of its queue", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    const line = queue("builds", { concurrency: 1 });
    const build = (version: number) => workflow("build", { version, queue: line }, async () => version);
    const [old, young] = [build(1), build(2)];
    {
      await using client = await createTestEngine({ definitions: [young], store, worker: false });
      await client.start(young, undefined, { id: "young", priority: 9 });
    }
    await using engine = await createTestEngine({ definitions: [old], store });
    const run = await engine.start(old, undefined, { id: "old" });
    await engine.clock.advance(0);
    expect((await run.info()).status).toBe("completed");
    expect((await engine.find("young"))?.status).toBe("queued");
    await using other = await createTestEngine({ definitions: [old, young], store, now: engine.clock.now() });
    expect(await other.get(young, "young").result()).toBe(2);
  });

  test("is refused if two definitions have the same name and version", async () => {
    const error = await rejection(createTestEngine({ definitions: [one, two, define(2)] }));
    expect(error.code).toBe("DUPLICATE_DEFINITION");
    expect(error.message).toContain("version 2");
    await using engine = await createTestEngine({ definitions: [one, two, one] });
    expect((await (await engine.start("checkout")).info()).version).toBe(2);
  });
});
