// top, and what doctor and show report about work that no worker can claim.

import { expect, test } from "vitest";
import { createClient, createEngine, flow, promise, queue, task, typed, workflow } from "reprise";
import type { Store, WorkerProfile, WorkerActivity } from "../../src/kernel/index.ts";
import { shownUrl } from "../../src/stores/index.ts";
import { openStoreOf } from "../../src/engine/index.ts";
import { clipPainted } from "../../src/cli/text.ts";
import { explainBacklog } from "../../src/explain/index.ts";
import { readSnapshot, topJson, topLines } from "../../src/cli/top-view.ts";
import { until } from "../engine/world.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";
import {
  cli,
  finished,
  isInstalled,
  jsonLines,
  waitForOutput,
  startCli,
  startOnTerminal,
  TemporaryFolder,
} from "./cli-process.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const mail = queue("mail", { concurrency: 2, perKey: { concurrency: 1 } });
const send = task("send", { queue: mail, key: (to: string) => to }, async (_ctx, to: string) => to);
const render = task("render", { label: "gpu" }, () => "drawn");
const letter = workflow("letter", async (ctx, to: string) => ctx.task(send, to));
const film = workflow("film", async (ctx) => ctx.task(render));
const train = workflow("train", { label: "gpu", version: 2 }, async (ctx) => ctx.run("fit", () => 1));
const waits = workflow("waits", { ports: { go: promise<number>() } }, (ctx) => ctx.promise("go"));
const album = flow("album", { input: typed<number>() })
  .action("drawn", ["input"], { label: "gpu" }, async (_ctx, { input }) => input)
  .output(["drawn"], ({ drawn }) => drawn);
const DEFINITIONS = [send, render, letter, film, train, album] as const;

interface Shop extends AsyncDisposable {
  readonly url: string;
  readonly store: Store;
  on(...args: readonly string[]): ReturnType<typeof cli>;
}

/** A worker without a label, and work that needs one: a run, a task, a node. */
async function shopWithoutGpu(): Promise<Shop> {
  const folder = new TemporaryFolder();
  const url = `sqlite:${folder.file("shop.db")}`;
  const engine = await createEngine({ store: url, definitions: DEFINITIONS, logger: SILENT });
  await engine.start(train, undefined, { id: "train-1" });
  await engine.start(album, 1, { id: "album-1" });
  const drawn = await engine.start(film, undefined, { id: "film-1" });
  await (await engine.start(letter, "ann")).result();
  while ((await drawn.info()).status !== "waiting") await new Promise((resolve) => setImmediate(resolve));
  return {
    url,
    store: openStoreOf(engine) as Store,
    on: (...args) => cli([...args, "--store", url]),
    async [Symbol.asyncDispose]() {
      await engine.close();
      folder[Symbol.dispose]();
    },
  };
}

test("top --once prints workers, queues, the oldest pending work and work that does not move", async () => {
  await using shop = await shopWithoutGpu();
  const { code, stdout, stderr } = await shop.on("top", "--once");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^reprise top {2}sqlite:.*shop\.db {2}20.*Z\nworkers {2}1 live {3}rates {2}/);
  expect(stdout).toMatch(/^pending {2}1 due run, 1 task, 1 node {3}oldest {2}.*, run of train v2$/m);
  expect(stdout).toMatch(/^WORKER +HOST +UP +BEAT +RUNS +RUNNING +ENDED\/S +STEPS\/S +CLAIMS$/m);
  expect(stdout).toMatch(/^\S+\/\d+ \(\w+\) .* 0\/256 .*letter v1, film v1, album v1; send$/m);
  expect(stdout).toMatch(/^default +2 +0 +0 /m);
  expect(stdout).toMatch(/^mail +0 +0 +0 +2 at once, per key 1 at once$/m);
  expect(stdout).toMatch(
    /NOT MOVING\n {2}1 node of album v1: needs label gpu, oldest .*\n {2}1 task render: needs label gpu, oldest .*\n {2}1 run of train v2: needs label gpu, oldest .*\n$/,
  );
});

test("top --json prints one value per snapshot", async () => {
  await using shop = await shopWithoutGpu();
  const [once, ...rest] = jsonLines((await shop.on("top", "--once", "--json")).stdout);
  expect(rest).toEqual([]);
  expect(once).toMatchObject({
    at: expect.any(String),
    countedUpTo: 1_000,
    rates: { runsStarted: expect.any(Number), runsEnded: expect.any(Number), steps: expect.any(Number) },
    workers: [
      {
        worker: expect.any(Number),
        host: expect.any(String),
        pid: process.pid,
        alive: true,
        draining: false,
        beatAt: expect.any(String),
        concurrency: 256,
        definitions: expect.arrayContaining([{ name: "letter", version: 1 }]),
        tasks: ["send"],
        queues: null,
        labels: [],
      },
    ],
    queues: [
      { name: "default", ready: 2 },
      { name: "mail", ready: 0, limits: { concurrency: 2 } },
    ],
    oldest: { kind: "turn", name: "train", version: 2, label: "gpu" },
    unclaimable: [
      { kind: "node", name: "album", version: 1, label: "gpu", count: 1 },
      { kind: "task", name: "render", version: null, label: "gpu", count: 1 },
      { kind: "turn", name: "train", version: 2, label: "gpu", count: 1 },
    ],
  });
  const child = startCli(["top", "--json", "--interval", "100ms", "--store", shop.url]);
  const ended = finished(child);
  await waitForOutput(child, "}\n{");
  child.kill("SIGINT");
  const { code, stdout } = await ended;
  expect(code).toBe(130);
  expect(jsonLines(stdout.slice(0, stdout.lastIndexOf("\n"))).length).toBeGreaterThan(1);
});

// Needs `script` of util-linux for a pseudo-terminal.
test.skipIf(!isInstalled("script"))(
  "on a terminal top uses the alternate screen, and Ctrl-C restores the terminal",
  async () => {
    await using shop = await shopWithoutGpu();
    const child = startOnTerminal(["top", "--interval", "100ms", "--store", shop.url]);
    const ended = finished(child);
    await waitForOutput(child, "\u001b[J\u001b[H");
    child.stdin.write("\u0003");
    const { code, stdout } = await ended;
    expect(code).toBe(130);
    expect(stdout.startsWith("\u001b[?1049h\u001b[?25l\u001b[H")).toBe(true);
    expect(stdout.indexOf("\u001b[?1049l")).toBeGreaterThan(stdout.lastIndexOf("UNCLAIMABLE"));
    const drawn = stdout.split("\u001b[H")[1] ?? "";
    const lines = drawn.split("\n").map((line) => line.replaceAll(/\p{Cc}\[[\d;?]*[a-zA-Z]|\r/gu, ""));
    expect(lines.every((line) => line.length <= 100)).toBe(true);
  },
);

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `top, doctor and show on ${kind}`, () => {
    test("report unclaimable work", { timeout: 120_000 }, async () => {
      await using database = await freshDatabase(kind);
      const on = (...args: readonly string[]): ReturnType<typeof cli> => cli([...args, "--store", database.url]);
      await using engine = await createEngine({ store: database.url, definitions: DEFINITIONS, logger: SILENT });
      await engine.start(train, undefined, { id: "train-1" });
      await (await engine.start(letter, "ann")).result();
      const { code, stdout, stderr } = await on("top", "--once");
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("workers  1 live");
      expect(stdout).toMatch(/NOT MOVING\n {2}1 run of train v2: needs label gpu, oldest .*\n$/);
      const needs = `next: reprise worker <file> --labels gpu --store ${shownUrl(database.url)}\n`;
      expect((await on("doctor")).stdout).toContain(needs);
      expect((await on("show", "train-1")).stdout).toContain(needs);
    });
  });

test("doctor and show report unclaimable work and the command that starts a worker", { timeout: 120_000 }, async () => {
  await using shop = await shopWithoutGpu();
  const { code, stdout } = await shop.on("doctor");
  expect(code).toBe(0);
  const next = `reprise worker <file> --labels gpu --store ${shop.url}`;
  const needs = (what: string, end: string): RegExp =>
    new RegExp(`No live worker can claim ${what}: \\S+ \\(\\w+\\) lacks the label gpu${end} next: ${next}\\b`);
  const words = (text: string): string => text.replace(/\s+/g, " ");
  for (const what of ["1 node of album v1", "task render", "1 run of train v2"])
    expect(words(stdout)).toMatch(needs(what, " \\(oldest [^)]*\\)"));
  const [report] = jsonLines((await shop.on("doctor", "--json")).stdout);
  expect(report?.["unclaimable"]).toMatchObject([
    { name: "album" },
    { name: "render" },
    { name: "train", label: "gpu" },
  ]);

  expect(words((await shop.on("show", "train-1")).stdout)).toMatch(needs("the run", "\\."));
  expect(words((await shop.on("show", "film-1")).stdout)).toMatch(needs("task render", "\\. Task\\(0\\)"));
  expect(words((await shop.on("show", "album-1")).stdout)).toMatch(needs("node \\w+", "\\."));
  const waitsForOf = async (id: string): Promise<unknown> =>
    jsonLines((await shop.on("show", id, "--json")).stdout)[0]?.["waitsFor"];
  const lacks = { reason: "no_worker", label: "gpu", workers: [{ lacks: "lacks the label gpu" }], next: [next] };
  expect(await waitsForOf("train-1")).toMatchObject([{ ...lacks, work: { kind: "run", name: "train", version: 2 } }]);
  expect(await waitsForOf("film-1")).toMatchObject([{ ...lacks, work: { kind: "task", name: "render" } }]);
  expect(await waitsForOf("album-1")).toMatchObject([{ ...lacks, work: { kind: "node", name: "album" } }]);
  await using _gpu = await createEngine({
    store: shop.url,
    definitions: DEFINITIONS,
    worker: { labels: ["gpu"] },
    logger: SILENT,
  });
  await using client = await createClient({ store: shop.url, definitions: DEFINITIONS, logger: SILENT });
  await client.get(train, "train-1").result();
  await client.get(film, "film-1").result();
  await client.get(album, "album-1").result();
  expect((await shop.on("doctor")).stdout).not.toMatch(/^pending/m);
  expect((await shop.on("top", "--once")).stdout).not.toContain("NOT MOVING");
  expect(await waitsForOf("train-1")).toEqual([]);
});

test("show reports that no worker is live or claims from the queue; a run that waits needs no worker", async () => {
  using folder = new TemporaryFolder();
  const url = `sqlite:${folder.file("shop.db")}`;
  const on = (...args: readonly string[]): ReturnType<typeof cli> => cli([...args, "--store", url]);
  const options = { store: url, definitions: [...DEFINITIONS, waits], logger: SILENT };
  {
    await using client = await createClient(options);
    await client.start(letter, "ann", { id: "letter-1" });
    await client.start(waits, undefined, { id: "waits-1" });
  }
  expect((await on("show", "letter-1")).stdout).toContain(
    `\nnow\n  No worker is live; the run needs one with letter version 1.\n    next: reprise worker <file> --store ${url}\n`,
  );
  const [before] = jsonLines((await on("show", "letter-1", "--json")).stdout);
  expect(before?.["waitsFor"]).toMatchObject([
    { reason: "no_worker", work: { kind: "run", name: "letter", version: 1 }, workers: [] },
  ]);

  await using working = await createEngine({ ...options, worker: { queues: [queue("default")] } });
  await until(async () => (await working.get(letter, "letter-1").info()).status === "waiting");
  await until(async () => (await working.get(waits, "waits-1").info()).status === "waiting");
  expect((await on("show", "letter-1")).stdout).toMatch(
    /No live worker can claim task send: \S+ \(\w+\) does not claim from queue\s+mail\./,
  );
  const [after] = jsonLines((await on("show", "letter-1", "--json")).stdout);
  expect(after?.["waitsFor"]).toMatchObject([
    {
      reason: "no_worker",
      work: { kind: "task", name: "send", queue: "mail" },
      queue: "mail",
      next: [`reprise worker <file> --queues mail --store ${url}`],
    },
  ]);
  const [waiting] = jsonLines((await on("show", "waits-1", "--json")).stdout);
  expect(waiting).toMatchObject({ status: "waiting", waitsFor: [{ reason: "promise" }] });
});

test("rates are those between the last two heartbeats of live workers, and counts show where they stop", async () => {
  using folder = new TemporaryFolder();
  const engine = await createClient({
    store: `sqlite:${folder.file("shop.db")}`,
    definitions: [letter, send],
  });
  await using _engine = engine;
  const store = openStoreOf(engine) as Store;
  const about: WorkerProfile = {
    host: "box",
    pid: 1,
    definitions: [{ name: "letter", version: 1 }],
    items: ["send"],
    destinations: [],
    queues: ["default"],
    labels: ["eu"],
    unclaimed: [{ name: "send", queue: "mail" }],
    concurrency: 8,
    leaseMs: 60_000,
  };
  const doing: WorkerActivity = {
    overMs: 2_000,
    runsStarted: 20,
    runsEnded: 10,
    steps: 500,
    runsHeld: 3,
    running: 5,
    isDraining: true,
  };
  for (const [name, leaseMs] of [
    ["one", 60_000],
    ["two", 60_000],
    ["dead", -1],
  ] as const) {
    const worker = await store.registerWorker(name, leaseMs, JSON.stringify(about));
    await store.renewLease(worker, leaseMs, JSON.stringify(doing));
  }
  await store.registerWorker("silent", 60_000);
  const snapshot = await readSnapshot(store);
  expect(topJson(snapshot)).toMatchObject({ rates: { runsStarted: 20, runsEnded: 10, steps: 500 } });
  const lines = topLines(snapshot, "shop", 200);
  expect(lines[1]).toContain("3 live, 1 expired");
  expect(lines[1]).toContain("20.0 runs started, 10.0 ended, 500 steps per second");
  const [one, dead, silent] = ["one", "dead", "silent"].map((name) =>
    lines.find((line) => line.startsWith(`${name} (`)),
  );
  expect(one).toMatch(
    /^one \(\w{4}\) +box .* draining +3 +5\/8 +5\.0 +250 +labels eu; queues default; letter v1; send$/,
  );
  expect(dead).toMatch(/^dead \(\w{4}\) .*expired .* 0\.0 +0\.0 /);
  expect(silent).toMatch(/^silent \(\w{4}\)/);
  const narrow = topLines(snapshot, "shop", 80);
  expect(narrow.filter((line) => line.length > 80)).toEqual([]);
  expect(narrow.slice(1, 3)).toEqual([
    "workers  3 live, 1 expired",
    "rates  20.0 runs started, 10.0 ended, 500 steps per second",
  ]);
  expect(narrow.find((line) => line.startsWith("one ("))).toMatch(/ draining +3 +5\/8 .* labels eu; queues/);
  const many = { ...snapshot, queues: [{ ...snapshot.queues[0]!, ready: 1_200, delayed: 1_000 }] };
  const backlog = { kind: "task", name: "send", version: undefined, queue: undefined, label: undefined } as const;
  const [reason] = (await explainBacklog(store, [{ ...backlog, count: 1_000, oldestAt: snapshot.now }], []))[0]!
    .reasons;
  const work = { ...backlog, count: 1_000, oldestAt: snapshot.now, reasons: [reason] } as const;
  const drawn = topLines({ ...many, pending: [work, { ...work, name: "other", count: 200 }] }, "shop", 200).join("\n");
  expect(drawn).toMatch(/^default +1200\+ +0 +1000\+/m);
  expect(drawn).toContain("1200+ tasks");
});

test("a line with colors is clipped to its visible width", () => {
  const red = "\u001b[31mred\u001b[39m and plain";
  expect(clipPainted(red, 20)).toBe(red);
  expect(clipPainted(red, 8)).toBe("\u001b[31mred\u001b[39m and…");
  expect(clipPainted(red, 3)).toBe("\u001b[31mre\u001b[39m…");
});
