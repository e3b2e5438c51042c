// Leased slots: a worker runs more items of a limited queue than one commit per slot would allow, and never exceeds the limit.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createClient, createEngine, queue, task, workflow, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine } from "reprise/testing";
import type { HistoryBreak } from "../../src/kernel/index.ts";
import { storeOf } from "../../src/stores/store-url.ts";
import { claimItems, registerWorker } from "../../src/testing/store-cases/store-actions.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";
import { simulatedSource } from "../stores/remote-fixture.ts";
import { asks, SLOTS } from "./limited-process.ts";
import { aroundWrites, createFolder, createGate, storeAround, type AnyWrite } from "./world.ts";

const PROCESS = fileURLToPath(new URL("limited-process.ts", import.meta.url));
const RUNS = 600;

async function spawnWorker(...args: readonly string[]): Promise<ChildProcess> {
  const child = fork(PROCESS, args, { execArgv: ["--conditions=reprise-source"] });
  await once(child, "message");
  return child;
}

/** The most functions that ran at once in all processes. */
function mostAtOnce(file: string): number {
  const running = new Map<string, number>();
  let most = 0;
  for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) {
    const [what = "", pid = ""] = line.split(" ");
    if (what === "kill") running.delete(pid);
    else running.set(pid, (running.get(pid) ?? 0) + (what === "start" ? 1 : -1));
    most = Math.max(
      most,
      [...running.values()].reduce((sum, count) => sum + count, 0),
    );
  }
  return most;
}

async function runWithKills(url: string): Promise<number> {
  using folder = createFolder();
  const file = folder.file("calls");
  const first = await spawnWorker(url, file, "150");
  const second = await spawnWorker(url, file, "150");
  const last = await spawnWorker(url, file);
  await using client = await createClient({ store: storeOf(url), definitions: [asks] });
  const started = await Promise.all(Array.from({ length: RUNS }, (_, n) => client.start(asks, n)));
  const results = await Promise.all(started.map((run) => run.result()));
  expect(results).toEqual(Array.from({ length: RUNS }, (_, n) => n));
  last.send("stop");
  await once(last, "exit");
  for (const child of [first, second]) if (child.exitCode === null) child.kill("SIGKILL");
  return mostAtOnce(file);
}

test("workers that are killed never run more functions of a queue at once than it has slots, on SQLite", async () => {
  using folder = createFolder();
  expect(await runWithKills(`sqlite:${folder.file("shop.db")}`)).toBeLessThanOrEqual(SLOTS);
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `leased slots on ${kind}`, () => {
    test("workers that are killed never run more functions of a queue at once than it has slots", async () => {
      await using database = await freshDatabase(kind);
      expect(await runWithKills(database.url)).toBeLessThanOrEqual(SLOTS);
    });
  });

/** A queue with four slots, and how many of its functions run at once. */
function limited() {
  const narrow = queue("narrow", { concurrency: SLOTS });
  const now = { running: 0, most: 0, calls: 0 };
  const job = task("job", { queue: narrow }, async (_ctx, n: number) => {
    now.calls += 1;
    now.most = Math.max(now.most, (now.running += 1));
    await setImmediate();
    now.running -= 1;
    return n;
  });
  const work = workflow("work", async (ctx, n: number) => ctx.task(job, n));
  return { narrow, now, definitions: [work, job], work };
}

test.each([
  ["SQLite", () => sqlite(":memory:")],
  ["a store behind a network", simulatedSource],
])("one commit ends more tasks of a queue than it has slots, on %s", async (_, source) => {
  const { now, definitions, work } = limited();
  let ended = 0;
  const store: StoreSource = aroundWrites(source(), async (writes, apply) => {
    const finished = writes.flatMap((one) => (one.write === "turn" ? one.finished : []));
    ended = Math.max(ended, finished.length);
    return apply();
  });
  await using engine = await createEngine({ store, definitions });
  const runs = await Promise.all(Array.from({ length: 400 }, (_each, n) => engine.start(work, n)));
  await Promise.all(runs.map((run) => run.result()));
  expect(now.most).toBe(SLOTS);
  expect(ended).toBeGreaterThan(SLOTS);
});

test("workers keep to a limit that is lowered and raised, and to a pause", async () => {
  using folder = createFolder();
  const { narrow, now, definitions, work } = limited();
  const open = () => createEngine({ store: sqlite(folder.file("shop.db")), definitions });
  await using engine = await open();
  const other = await open();
  const all = await Promise.all(Array.from({ length: 600 }, (_each, n) => engine.start(work, n)));
  await Promise.race(all.map((run) => run.result()));
  const handle = engine.getQueue(narrow);
  await handle.limit({ concurrency: 1 });
  await Promise.race(all.slice(300).map((run) => run.result()));
  await handle.pause();
  await other.close();
  await handle.limit({ concurrency: SLOTS });
  await handle.resume();
  await Promise.all(all.map((run) => run.result()));
  expect(now.most).toBeLessThanOrEqual(SLOTS);
  expect(now.running).toBe(0);
});

test("a worker that drains gives its slots back while another of its functions runs", async () => {
  using folder = createFolder();
  const { definitions, work } = limited();
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const slow = task("slow", () => released);
  const waits = workflow("waits", async (ctx) => ctx.task(slow));
  const open = () =>
    createEngine({ store: sqlite(folder.file("shop.db")), definitions: [...definitions, waits, slow] });
  const draining = await open();
  const slowRun = await draining.start(waits);
  const all = await Promise.all(Array.from({ length: 400 }, (_each, n) => draining.start(work, n)));
  await Promise.race(all.map((run) => run.result()));
  const drained = draining.drain();
  await using other = await open();
  await Promise.all(all.map(({ id }) => other.get(work, id).result()));
  release();
  await drained;
  await draining.close();
  await other.get(waits, slowRun.id).result();
});

test("an idle worker asks for no items ahead of slots", async () => {
  const { narrow, definitions, work } = limited();
  let isIdle = false;
  const claims: AnyWrite[] = [];
  const store = storeAround((writes, apply) => {
    if (isIdle) claims.push(...writes.filter((write) => write.write === "claim-items"));
    return apply();
  });
  await using engine = await createTestEngine({ store, definitions });
  const runs = await Promise.all(Array.from({ length: 100 }, (_, n) => engine.start(work, n)));
  await Promise.all(runs.map((run) => run.result()));
  await engine.clock.advance(1_000);
  isIdle = true;
  // A changed queue may have items to claim.
  await engine.getQueue(narrow).limit({ concurrency: SLOTS });
  await engine.clock.advance(1_000);
  expect(claims.length).toBeGreaterThan(0);
  expect(claims.filter((write) => "ahead" in write)).toEqual([]);
});

test("a worker whose execution slots are busy leaves a queue to other workers", async () => {
  const { definitions, work } = limited();
  const busy = createGate();
  const long = task("long", () => busy.wait());
  const short = task("short", () => {});
  const waits = workflow("waits", async (ctx) => ctx.task(long));
  const many = workflow("many", async (ctx) => {
    await Promise.all(Array.from({ length: 40 }, () => ctx.task(short)));
  });
  const store = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({
    store,
    definitions: [...definitions, long, short, waits, many],
    worker: { concurrency: SLOTS },
  });
  // The worker leases more tasks than it has execution slots, and more tasks of the queue than that has slots.
  for (let round = 0; round < 6; round += 1) await (await engine.start(many)).result();
  const warm = await Promise.all(Array.from({ length: 100 }, (_, n) => engine.start(work, n)));
  await Promise.all(warm.map((run) => run.result()));
  const blocked = await Promise.all(Array.from({ length: SLOTS }, () => engine.start(waits)));
  await busy.reached;
  const runs = await Promise.all(Array.from({ length: 40 }, (_, n) => engine.start(work, n)));
  await engine.clock.advance(2_000);
  const other = await registerWorker(store.store);
  expect((await claimItems(store.store, other, ["job"])).length).toBe(SLOTS);
  await store.store.releaseWorker(other);
  busy.open();
  await engine.clock.advance(10_000);
  await Promise.all([...blocked, ...runs].map((run) => run.result()));
});

/** A store that reports a break in its history when the test says so: its workers drop all work and register again. */
function breakable(path: string): StoreSource & { break(): void } {
  const listeners: ((change: HistoryBreak) => void)[] = [];
  return {
    break: () => listeners.forEach((listen) => listen({ kind: "rolled_back", at: 0, detail: "by the test" } as never)),
    async "~open"(options) {
      return new Proxy(await sqlite(path)["~open"](options), {
        get(target, key) {
          if (key === "onHistoryBreak") return (listener: (typeof listeners)[0]) => listeners.push(listener);
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}

test("claimed items that have not started when a worker drops all its work do not start", async () => {
  const source = breakable(":memory:");
  const late: number[] = [];
  let state: "before" | "armed" | "breaking" | "dropped" | "registered" = "before";
  let claimant = 0;
  const store = aroundWrites(source, async (writes, apply) => {
    const outcomes = await apply();
    writes.forEach((write, index) => {
      if (write.write !== "claim-items") return;
      if (state === "dropped" && write.worker !== claimant) state = "registered";
      claimant = write.worker;
      const { items } = outcomes[index] as { readonly items: readonly unknown[] };
      // More inputs than one turn of the event loop handles.
      if (state === "before" && items.length >= 12) state = "armed";
    });
    return outcomes;
  });
  const narrow = queue("narrow", { concurrency: SLOTS });
  const job = task("job", { queue: narrow }, async (_ctx, { n }: { n: number; pad: string }) => {
    if (state === "dropped") late.push(n);
    if (state === "armed") {
      state = "breaking";
      queueMicrotask(() => {
        state = "dropped";
        source.break();
      });
    }
    await setImmediate();
    return n;
  });
  const pad = "x".repeat(128 * 1024);
  const work = workflow("work", async (ctx, n: number) => ctx.task(job, { n, pad }));
  await using engine = await createEngine({ store, definitions: [work, job], logger: false });
  const runs = await Promise.all(Array.from({ length: 60 }, (_, n) => engine.start(work, n)));
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 60 }, (_, n) => n));
  expect(state).toBe("registered");
  expect(late).toEqual([]);
});
