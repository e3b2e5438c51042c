// A remote store when the network or the database fails.

import { describe, expect, test } from "vitest";
import { aesGcm, RepriseError, systemRandom, systemTimers } from "../../src/base/index.ts";
import { ConnectionError } from "../../src/stores/remote/backend.ts";
import { openRemoteStore, type RemoteStore } from "../../src/stores/remote/remote-store.ts";
import type { RemoteStoreOptions } from "../../src/stores/remote/session.ts";
import { PERFECT_WIRE, SimServer, type SimCall, type SimFate, type SimWire } from "../simulation/store/sim-backend.ts";
import {
  commitTurn,
  getRun,
  message,
  newRun,
  registerWorker,
  startHeld,
  turnWrite,
} from "../../src/testing/store-cases/store-actions.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";

interface World {
  readonly server: SimServer;
  readonly store: RemoteStore;
  /** The fates of the next commits, in order; later ones succeed. */
  readonly fates: SimFate[];
  /** Calls that fail because the database is unreachable. */
  away: (call: SimCall) => boolean;
}

async function openWorld(options: Partial<RemoteStoreOptions> = {}): Promise<World> {
  const time = createVirtualTime();
  const server = new SimServer("rc", () => time.now());
  const fates: SimFate[] = [];
  const wire: SimWire = {
    ...PERFECT_WIRE,
    fate: () => fates.shift() ?? "ok",
    pass: (call, place) => {
      if (place === "before" && world.away(call)) throw new ConnectionError("lost");
    },
  };
  const ports = { clock: time.clock, timers: systemTimers, random: systemRandom };
  const world: World = { server, fates, away: () => false, store: undefined as never };
  const store = await openRemoteStore(server.backend(wire), {
    ...ports,
    durability: "full",
    time: "given",
    retryForMs: 0,
    ...options,
  });
  return Object.assign(world, { store });
}

const entriesOf = async ({ store }: World, run: number): Promise<readonly number[]> =>
  (await store.readJournal(run, 0)).map(({ seq }) => seq);

describe.each(["lost-after", "lost-before", "late", "retry"] as const)("a commit that is %s", (fate) => {
  test("is applied once, and its caller gets the normal outcome", async () => {
    const world = await openWorld({ retryForMs: 10_000 });
    const { store, fates } = world;
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    fates.push(fate);
    const write = turnWrite(store, held, { entries: [["OperationCompleted", "Operation(0)", "{}"]] });
    expect(await store.write([write])).toMatchObject([{ status: "committed" }]);
    expect(fates).toEqual([]);
    expect(await entriesOf(world, held.run)).toEqual([1, 2]);
    expect(await store.check()).toEqual([]);
    await store.close();
  });

  test("starts a run once", async () => {
    const world = await openWorld({ retryForMs: 10_000 });
    const { store, fates } = world;
    fates.push(fate);
    const [outcome] = await store.write([{ write: "start", run: newRun("order-1") }]);
    expect(outcome.status).toBe("started");
    expect((await store.listRuns({ limit: 10 })).map(({ id }) => id)).toEqual(["order-1"]);
    await store.close();
  });
});

test("a commit whose outcome cannot be read is reported as unresolved, and nothing is acknowledged", async () => {
  const world = await openWorld();
  const { store, fates } = world;
  const worker = await registerWorker(store);
  const held = await startHeld(store, worker, "order-1");
  fates.push("lost-after");
  let isCommitting = false;
  world.away = (call) => (call === "commit" ? void (isCommitting = true) : isCommitting) === true;
  const write = turnWrite(store, held, { entries: [["OperationCompleted", "Operation(0)", "{}"]] });
  const error = await store.write([write]).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RepriseError);
  expect(error).toMatchObject({ code: "STORE_UNREACHABLE", details: { unresolved: true } });
  world.away = () => false;
  // It was committed: a repeated call returns it.
  expect(await store.write([write])).toMatchObject([{ status: "already_committed" }]);
  await store.close();
});

test("a database that is down for long is reported, and used again when it is back", async () => {
  const world = await openWorld();
  const { store } = world;
  world.away = () => true;
  await expect(store.write([{ write: "start", run: newRun("order-1") }])).rejects.toMatchObject({
    code: "STORE_UNREACHABLE",
  });
  await expect(store.findRun("order-1")).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  world.away = () => false;
  expect(await store.write([{ write: "start", run: newRun("order-1") }])).toMatchObject([{ status: "started" }]);
  await store.close();
});

test("calls wait for a database that is down for a moment", async () => {
  const world = await openWorld({ retryForMs: 60_000 });
  const { store } = world;
  let calls = 0;
  world.away = () => (calls += 1) < 20;
  expect(await store.write([{ write: "start", run: newRun("order-1") }])).toMatchObject([{ status: "started" }]);
  expect((await getRun(store, "order-1")).status).toBe("queued");
  await store.close();
});

test("an outdated cached row changes no outcome", async () => {
  const world = await openWorld();
  const { server, store } = world;
  const worker = await registerWorker(store);
  const held = await startHeld(store, worker, "order-1");
  const other = await openRemoteStore(server.backend(), {
    clock: createVirtualTime().clock,
    timers: systemTimers,
    random: systemRandom,
    durability: "full",
    time: "given",
  });
  await other.write([
    { write: "message", to: "order-1", once: false, arrival: { type: "PromiseResolved", target: "p", data: "{}" } },
  ]);
  // The cached row has no message yet.
  const write = turnWrite(store, held, { entries: [["OperationCompleted", "Operation(0)", "{}"]], then: "release" });
  expect(await store.write([write])).toMatchObject([{ status: "committed", more: true }]);
  expect(await store.readInbox(held.run, 0)).toHaveLength(1);
  await other.releaseWorker(worker);
  expect(await store.write([turnWrite(store, held, {})])).toMatchObject([{ status: "lease_lost" }]);
  await other.close();
  await store.close();
});

test("the last commit before a store is closed is announced to other processes", async () => {
  const { server, store } = await openWorld();
  const heard: string[] = [];
  await server.backend().listen((text) => heard.push(text));
  await store.write([{ write: "start", run: newRun("order-1") }]);
  const { run } = await getRun(store, "order-1");
  // The start was just announced, so this commit waits for the next notification.
  await store.write([
    { write: "message", to: "order-1", once: false, arrival: { type: "PromiseResolved", target: "p", data: "{}" } },
  ]);
  await store.close();
  expect(heard).toEqual(["turns ", `turns ${run}`]);
});

test("lists that arrive together share transactions", async () => {
  const { store, server } = await openWorld();
  const before = server.database.commits;
  const starts = Array.from({ length: 50 }, (_, n) => store.write([{ write: "start", run: newRun(`run-${n}`) }]));
  for (const [outcome] of await Promise.all(starts)) expect(outcome.status).toBe("started");
  expect(server.database.commits - before).toBeLessThan(20);
  await store.close();
});

test("a list that fails does not fail other lists of its transaction", async () => {
  const { store } = await openWorld();
  const starts = Array.from({ length: 10 }, (_, n) => store.write([{ write: "start", run: newRun(`run-${n}`) }]));
  // A lone surrogate, which no database can store.
  const bad = store.write([{ write: "start", run: newRun("bad", { runtime: "\ud800" }) }]);
  await expect(bad).rejects.toThrow();
  for (const [outcome] of await Promise.all(starts)) expect(outcome.status).toBe("started");
  await store.close();
});

test("payloads are sent encoded, and rekey writes them with another key", async () => {
  const key = (byte: number) => aesGcm({ keys: { [`k${byte}`]: new Uint8Array(32).fill(byte) }, current: `k${byte}` });
  const time = createVirtualTime();
  const server = new SimServer("rc", () => time.now());
  const open = (codec: ReturnType<typeof key> | undefined) =>
    openRemoteStore(server.backend(), {
      clock: time.clock,
      timers: systemTimers,
      random: systemRandom,
      durability: "full",
      time: "given",
      codec,
    });
  const store = await open(key(1));
  const worker = await registerWorker(store);
  const held = await startHeld(store, worker, "order-1", { started: '{"input":"secret"}' });
  await commitTurn(store, held, { entries: [["OperationCompleted", "Operation(0)", '{"value":"secret"}']] });
  const kept = (): string[] =>
    [...server.database.table("journal").all()].map(({ data }) => Buffer.from(data as Uint8Array).toString("latin1"));
  expect(kept().some((text) => text.includes("secret"))).toBe(false);
  expect((await store.readJournal(held.run, 0)).map(({ data }) => data)).toContain('{"value":"secret"}');
  expect(await store.check()).toEqual([]);
  await store.close();
  await expect(open(undefined)).rejects.toMatchObject({ code: "PAYLOAD_KEY_MISSING" });
  const both = aesGcm({ keys: { k2: new Uint8Array(32).fill(2), k1: new Uint8Array(32).fill(1) }, current: "k2" });
  const again = await open(both);
  const before = kept();
  const { payloads, unreadable } = await again.rekey();
  expect([payloads > 0, unreadable]).toEqual([true, 0]);
  expect(kept().some((text) => before.includes(text))).toBe(false);
  await again.close();
  const last = await open(key(2));
  expect((await last.readJournal(held.run, 0)).map(({ data }) => data)).toContain('{"value":"secret"}');
  await last.close();
});

test("a turn that reads a message which the cached row does not count yet is committed", async () => {
  const { server, store } = await openWorld();
  const worker = await registerWorker(store);
  const held = await startHeld(store, worker, "order-1");
  // The row of the run is cached now. Another process sends a message: the cached count of arrivals is out of date.
  const time = createVirtualTime();
  const ports = { clock: time.clock, timers: systemTimers, random: systemRandom };
  // Its change notice is lost.
  const backend = Object.assign(server.backend(PERFECT_WIRE), { notify: undefined });
  const other = await openRemoteStore(backend, { ...ports, durability: "full", time: "given" });
  await other.write([message("order-1")]);
  expect(await store.readInbox(held.run, 0)).toHaveLength(1);
  const [outcome] = await store.write([turnWrite(store, held, { read: 1, then: "hold" })]);
  expect(outcome).toMatchObject({ status: "committed" });
  expect(await getRun(store, "order-1")).toMatchObject({ arrivals: 1, read: 1 });
  await other.close();
});

test("a store that is closed deletes the rows of its writers, and takes that for no loss of history", async () => {
  const { server, store } = await openWorld();
  const breaks: string[] = [];
  store.onHistoryBreak(({ kind }) => breaks.push(kind));
  await store.write([{ write: "start", run: newRun("order-1") }]);
  const { database } = server;
  const before = database.table("writers").size;
  await store.close();
  expect(database.table("writers").size).toBeLessThan(before);
  expect(breaks).toEqual([]);
  expect([...database.table("meta").all()].map(({ key }) => key)).toEqual(["incarnation"]);
});
