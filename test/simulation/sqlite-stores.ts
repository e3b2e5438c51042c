// SQLite stores in the simulation: one in-memory database that all processes share. With rollbacks it is
// a file, and each process has its own store, as in production: processes share no memory.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sqlite } from "reprise/sqlite";

import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { Store } from "../../src/kernel/index.ts";
import { fastFolder } from "../servers/server.ts";
import { failed, isIdle, processStore, type Passage, type Witness } from "./process-store.ts";
import type { ProcessInstance, OpenedStore } from "./process.ts";
import { SqliteHistory } from "./sqlite-history.ts";
import { crashPoint, latency, type SimStores, type StoresHost } from "./stores.ts";

/** Methods, besides `write`, whose changes other processes detect. */
const NOTICED_METHODS: ReadonlySet<string> = new Set(["transact", "registerWorker", "renewLease", "releaseWorker"]);
const BACK_UP_EVERY_MS = 400;

export async function openSqliteStores(host: StoresHost): Promise<SimStores> {
  const { loop, random } = host;
  const file = host.faults.intensity.has("rollback") ? new SharedFile() : undefined;
  const openRaw = ({
    timers,
    random: its,
  }: Pick<StoresHost, "random"> & Pick<ProcessInstance["loop"], "timers">): Promise<Store> =>
    openSqliteStore({
      path: file?.path ?? ":memory:",
      durability: "relaxed",
      // All processes are on one machine.
      clock: loop.clock,
      // The store never waits: it is never busy.
      timers,
      random: its,
    });
  const raw = await openRaw({ timers: loop.timers, random });
  file?.begin();
  let changes = 0;
  const counting: Witness = {
    get epoch() {
      return host.witness.epoch;
    },
    began: (loop) => host.witness.began(loop),
    noticed: (loop) => host.witness.noticed(loop),
    wrote(process, write, outcome) {
      if (isIdle(write, outcome)) return;
      changes += 1;
      host.witness.wrote(process, write, outcome);
    },
  };
  const opened: Store[] = [];
  if (file !== undefined) void backUpNowAndThen(host, file);
  const stores: SimStores = {
    kind: "sqlite",
    calm: raw,
    database: sqlite,
    async open(instance: ProcessInstance): Promise<OpenedStore> {
      let seen = changes;
      const passage: Passage = {
        async before(method, isWrite) {
          await latency(host, instance);
          if (isWrite) await crashPoint(host, instance, `before ${method}`);
          if (host.faults.happens("cut", 0.01)) throw failed(instance, method);
        },
        async after(method, isWrite) {
          if (NOTICED_METHODS.has(method)) changes += 1;
          if (isWrite) await crashPoint(host, instance, `after ${method}`);
          await latency(host, instance);
          if (isWrite && host.faults.happens("unknown", 0.02)) throw failed(instance, `after ${method}`);
        },
        pollChanges() {
          const changed = seen !== changes;
          seen = changes;
          return changed;
        },
        close: () => Promise.resolve(),
      };
      const own = file === undefined ? raw : await openRaw({ timers: instance.loop.timers, random: instance.random });
      if (own !== raw) opened.push(own);
      const wrapped = host.wrap?.(own, instance) ?? own;
      return { store: processStore(wrapped, instance, passage, counting), kill: () => {} };
    },
    rollBack(draws, leastMs) {
      const backups = file?.history?.before(loop.clock.monotonic() - leastMs) ?? [];
      if (backups.length === 0) return undefined;
      const backup = draws.pick(backups);
      file!.history!.restore(backup);
      changes += 1;
      return `restore of a backup made at ${Math.round(backup.atMs)}`;
    },
    async reopen() {
      stores.calm = await openRaw({ timers: loop.timers, random });
      opened.push(stores.calm);
    },
    async close() {
      for (const store of [raw, ...opened]) await store.close();
    },
    discard: () => file?.[Symbol.dispose](),
  };
  return stores;
}

class SharedFile implements Disposable {
  readonly #folder = mkdtempSync(join(fastFolder(), "reprise-sim-"));
  readonly path = join(this.#folder, "store.db");
  history: SqliteHistory | undefined;

  /** The store is open. */
  begin(): void {
    this.history = new SqliteHistory(this.path, this.#folder);
  }

  [Symbol.dispose](): void {
    this.history?.close();
    this.history = undefined;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function backUpNowAndThen({ loop, faults }: StoresHost, file: SharedFile): Promise<void> {
  while (!faults.isQuiet) {
    file.history?.backUp(loop.clock.monotonic());
    await loop.sleep(BACK_UP_EVERY_MS);
  }
}
