// createClient: starts, controls and reads runs without a worker.

import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { createClient, createEngine, promise, query, queue, signal, task, update, workflow } from "reprise";
import { finished, ROOT, startNode } from "../cli/cli-process.ts";
import { collect, createFolder, rejection, storeAround, until, watchEvents, within, type AnyWrite } from "./world.ts";

const mail = queue("mail", { concurrency: 2 });
const send = task("send", { queue: mail }, async (_ctx, to: string) => `sent to ${to}`);
const order = workflow(
  "order",
  {
    ports: {
      paid: promise<number>(),
      note: signal<string>(),
      state: query<string>(),
      add: update<number, number>(),
    },
  },
  async (ctx) => {
    let total = 0;
    ctx.onQuery("state", () => `total ${total}`);
    ctx.onUpdate("add", (n: number) => (total += n));
    const cents = await ctx.promise("paid");
    return `${await ctx.task(send, "ann")}, paid ${cents}`;
  },
);
const definitions = [order, send];

test("a client process loads no module of the worker, and reads the result that a worker elsewhere made", async () => {
  using folder = createFolder();
  const url = `sqlite:${folder.file("store.db")}`;
  const hook = pathToFileURL(join(ROOT, "test/cli/print-loaded-modules.ts")).href;
  const program = join(ROOT, "test/engine/client-process.ts");
  await using worker = await createEngine({ store: url, definitions: [echo] });
  const { code, stdout, stderr } = await finished(startNode(["--import", hook, program, url]));
  const [urls = "", ...errors] = stderr.trimEnd().split("\n").reverse();
  expect(code, errors.reverse().join("\n")).toBe(0);
  expect(stdout).toBe("hello from a worker\n");
  const own = (JSON.parse(urls) as string[])
    .filter((loaded) => loaded.startsWith("file:"))
    .map((loaded) => relative(ROOT, fileURLToPath(loaded)));
  expect(own).toContain("src/engine/client-core.ts");
  expect(own.filter((path) => path.startsWith("src/worker/"))).toEqual([]);
  expect((await worker.get(echo, "run-1").info()).status).toBe("completed");
});

const echo = workflow("echo", async (ctx, text: string) => ctx.run("echo", () => `${text} from a worker`));

test("a client does everything but execute: start, message, query, update, pause, schedule, queue, bulk, replay", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  await using worker = await createEngine({ store, definitions });
  await using client = await createClient({ store, definitions });
  const run = await client.start(order, undefined, { id: "order-1", tags: ["shop"] });
  await until(async () => (await run.info()).status === "waiting");
  expect(await run.update("add", 5)).toBe(5);
  expect(await run.query("state")).toBe("total 5");
  await run.pause();
  expect((await client.find("order-1"))?.status).toBe("paused");
  await run.resume();
  await run.resolve("paid", 990);
  expect(await run.result()).toBe("sent to ann, paid 990");
  expect(await run.replay()).toMatchObject({ status: "same" });
  expect(await run.verify()).toMatchObject({ status: "same" });
  await client.getQueue(mail).limit({ concurrency: 1 });
  expect((await client.findQueue("mail"))?.limits).toEqual({ concurrency: 1 });
  const schedule = await client.schedule("hourly", order, undefined, { every: "1 hour" });
  expect((await schedule.trigger()).tags).toEqual(["schedule:hourly"]);
  await client.start(order, undefined, { id: "order-2", tags: ["shop"] });
  expect(await client.bulk("terminate", { tag: "shop" })).toEqual({ count: 1, skipped: 1 });
  expect((await worker.find("order-2"))?.status).toBe("cancelled");
});

test("a client that terminates a run settles its own waiters at once", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  await using client = await createClient({ store, definitions });
  const run = await client.start(order);
  using watched = watchEvents();
  const result = rejection(run.result());
  await run.terminate("not needed");
  expect((await within(1_000, result)).message).toContain("not needed");
  expect(watched.events).toContainEqual(expect.objectContaining({ event: "run.ended", run: run.id }));
});

test("writes of one macrotask share a batch, in order; later ones wait for it", async () => {
  const batches: (readonly AnyWrite[])[] = [];
  const source = storeAround((writes, apply) => {
    if (writes.length > 0) batches.push(writes);
    return apply();
  });
  await using client = await createClient({ store: source, definitions });
  batches.length = 0;
  const started = ["a", "b", "c"].map((id) => client.start(order, undefined, { id }));
  await Promise.all(started);
  expect(batches.map((batch) => batch.map(({ write }) => write))).toEqual([["start", "start", "start"]]);
  const ids = batches[0]!.map((write) => ("run" in write && typeof write.run === "object" ? write.run.id : ""));
  expect(ids).toEqual(["a", "b", "c"]);
});

test("a write the store refuses rejects its caller, and the client continues", async () => {
  let isFailing = false;
  const source = storeAround((_writes, apply) => (isFailing ? Promise.reject(new Error("disk full")) : apply()));
  const lines: string[] = [];
  const note = (message: string): void => void lines.push(message);
  const logger = { info: note, warn: note, error: note };
  await using client = await createClient({ store: source, definitions, logger });
  isFailing = true;
  expect((await rejection(client.start(order, undefined, { id: "a" }))).message).toContain("disk full");
  isFailing = false;
  await client.start(order, undefined, { id: "b" });
  expect((await collect(client.list())).map(({ id }) => id)).toEqual(["b"]);
  expect(lines).toEqual(["disk full"]);
});

test("close waits for writes in progress; afterwards every call is refused", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  const client = await createClient({ store, definitions });
  const run = await client.start(order, undefined, { id: "a" });
  const starting = client.start(order, undefined, { id: "b" });
  const result = rejection(run.result());
  await Promise.all([client.close(), client.close()]);
  await starting;
  expect((await result).code).toBe("ENGINE_CLOSED");
  const refused = await rejection(client.find("a"));
  expect(refused.code).toBe("ENGINE_CLOSED");
  expect(refused.message).toContain("createClient");
  expect(() => client.get(order, "a")).toThrow("createClient");
  await using again = await createClient({ store, definitions });
  expect(await again.find("b")).toBeDefined();
});

test("createEngine refuses `worker: false` and names createClient", async () => {
  const error = await rejection(createEngine({ store: "sqlite::memory:", definitions, worker: false as never }));
  expect(error.code).toBe("BAD_OPTIONS");
  expect(error.message).toContain("createClient({ store, definitions })");
});

test("createClient refuses what only a worker needs", async () => {
  for (const extra of [{ worker: {} }, { outbox: {} }])
    expect((await rejection(createClient({ store: "sqlite::memory:", definitions, ...extra } as never))).code).toBe(
      "BAD_OPTIONS",
    );
});

test("a query through a client that lacks a task of the run is refused, not answered from an old state", async () => {
  using folder = createFolder();
  const url = `sqlite:${folder.file("store.db")}`;
  const reserve = task("reserve", () => "B7");
  const release = task("release", (_ctx, _shelf: string) => {});
  const staged = workflow("staged", { ports: { stage: query<string>() } }, async (ctx) => {
    let stage = "reserving";
    ctx.onQuery("stage", () => stage);
    stage = `reserved ${await ctx.task(reserve, undefined, { undo: release })}`;
    return stage;
  });
  await using engine = await createEngine({ store: url, definitions: [staged, reserve, release] });
  const run = await engine.start(staged, undefined, { id: "staged-1" });
  await run.result();
  await using whole = await createClient({ store: url, definitions: [staged, reserve, release] });
  expect(await whole.get(staged, "staged-1").query("stage")).toBe("reserved B7");
  await using client = await createClient({ store: url, definitions: [staged] });
  const error = await rejection(client.get(staged, "staged-1").query("stage"));
  expect(error).toMatchObject({ code: "UNKNOWN_TASK", message: expect.stringContaining("`release`") as string });
});
