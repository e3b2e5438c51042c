// An open store whose server is replaced by another one (remote/history.ts).

import { expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { HistoryBreak, Store } from "../../src/kernel/index.ts";
import { storeOf } from "../../src/stores/index.ts";
import { describeOn, freshDatabase, startCluster, type ServerKind } from "../servers/index.ts";

const MACHINE = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "relaxed" } as const;

async function open(url: string): Promise<{ readonly store: Store; readonly breaks: HistoryBreak["kind"][] }> {
  const store = await storeOf(url)["~open"](MACHINE);
  const breaks: HistoryBreak["kind"][] = [];
  store.onHistoryBreak?.(({ kind }) => breaks.push(kind));
  return { store, breaks };
}

async function start(store: Store, id: string): Promise<number> {
  const run = { definition: "order", kind: "workflow", version: 1, priority: 0, tags: [], runtime: "" } as const;
  const [outcome] = await store.write([{ write: "start", run: { ...run, id, started: `{"input":"${id}"}` } }]);
  return outcome.record.run;
}

const ids = async (store: Store): Promise<string[]> =>
  (await store.listRuns({ limit: 100 })).map(({ id }) => id).toSorted();

for (const kind of ["postgres", "mysql"] as const satisfies readonly ServerKind[])
  describeOn(kind, "a store behind a failover", () => {
    test("a promoted standby with all commits is reported as a failover, and nothing is lost", async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      const { store, breaks } = await open(database.url);
      await start(store, "kept");
      await cluster.catchUp();
      await cluster.failOver();
      await start(store, "after");
      expect([breaks, await ids(store)]).toEqual([["failed_over"], ["after", "kept"]]);
      expect(await store.readHistory()).toEqual([]);
      await store.close();
    });

    test("a promoted standby that lacks a commit is reported once as a rollback, and recorded", async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      const [first, second] = [await open(database.url), await open(database.url)];
      await start(first.store, "kept");
      await start(second.store, "kept, too");
      await cluster.catchUp();
      await cluster.pauseReplication();
      const lost = await start(first.store, "lost");
      await cluster.failOver();
      const after = await start(first.store, "after");
      await start(second.store, "after that");
      expect(after).toBeGreaterThan(lost);
      expect([first.breaks, second.breaks]).toEqual([["rolled_back"], expect.any(Array)]);
      expect(await ids(second.store)).toEqual(["after", "after that", "kept", "kept, too"]);
      await expect
        .poll(async () => (await second.store.readHistory()).map(({ kind }) => kind))
        .toEqual(["rolled_back"]);
      await first.store.close();
      await second.store.close();
    });
  });

describeOn("postgres", "an old primary", () => {
  test("a store that has used the new primary does not use the old one", async () => {
    await using cluster = await startCluster("postgres", { replication: "async" });
    await using database = await freshDatabase(cluster);
    const { store, breaks } = await open(database.url);
    await start(store, "kept");
    await cluster.catchUp();
    await cluster.failOver({ primary: "leave" });
    cluster.address.cutAll();
    await start(store, "on the new one");
    cluster.address.pointTo(cluster.former!.url);
    cluster.address.cutAll();
    await expect(start(store, "nowhere")).rejects.toMatchObject({
      code: "STORE_UNREACHABLE",
      message: expect.stringContaining("timeline 1, but this process has used one on timeline 2"),
    });
    cluster.address.pointTo(cluster.primary.url);
    await start(store, "again on the new one");
    expect([breaks[0], await ids(store)]).toEqual(["failed_over", ["again on the new one", "kept", "on the new one"]]);
    await store.close();
  });
});
