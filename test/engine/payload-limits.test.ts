// limits.payload: a payload that is too large is refused before anything is written, with its path, its size and the limit.

import { expect, test } from "vitest";
import { createEngine, promise, signal, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder } from "./world.ts";

const LIMIT = 1_000;
const limits = { payload: LIMIT } as const;
const big = { list: [{ text: "x".repeat(2_000) }] };

const echo = task("echo", (_ctx, value: unknown) => value as { list: unknown[] });
const grow = task("grow", () => big);
const port = workflow("port", { ports: { word: promise<unknown>(), note: signal<unknown>() } }, async (ctx) =>
  ctx.promise("word"),
);
const inside = workflow("inside", async (ctx, how: "task" | "run" | "result" | "state" | "step" | "output") => {
  if (how === "task") await ctx.task(echo, big);
  if (how === "run") await ctx.run("input", big, () => 1);
  if (how === "result") await ctx.task(grow);
  if (how === "state") ctx.state.set("a", big);
  if (how === "step") await ctx.run("step", () => big);
  return how === "output" ? big : "small";
});

test("an input over the limit is refused with path, size and limit, and there is no run", async () => {
  await using engine = await createTestEngine({ definitions: [inside, echo, grow], limits });
  const refusal = await engine.start(inside, big as never, { id: "a" }).catch((error) => error);
  expect(refusal).toMatchObject({ code: "PAYLOAD_TOO_LARGE", details: { path: "$.list[0].text", limit: LIMIT } });
  expect(refusal.details.bytes).toBeGreaterThan(LIMIT);
  expect(refusal.message).toMatch(
    /^The input of workflow inside cannot be stored: \$\.list\[0\]\.text: \d+ bytes or more, and at most 1000 .*keep it elsewhere .* pass a reference\.$/,
  );
  expect(await engine.find("a")).toBeUndefined();
});

test.each(["task", "run", "result", "state", "step", "output"] as const)(
  "a payload of kind %s that is too large fails the run, and the run verifies under another limit too",
  async (how) => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("l.db")}`;
    const definitions = [inside, echo, grow] as const;
    const small = await createEngine({ store, definitions, limits });
    const run = await small.start(inside, how, { id: how });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { code: "PAYLOAD_TOO_LARGE" } });
    await small.close();
    await using large = await createEngine({ store, definitions });
    expect((await large.get(inside, how).verify()).status).toBe("same");
    // A run started without the limit may use the store's maximum.
    expect(await (await large.start(inside, how)).result()).toEqual(how === "output" ? big : "small");
  },
);

test("a message over the limit is refused, and the run keeps waiting", async () => {
  await using engine = await createTestEngine({ definitions: [port], limits });
  const run = await engine.start(port);
  await expect(run.resolve("word", big)).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  await expect(run.signal("note", big)).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  await run.resolve("word", "small");
  expect(await run.result()).toBe("small");
});

test("a limit set later does not affect runs that have started", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("l.db")}`;
  const late = workflow("late", { ports: { go: promise() } }, async (ctx) => {
    await ctx.promise("go");
    return ctx.run("step", () => big);
  });
  const before = await createEngine({ store, definitions: [late] });
  await before.start(late, undefined, { id: "a" });
  await before.close();
  await using after = await createEngine({ store, definitions: [late], limits });
  const run = after.get(late, "a");
  await run.resolve("go");
  expect(await run.result()).toEqual(big);
});

test("a payload limit is a size of at most 8 MiB", async () => {
  for (const payload of [1_000, "64 KB", "1MB", "1.5 MiB", "8MiB"] as const)
    await (await createEngine({ store: "sqlite::memory:", definitions: [], limits: { payload } })).close();
  for (const payload of [0, -1, Number.NaN, "9 MiB", "1 GB", "big", null, 9_000_000])
    await expect(
      createEngine({ store: "sqlite::memory:", definitions: [], limits: { payload: payload as never } }),
    ).rejects.toMatchObject({ code: "BAD_OPTIONS" });
  await expect(
    createEngine({ store: "sqlite::memory:", definitions: [], limits: { size: 5 } as never }),
  ).rejects.toMatchObject({ code: "BAD_OPTIONS" });
});
