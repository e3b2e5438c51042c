// A mirror: copies of runs in a SQLite file that refuses every other write.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aesGcm, createEngine, type AnyTask, type Definition } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { Store, Write } from "../../src/kernel/index.ts";
import { copyOf, Mirror, type CopiedRun } from "../../src/stores/maintenance/index.ts";
import type { CopiedEntry } from "../../src/stores/rules/copied-run.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { child, family, fork, order, pages } from "./mirror-definitions.ts";

const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };
const DEFINITIONS: readonly (Definition | AnyTask)[] = [order, pages, family, child, fork];
const ROOT = join(import.meta.dirname, "../..");

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "reprise-mirror-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const homePath = (): string => join(folder, "home.db");
const mirrorPath = (): string => join(folder, "runs", "prod.db");

/** Works on the runs of the home store with an engine. */
async function atHome(work: (engine: Awaited<ReturnType<typeof createEngine>>) => Promise<unknown>): Promise<void> {
  await using engine = await createEngine({
    store: `sqlite:${homePath()}`,
    definitions: DEFINITIONS,
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  });
  await work(engine);
}

const openHome = (): Promise<Store> => openSqliteStore({ path: homePath(), ...PORTS, readOnly: true });
const openMirror = (): Promise<Mirror> => Mirror.open({ path: mirrorPath(), name: "prod", ...PORTS });

async function copies(store: Store, ...ids: readonly string[]): Promise<CopiedRun[]> {
  const found: CopiedRun[] = [];
  for (const id of ids)
    for (let generation = 0; ; generation += 1) {
      const copy = await copyOf(store, { id, generation });
      if (copy === undefined) break;
      found.push(copy);
    }
  return found;
}

/** Puts runs into the mirror, in this order, one transaction each. */
async function pull(...ids: readonly string[]): Promise<string[]> {
  const home = await openHome();
  const mirror = await openMirror();
  try {
    const statuses: string[] = [];
    for (const id of ids) statuses.push(...(await mirror.put(await copies(home, id))).map(({ status }) => status));
    return statuses;
  } finally {
    await mirror.close();
    await home.close();
  }
}

/** Everything that the port reads of these runs, without the numbers of the store. */
async function contentOf(path: string, ...ids: readonly string[]): Promise<unknown> {
  const store = await openSqliteStore({ path, ...PORTS, readOnly: true });
  try {
    const listed = (await store.listRuns({ limit: 1_000 })).map(({ id, generation }) => `${id} ${generation}`);
    const runs: unknown[] = [];
    for (const id of ids) {
      const { run, parent, ...record } = (await store.findRun(id))!;
      const { turn: _, ...work } = (await store.readRunWork(run))!;
      runs.push({
        record,
        hasParent: parent !== undefined,
        entries: await store.readJournal(run, 0),
        checkpoints: await store.readCheckpoints(run, -1),
        state: await store.findCheckpoint(run, 1_000, true),
        attempts: await store.readAttempts(run),
        chunks: await store.readStream(run, "log", 0, 1_000),
        inbox: await store.readInbox(run, 0),
        readiness: await store.readReadiness(run),
        children: await store.countChildren(run),
        work,
      });
    }
    return { listed: listed.filter((one) => ids.includes(one.split(" ")[0]!)), runs };
  } finally {
    await store.close();
  }
}

async function startAll(): Promise<void> {
  await atHome(async (engine) => {
    await (await engine.start(pages, 2, { id: "pages-1" })).result();
    await (await engine.start(order, 3, { id: "order-1", tags: ["eu", "b2b"] })).result();
    await (await engine.start(family, 2, { id: "family-1" })).result();
    await (await engine.start(fork, {}, { id: "graph-1" })).result();
  });
}

describe("a copy", () => {
  test("has everything that the port reads of a run at home", async () => {
    await startAll();
    const home = await openHome();
    const all = (await home.listRuns({ limit: 100 })).map(({ id }) => id);
    await home.close();
    const known = [...new Set(all)];
    await pull(...known.toReversed());
    expect(await contentOf(mirrorPath(), ...known)).toEqual(await contentOf(homePath(), ...known));
    expect(known.length).toBe(6);
  });

  test("is the same in whatever order parents, children and generations are put in", async () => {
    await startAll();
    const home = await openHome();
    const known = [...new Set((await home.listRuns({ limit: 100 })).map(({ id }) => id))];
    const each = await Promise.all(known.map((id) => copies(home, id)));
    // From a bundle: no numbers of home.
    const parts = each.flat().map((copy): CopiedRun => ({ ...copy, number: undefined, turn: undefined }));
    const contents: unknown[] = [];
    for (const ordered of [parts, parts.toReversed()]) {
      rmSync(join(folder, "runs"), { recursive: true, force: true });
      const mirror = await openMirror();
      for (const part of ordered) await mirror.put([part]);
      expect(await mirror.store.check()).toEqual([]);
      expect((await mirror.store.listRuns({ parent: "family-1", limit: 10 })).length).toBe(2);
      await mirror.close();
      contents.push(await contentOf(mirrorPath(), ...known));
    }
    await home.close();
    expect(contents[1]).toEqual(contents[0]);
  });

  test("that is put in again changes nothing; a longer journal replaces it, a shorter one does not", async () => {
    await atHome(async (engine) => {
      const run = await engine.start(pages, 0, { id: "wait-1" });
      await run.result();
      const waiting = await engine.start(order, -1, { id: "live-1" });
      await expect.poll(async () => (await waiting.info()).status).toBe("waiting");
    });
    expect(await pull("wait-1")).toEqual(["added"]);
    expect(await pull("wait-1")).toEqual(["unchanged"]);
    const home = await openHome();
    const early = await copies(home, "live-1");
    const pagesOfEarly: (readonly CopiedEntry[])[] = [];
    for await (const page of early[0]!.entries()) pagesOfEarly.push(page);
    await home.close();
    expect(await pull("live-1")).toEqual(["added"]);
    await atHome((engine) => engine.get(order, "live-1").resolve("go", 1));
    await atHome((engine) => engine.get(order, "live-1").result());
    expect(await pull("live-1")).toEqual(["extended"]);
    const mirror = await openMirror();
    const older: CopiedRun = {
      ...early[0]!,
      async *entries() {
        yield* pagesOfEarly;
      },
      async *rows() {},
    };
    expect(await mirror.put([older])).toMatchObject([{ status: "unchanged" }]);
    expect(await mirror.store.findRun("live-1")).toMatchObject({ status: "completed" });
    await mirror.close();
  });

  test("that contradicts the one in the mirror is refused, and nothing of it is written", async () => {
    await atHome(async (engine) => (await engine.start(order, 3, { id: "order-1" })).result());
    await pull("order-1");
    const before = await contentOf(mirrorPath(), "order-1");
    rmSync(homePath());
    await atHome(async (engine) => {
      await (await engine.start(order, 4, { id: "order-1" })).result();
      await (await engine.start(order, 5, { id: "order-2" })).result();
    });
    const home = await openHome();
    const mirror = await openMirror();
    const both = await copies(home, "order-2", "order-1");
    await expect(mirror.put(both)).rejects.toMatchObject({
      code: "MIRROR_CONFLICT",
      message: expect.stringMatching(/^Run order-1 \(generation 0\) is damaged or forked/),
    });
    expect(await mirror.store.findRun("order-2")).toBeUndefined();
    await mirror.close();
    await home.close();
    expect(await contentOf(mirrorPath(), "order-1")).toEqual(before);
  });

  test("with an entry that is missing, changed or added is refused, and leaves no file", async () => {
    await atHome(async (engine) => (await engine.start(order, 3, { id: "order-1" })).result());
    const home = await openHome();
    const [copy] = await copies(home, "order-1");
    const entries: { data: string; seq: number }[] = [];
    for await (const page of copy!.entries()) entries.push(...page);
    const damages = [
      entries.slice(0, -1),
      entries.slice(1),
      [...entries, { ...entries.at(-1)!, seq: entries.length + 1 }],
      entries.map((entry, index) => (index === 1 ? { ...entry, data: `${entry.data} ` } : entry)),
    ];
    for (const damaged of damages) {
      const mirror = await openMirror();
      const wrong = {
        ...copy!,
        entries: async function* () {
          yield damaged as never;
        },
      };
      await expect(mirror.put([wrong])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
      await mirror.close();
      expect(existsSync(mirrorPath())).toBe(false);
    }
    await home.close();
  });

  test("of an encrypted store is encrypted in the mirror, and is not made without the key", async () => {
    const codec = aesGcm({ keys: { one: "k".repeat(43) + "=" }, current: "one" } as never);
    await using engine = await createEngine({
      store: `sqlite:${homePath()}`,
      definitions: DEFINITIONS,
      codec,
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
    await (await engine.start(order, 3, { id: "order-1" })).result();
    const locked = await openSqliteStore({ path: homePath(), ...PORTS, readOnly: true, locked: true });
    const plain = await openMirror();
    await expect(plain.put(await copies(locked, "order-1"))).rejects.toMatchObject({ code: /^PAYLOAD_/ });
    await plain.close();
    await locked.close();
    const home = await openSqliteStore({ path: homePath(), ...PORTS, readOnly: true, codec: codec as never });
    const mirror = await Mirror.open({ path: mirrorPath(), name: "prod", ...PORTS, codec: codec as never });
    await mirror.put(await copies(home, "order-1"));
    const { run } = (await mirror.store.findRun("order-1"))!;
    expect((await mirror.store.readJournal(run, 0))[0]?.data).toContain('"input":3');
    expect((await mirror.store.info()).codecs.length).toBe(1);
    await mirror.close();
    await home.close();
  });
});

/** A new kind of write has to be added here. */
const WRITES: Record<Write["write"], true> = {
  start: true,
  turn: true,
  "end-item": true,
  "return-item": true,
  "return-turn": true,
  message: true,
  stop: true,
  "claim-turns": true,
  "claim-items": true,
  "fire-due": true,
  complete: true,
  pause: true,
  resume: true,
  reserve: true,
  "answer-budget": true,
  "offer-budget": true,
  terminate: true,
  retry: true,
  fork: true,
  migrate: true,
  "claim-messages": true,
  "message-delivered": true,
  "return-message": true,
  "declare-queue": true,
  "change-queue": true,
  admit: true,
  "put-schedule": true,
  "remove-schedule": true,
  sequence: true,
  release: true,
};

describe("a mirror", () => {
  test("refuses every write of the port", async () => {
    await atHome(async (engine) => (await engine.start(order, 3, { id: "order-1" })).result());
    await pull("order-1");
    const store = await openSqliteStore({ path: mirrorPath(), ...PORTS });
    const refused = { code: "STORE_IS_MIRROR", message: expect.stringContaining("copies of the runs of prod") };
    for (const write of Object.keys(WRITES))
      await expect(store.write([{ write } as Write]), write).rejects.toMatchObject(refused);
    const calls: Record<string, () => Promise<unknown>> = {
      transact: () =>
        store.transact(
          () => undefined,
          () => undefined,
        ),
      registerWorker: () => store.registerWorker("w", 1_000),
      renewLease: () => store.renewLease(1, 1_000),
      releaseWorker: () => store.releaseWorker(1),
      reap: () => store.reap(1),
      prune: () => store.prune(Date.now()),
      deleteRun: () => store.deleteRun("order-1"),
      forget: () => store.forget("order-1"),
      setFederated: () => store.setFederated(true),
      noteEnded: () => store.noteEnded(0, 10),
      expire: () => store.expire({} as never),
      deleteUnusedKeys: () => store.deleteUnusedKeys("order"),
      reserveKey: () => store.reserveKey({ request: "r", body: "b" }, 1_000),
      recordAnswer: () => store.recordAnswer({ request: "r", body: "b" }, 200, "{}"),
      releaseKey: () => store.releaseKey({ request: "r", body: "b" }, true),
      deleteOldAnswers: () => store.deleteOldAnswers(),
      rekey: () => store.rekey(),
    };
    for (const [name, call] of Object.entries(calls))
      await expect((async () => call())(), name).rejects.toMatchObject(refused);
    expect(store.mirrorOf).toBe("prod");
    await store.close();
    await expect(
      createEngine({ store: `sqlite:${mirrorPath()}`, definitions: DEFINITIONS, logger: false as never }),
    ).rejects.toMatchObject(refused);
  });

  test("is not made of a store that has runs of its own", async () => {
    await atHome(async (engine) => (await engine.start(order, 3, { id: "order-1" })).result());
    await expect(Mirror.open({ path: homePath(), name: "prod", ...PORTS })).rejects.toMatchObject({
      code: "BAD_OPTIONS",
      message: expect.stringContaining("is not a mirror"),
    });
  });

  test("has a run completely or not at all when its process is killed", { timeout: 120_000 }, async () => {
    await atHome(async (engine) => (await engine.start(order, 400, { id: "order-1" })).result());
    await atHome(async (engine) => (await engine.start(order, 3, { id: "order-2" })).result());
    await pull("order-2");
    // Before each page, and while the copy becomes visible: the child says where it is and waits to be killed.
    for (const place of ["page 0", "page 1", "staged"]) {
      const child = spawn(
        process.execPath,
        ["--conditions=reprise-source", join(ROOT, "test/stores/mirror-process.ts"), homePath(), mirrorPath(), place],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      await once(child.stdout, "data");
      child.kill("SIGKILL");
      await once(child, "exit");
      const store = await openSqliteStore({ path: mirrorPath(), ...PORTS, readOnly: true });
      expect((await store.listRuns({ limit: 10 })).map(({ id }) => id)).toEqual(["order-2"]);
      expect(await store.check()).toEqual([]);
      await store.close();
    }
    expect(await pull("order-1")).toEqual(["added"]);
  });
});

test("two processes that make one mirror share it, and the one that puts nothing in takes nothing away", async () => {
  await atHome(async (engine) => (await engine.start(order, 2, { id: "order-1" })).result());
  const [one, other] = await Promise.all([openMirror(), openMirror()]);
  const home = await openHome();
  const [copy] = await copies(home, "order-1");
  await one.put([copy!]);
  await home.close();
  await one.close();
  await other.close();
  expect(await contentOf(mirrorPath(), "order-1")).toMatchObject({ listed: ["order-1 0"] });
});
