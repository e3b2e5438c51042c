import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import type { Outcome, Store, TurnWrite, Write } from "../../kernel/index.ts";
import { concernsOthers } from "./concerns-others.ts";
import { FileNotifier } from "./file-notifier.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };
const RUN = {
  kind: "workflow",
  version: 1,
  priority: 0,
  tags: [],
  started: "{}",
  runtime: "",
  definition: "d",
} as const;
const START: Write = { write: "start", run: { ...RUN, id: "a" } };
const STARTED = { status: "started" } as Outcome;
const COMMITTED = { status: "committed" } as Outcome;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reprise-notices-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A file in place of an index, and whether a notifier has set its times since the last call. */
function createIndex(): { readonly path: string; isTouched(): boolean } {
  const path = join(folder, "index");
  writeFileSync(path, "");
  utimesSync(path, 0, 0);
  return {
    path,
    isTouched() {
      const { mtimeMs } = statSync(path);
      utimesSync(path, 0, 0);
      return mtimeMs !== 0;
    },
  };
}

test("a process without a worker notifies the others of its commits", () => {
  const index = createIndex();
  const notifier = new FileNotifier(PORTS);
  notifier.open(index.path);
  notifier.committed([START], [STARTED]);
  expect(index.isTouched()).toBe(true);
});

test("a process with a worker notifies others only after it has seen a commit of one", () => {
  const index = createIndex();
  const notifier = new FileNotifier(PORTS);
  notifier.worksHere = true;
  notifier.open(index.path);
  notifier.committed([START], [STARTED]);
  expect(index.isTouched()).toBe(false);
  notifier.sawOthers();
  notifier.committed([START], [STARTED]);
  expect(index.isTouched()).toBe(true);
});

test("a second commit within the pause is announced when the notifier closes, at the latest", () => {
  const index = createIndex();
  const timers = { ...systemTimers, set: () => () => undefined };
  const notifier = new FileNotifier({ timers, clock: { ...systemClock, monotonic: () => 1_000 } });
  notifier.open(index.path);
  notifier.committed([START], [STARTED]);
  expect(index.isTouched()).toBe(true);
  notifier.committed([START], [STARTED]);
  expect(index.isTouched()).toBe(false);
  notifier.close();
  expect(index.isTouched()).toBe(true);
});

test("a notifier whose file is missing does nothing", () => {
  const notifier = new FileNotifier(PORTS);
  notifier.onNotice(() => undefined);
  notifier.open(join(folder, "missing"));
  notifier.committed([START], [STARTED]);
  notifier.close();
  notifier.close();
});

test("only commits that another process may wait for concern it", () => {
  const turn: TurnWrite = {
    ...{ write: "turn", run: 1, token: "t", head: 1, previousChain: "", chain: "", read: 0, then: "hold" },
    ...{ entries: [], finished: [], items: [], dropped: [], children: [], messages: [], chunks: [], outgoing: [] },
  };
  const item = { item: "Task(1)", kind: "task", name: "send", priority: 0, seq: 1 } as const;
  const claim = { worker: 1, token: "t" };
  const concerned = (write: Write, outcome = COMMITTED): boolean => concernsOthers(write, outcome);
  expect(concerned(turn)).toBe(false);
  expect(concerned({ ...turn, then: "completed" })).toBe(true);
  expect(concerned({ ...turn, then: "completed" }, { status: "lease_lost" })).toBe(false);
  expect(concerned({ ...turn, items: [item] })).toBe(true);
  expect(concerned({ ...turn, items: [{ ...item, claim }] })).toBe(false);
  expect(concerned({ ...turn, items: [{ ...item, kind: "timer" }] })).toBe(false);
  expect(concerned(START, STARTED)).toBe(true);
  expect(concerned(START, { status: "exists" } as Outcome)).toBe(false);
  expect(concerned({ ...START, claim }, STARTED)).toBe(false);
  expect(concerned({ write: "fire-due", limit: 1 }, { runs: [], ready: 0, nextAt: undefined })).toBe(false);
  expect(concerned({ write: "fire-due", limit: 1 }, { runs: [1], ready: 0, nextAt: undefined })).toBe(true);
});

function openStore(readOnly = false): Promise<Store> {
  return openSqliteStore({ path: join(folder, "store.db"), ...PORTS, readOnly });
}

test("a store that is opened to read hears of the commits of others", async () => {
  const writer = await openStore();
  const reader = await openStore(true);
  const noticed = Promise.withResolvers<void>();
  reader.onNotice?.(noticed.resolve);
  reader.pollChanges();
  await writer.write([START]);
  await noticed.promise;
  expect(reader.pollChanges()).toBe(true);
  await reader.close();
  await writer.close();
});

test("a store leaves no file behind for its notices", async () => {
  const store = await openStore();
  store.onNotice?.(() => undefined);
  await store.write([START]);
  await store.close();
  expect(readdirSync(folder)).toEqual(["store.db"]);
});
