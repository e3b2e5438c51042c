// GET /v1/events: changes as they happen, for every reader and its scopes.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createEngine, queue, workflow, type Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { storeOf } from "../../src/stores/index.ts";
import { ChangeRing } from "../../src/server/live/change-ring.ts";
import { RateBudget } from "../../src/server/live/rate-budget.ts";
import { approval, ask, other, settings, tokenFor } from "./auth-fixture.ts";
import { SseReader, type ReadEvent } from "./sse-reader.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-events-"));
const store = `sqlite:${join(folder, "events.db")}`;
const mail = queue("mail", { concurrency: 2 });
const mailed = workflow("mailed", { queue: mail }, async () => "sent");
let engine: Engine<typeof approval | typeof other | typeof mailed>;
let server: Server;

beforeAll(async () => {
  engine = await createEngine({ store, definitions: [approval, other, mailed], logger: false });
  server = createServer(engine, {
    auth: {
      tokens: [
        settings("viewer", "viewer"),
        settings("scoped", "viewer", { definitions: ["other"] }),
        settings("tagged", "viewer", { tags: ["eu"] }),
        settings("queues", "viewer", { queues: ["nothing"] }),
      ],
    },
  });
});

afterAll(async () => {
  await server.close();
  await engine.close();
  rmSync(folder, { recursive: true });
});

async function follow(query = "", token = "viewer", lastId?: string): Promise<SseReader> {
  const headers = lastId === undefined ? {} : { "last-event-id": lastId };
  const response = await ask(server, `/v1/events${query}`, { token: tokenFor(token), headers });
  expect(response.status).toBe(200);
  return new SseReader(response);
}

const isRun =
  (id: string, status?: string) =>
  ({ event, data }: ReadEvent): boolean =>
    event === "run" && data.id === id && (status === undefined || data.status === status);

const isPromise =
  (run: string, state: string) =>
  ({ event, data }: ReadEvent): boolean =>
    event === "promise" && data.run === run && data.state === state;

test("a reader sees a run's start, its open promise and its end", async () => {
  await using reader = await follow();
  expect(await reader.next()).toMatchObject({ event: "ready", id: expect.stringMatching(/^[\da-f]+-\d+$/) });
  const run = await engine.start(approval, "card", { id: "told" });
  const [started, opened] = await reader.findAll(isRun("told"), isPromise("told", "opened"));
  expect(started!.data).toMatchObject({ definition: "approval", tags: [] });
  expect(opened!.data).toMatchObject({ name: "ok", definition: "approval" });
  expect(JSON.stringify(opened!.data)).not.toContain("card");
  await run.resolve("ok", { ok: true });
  const [ended, closed] = await reader.findAll(isRun("told", "completed"), isPromise("told", "closed"));
  const { entries, digest } = await run.info();
  expect(ended!.data).toMatchObject({ entries, digest });
  expect(closed!.data).toMatchObject({ name: "ok" });
});

test("a reader that was cut off continues behind its last event without a gap and without a repetition", async () => {
  const first = await follow("?run=resumed");
  await first.next();
  const run = await engine.start(approval, "card", { id: "resumed" });
  await first.find(isRun("resumed"));
  const { lastId } = first;
  await first[Symbol.asyncDispose]();
  await run.resolve("ok", { ok: true });
  await run.result();
  await using whole = await follow();
  // The end is in the ring once another reader could see it.
  await engine.start(other, "x", { id: "after-resumed" });
  await whole.find(isRun("after-resumed", "completed"));
  await using second = await follow("?run=resumed", "viewer", lastId);
  const event = await second.next();
  expect(event?.event).not.toBe("ready");
  expect(Number(event!.id!.split("-")[1])).toBeGreaterThan(Number(lastId!.split("-")[1]));
  if (!isRun("resumed", "completed")(event!)) await second.find(isRun("resumed", "completed"));
});

test("an id that the feed does not have is answered with a reset", async () => {
  await using reader = await follow("", "viewer", "0123456789ab-7");
  expect(await reader.next()).toMatchObject({ event: "reset", id: expect.any(String) });
  await using again = await follow("", "viewer", reader.lastId);
  await engine.start(other, "x", { id: "after-reset" });
  await again.find(isRun("after-reset"));
});

test("filters and scopes leave out what a reader did not ask for or may not see", async () => {
  await using byDefinition = await follow("?definition=other");
  await using byStatus = await follow("?status=completed");
  await using scoped = await follow("", "scoped");
  await using tagged = await follow("", "tagged");
  await using queues = await follow("", "queues");
  const readers = [byDefinition, byStatus, scoped, tagged];
  for (const reader of [...readers, queues]) await reader.next();
  const hidden = await engine.start(approval, "card", { id: "hidden" });
  await engine.start(other, "x", { id: "shown", tags: ["eu"] });
  const seen = await Promise.all(
    readers.map(async (reader) => {
      const ids: string[] = [];
      await reader.find((event) => {
        if (event.event === "run") ids.push(event.data.id);
        expect(event.event).toBe("run");
        return isRun("shown", "completed")(event);
      });
      return ids;
    }),
  );
  for (const ids of seen) expect(ids).not.toContain("hidden");
  await hidden.terminate();
});

test("a change by another process is reported", async () => {
  await using reader = await follow();
  await reader.next();
  await using client = await createClient({ store, definitions: [approval, other], logger: false });
  const run = await client.start(approval, "card", { id: "elsewhere" });
  await reader.find(isRun("elsewhere"));
  await run.pause();
  await reader.find(isRun("elsewhere", "paused"));
  await run.terminate();
  await reader.find(isRun("elsewhere", "cancelled"));
});

test("a queue that is paused and a worker that registers are reported", async () => {
  await using reader = await follow();
  await reader.next();
  await engine.getQueue(mail).pause();
  await reader.find(({ event, data }) => event === "queue" && data.name === "mail" && data.paused === true);
  await engine.getQueue(mail).resume();
  await reader.find(({ event, data }) => event === "queue" && data.name === "mail" && data.paused === false);
  await using second = await createEngine({ store, definitions: [other], logger: false });
  const { data } = await reader.find(({ event }) => event === "worker");
  expect(data).toMatchObject({ name: expect.any(String), alive: true });
  await second.close();
  await reader.find(({ event, data: gone }) => event === "worker" && gone.gone === true);
});

test("a ring gives the events behind an id, and none once they are no longer all there", () => {
  const ring = new ChangeRing("e", 2);
  expect(ring.lastId).toBe("e-0");
  for (const reason of ["a", "b", "c", "d", "e"]) ring.add({ event: "reset", data: { reason } });
  expect(ring.after("e-5")).toEqual([]);
  expect(ring.after("e-3")?.map(({ number }) => number)).toEqual([4, 5]);
  expect(ring.after("e-2")).toBeUndefined();
  expect(ring.after("e-6")).toBeUndefined();
  expect(ring.after("f-4")).toBeUndefined();
  expect(ring.after("nonsense")).toBeUndefined();
});

test("a budget allows a burst of five, and then one read a second", () => {
  const budget = new RateBudget(0);
  expect([1, 2, 3, 4, 5].map((ms) => budget.take(ms))).toEqual([0, 0, 0, 0, 0]);
  expect(budget.take(10)).toBe(990);
  expect(budget.take(1_000)).toBe(0);
  expect(budget.take(1_001)).toBe(999);
  expect(budget.isFull(5_999)).toBe(false);
  expect(budget.isFull(6_000)).toBe(true);
});

test("a reader that missed more than may wait for it is told to load everything again", async () => {
  await using present = await follow("?definition=other");
  const before = (await present.next())?.id;
  const tags = Array.from({ length: 100 }, (_, at) => String(at).padEnd(200, "x"));
  const ids = Array.from({ length: 60 }, (_, at) => `long-${at}`);
  for (const id of ids) {
    await engine.start(other, "x", { id, tags });
    await present.find(isRun(id));
  }
  await using late = await follow("?definition=other", "viewer", before);
  expect(await late.next()).toMatchObject({ event: "reset" });
  await engine.start(other, "x", { id: "loaded-again" });
  await late.find(isRun("loaded-again"));
});

test("a change that the store could not be asked about comes later", async () => {
  const source = storeOf("sqlite::memory:");
  let failed: (() => void) | undefined;
  const faulty: typeof source = {
    async "~open"(options) {
      const opened = await source["~open"](options);
      const read = opened.readRuns.bind(opened);
      opened.readRuns = async (runs) => {
        if (failed === undefined) return read(runs);
        failed();
        throw new Error("the store does not answer");
      };
      return opened;
    },
  };
  await using alone = await createEngine({ store: faulty, definitions: [other], logger: false });
  await using faultyServer = createServer(alone);
  await using reader = new SseReader(await ask(faultyServer, "/v1/events"));
  await reader.next();
  await (await alone.start(other, "x", { id: "seen" })).result();
  await reader.find(isRun("seen", "completed"));
  const hasFailed = Promise.withResolvers<void>();
  failed = hasFailed.resolve;
  await (await alone.start(other, "x", { id: "late" })).result();
  await hasFailed.promise;
  failed = undefined;
  // Nothing changes the run any more: only the feed itself can read it again.
  await reader.find(isRun("late", "completed"));
});
