// Labels: which worker claims which work. Two workers on one store, one of them with the label.

import { describe, expect, test } from "vitest";
import {
  createEngine,
  END,
  flow,
  graph,
  last,
  queue,
  START,
  task,
  typed,
  workflow,
  type WorkerSettings,
} from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, rejection } from "./world.ts";

/** The same program on two machines; each function returns where it ran. */
function programAt(where: string) {
  const plain = task("plain", () => where);
  const render = task("render", { label: "gpu" }, () => where);
  const marker = workflow("marker", async (ctx) => ctx.task(plain));
  const mixed = workflow("mixed", async (ctx) => ({
    rendered: await Promise.all([ctx.task(render), ctx.task(render), ctx.task(render)]),
    plain: await ctx.task(plain),
  }));
  const heavy = workflow("heavy", { label: "gpu" }, async (ctx, left: number): Promise<string> => {
    const here = await ctx.run("here", () => where);
    if (left > 0) return ctx.continueAsNew(left - 1);
    return here;
  });
  const parent = workflow("parent", async (ctx) => ctx.child(heavy, 0));
  const train = graph("train", { state: { at: last("") }, output: ({ at }) => at, label: "gpu" })
    .node("fit", () => ({ at: where }))
    .edge(START, "fit")
    .edge("fit", END);
  const film = flow("film", { input: typed<number>() })
    .action("script", ["input"], () => where)
    .spread(
      "frames",
      ["script", "input"],
      { label: "gpu" },
      ({ input }) => Array.from({ length: input }, (_, n) => n),
      () => where,
    )
    .call("cover", ["input"], render, () => undefined)
    .action("cut", ["frames"], () => where)
    .output(["script", "frames", "cover", "cut"], (made) => made);
  const all = flow("all", { input: typed<number>(), label: "gpu" })
    .action("one", ["input"], () => where)
    .inline("two", ["one"], ({ one }) => `${one} ${where}`)
    .output(["two"], ({ two }) => two);
  return {
    marker,
    mixed,
    heavy,
    parent,
    train,
    film,
    all,
    definitions: [plain, render, marker, mixed, heavy, parent, train, film, all] as const,
  };
}

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

async function workerAt(where: string, store: string, worker: WorkerSettings = {}) {
  const program = programAt(where);
  const engine = await createEngine({ store, definitions: program.definitions, worker, logger: SILENT });
  return { ...program, engine };
}

describe("with one worker that has the label and one that does not", () => {
  test.each(["the worker with the label", "the other worker"])(
    "labeled work that %s starts runs on the worker with the label",
    async (starter) => {
      using folder = createFolder();
      const store = `sqlite:${folder.file("shared.db")}`;
      const web = await workerAt("web", store);
      const gpu = await workerAt("gpu", store, { labels: ["gpu"] });
      await using _web = web.engine;
      await using _gpu = gpu.engine;
      const { engine, ...program } = starter === "the other worker" ? web : gpu;
      const mixed = await Promise.all(
        Array.from({ length: 20 }, async () => (await engine.start(program.mixed)).result()),
      );
      expect(new Set(mixed.flatMap(({ rendered }) => rendered))).toEqual(new Set(["gpu"]));
      expect(await (await engine.start(program.heavy, 3)).result()).toBe("gpu");
      expect(await (await engine.start(program.parent)).result()).toBe("gpu");
      expect(await (await engine.start(program.train, {})).result()).toBe("gpu");
      expect(await (await engine.start(program.all, 1)).result()).toBe("gpu gpu");
      const film = await (await engine.start(program.film, 40)).result();
      expect([...film.frames, film.cover]).toEqual(Array.from({ length: 41 }, () => "gpu"));
    },
  );

  test("labeled work waits while no worker has the label, and runs when one with the label starts", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("shared.db")}`;
    const { engine, ...program } = await workerAt("web", store, { labels: ["eu"] });
    await using _web = engine;
    const heavy = await engine.start(program.heavy, 0);
    const film = await engine.start(program.film, 2);
    const mixed = await engine.start(program.mixed);
    const all = await engine.start(program.all, 1);
    // Later work without a label runs meanwhile.
    for (let n = 0; n < 5; n++) expect(await (await engine.start(program.marker)).result()).toBe("web");
    while ((await mixed.info()).status !== "waiting") await (await engine.start(program.marker)).result();
    expect([(await heavy.info()).status, (await all.info()).status]).toEqual(["queued", "queued"]);
    const gpu = await workerAt("gpu", store, { labels: ["eu", "gpu"] });
    await using _gpu = gpu.engine;
    expect(await heavy.result()).toBe("gpu");
    expect(await all.result()).toBe("gpu gpu");
    expect((await mixed.result()).rendered).toEqual(["gpu", "gpu", "gpu"]);
    expect((await film.result()).frames).toEqual(["gpu", "gpu"]);
  });
});

test("each version of a definition has its own label", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const at = (where: string) => {
    const one = workflow("job", async (ctx) => ctx.run("where", () => where));
    const two = workflow("job", { version: 2, label: "gpu" }, async (ctx) => ctx.run("where", () => where));
    return { one, two };
  };
  const [web, gpu] = [at("web"), at("gpu")];
  await using plain = await createEngine({ store, definitions: [web.one, web.two], logger: SILENT });
  const second = await plain.start(web.two);
  expect(await (await plain.start(web.one)).result()).toBe("web");
  expect((await second.info()).status).toBe("queued");
  await using _gpu = await createEngine({ store, definitions: [gpu.two], worker: { labels: ["gpu"] }, logger: SILENT });
  expect(await second.result()).toBe("gpu");
});

test("only a worker with the label takes over labeled work from a dead worker", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const started: string[] = [];
  const at = (where: string, run: () => Promise<string>) => {
    const render = task("render", { label: "gpu" }, () => (started.push(where), run()));
    const marker = workflow("marker", async (ctx) => ctx.run("where", () => where));
    return { film: workflow("film", async (ctx) => ctx.task(render)), marker, render };
  };
  const never = at("dies", () => new Promise(() => {}));
  const dies = await createTestEngine({
    definitions: [never.film, never.marker, never.render],
    store,
    worker: { labels: ["gpu"] },
    now: new Date("2030-01-01T00:00:00Z"),
  });
  await dies.start(never.film, undefined, { id: "film-1" });
  await dies.clock.advance(0);
  expect(started).toEqual(["dies"]);
  const later = { store, now: new Date("2030-01-01T01:00:00Z") };
  const plain = at("plain", async () => "plain");
  await using other = await createTestEngine({
    ...later,
    definitions: [plain.film, plain.marker, plain.render],
    worker: { labels: [] },
  });
  expect(await (await other.start(plain.marker)).result()).toBe("plain");
  expect(started).toEqual(["dies"]);
  const able = at("gpu", async () => "gpu");
  await using gpu = await createTestEngine({ ...later, definitions: [able.film, able.marker, able.render] });
  expect(await gpu.get(able.film, "film-1").result()).toBe("gpu");
  expect(started).toEqual(["dies", "gpu"]);
});

test("a test engine claims work of every label, unless it names its labels", async () => {
  const render = task("render", { label: "gpu" }, () => "done");
  const film = workflow("film", { label: "eu" }, async (ctx) => ctx.task(render));
  await using engine = await createTestEngine({ definitions: [film, render] });
  expect(await (await engine.start(film)).result()).toBe("done");
  await using other = await createTestEngine({ definitions: [film, render], worker: { labels: ["eu"] } });
  const run = await other.start(film);
  await other.clock.advance("1 hour");
  expect(await run.info()).toMatchObject({ status: "waiting" });
});

test("an invalid label is refused before anything is written", async () => {
  const run = async (): Promise<void> => {};
  const label = (value: unknown) => ({ label: value as string });
  expect(() => task("t", label(""), run)).toThrow("Task t: label: expected a string of 1 to 200 characters");
  expect(() => workflow("w", label(["gpu"]), run)).toThrow("Workflow w: label: expected a string");
  expect(() => graph("g", { state: { at: last("") }, ...label(7) })).toThrow("Graph g: label: expected a string");
  expect(() => flow("f", { input: typed<number>(), ...label("a\nb") })).toThrow("Flow f: label: expected a string");
  const builder = flow("f", { input: typed<number>() });
  expect(() => builder.action("a", ["input"], { ...label("") }, run)).toThrow("Flow f: node a: label");
  const named = flow("€".repeat(10), { input: typed<number>() });
  const long = named.action("a", ["input"], { queue: queue("€".repeat(200)), label: "€".repeat(200) }, run);
  expect(() => long.output(["a"], () => 1)).toThrow(
    "node a: the names of the flow, the queue and the label have 1234 bytes together",
  );
  expect(() => (builder as any).inline("a", ["input"], { label: "gpu" }, () => 1)).toThrow("label");
  for (const labels of ["gpu", [""], 7, [undefined]])
    expect(await rejection(createTestEngine({ definitions: [], worker: { labels: labels as never } }))).toMatchObject({
      message: expect.stringContaining("worker.labels"),
    });
});
