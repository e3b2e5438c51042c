import { expect, test } from "vitest";
import { runQuery } from "./run-query.ts";
import { describeOn, freshDatabase, startCluster } from "./index.ts";

const TIMEOUT = 240_000;

for (const kind of ["postgres", "mysql"] as const) {
  describeOn(kind, `a cluster of ${kind}`, () => {
    test("a failover loses what the standby had not received", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      await database.run("create table notes (body text)", "insert into notes values ('early')");
      await cluster.catchUp();
      expect(await runQuery(cluster.standby!.urlOf(database.name), "select body from notes")).toEqual(["early"]);
      await cluster.pauseReplication();
      await database.run("insert into notes values ('late')");
      const { diedAt, promotedAt } = await cluster.failOver();
      expect(promotedAt).toBeGreaterThan(diedAt);
      await database.run("insert into notes values ('after')");
      expect(await runQuery(database.url, "select body from notes order by body")).toEqual(["after", "early"]);
    });

    test("a synchronous failover loses nothing, and the next one has a standby", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "sync" });
      await using database = await freshDatabase(cluster);
      const { url, hostsUrl } = cluster;
      await database.run("create table notes (body text)");
      for (const body of ["a", "b", "c"]) {
        await database.run(`insert into notes values ('${body}')`);
        await cluster.failOver();
        await cluster.addStandby();
      }
      expect(await runQuery(database.url, "select body from notes order by body")).toEqual(["a", "b", "c"]);
      expect([cluster.url, cluster.hostsUrl]).toEqual([url, hostsUrl]);
    });

    test("a planned switchover loses nothing, synchronous or not", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      await database.run("create table notes (body text)", "insert into notes values ('kept')");
      await cluster.failOver({ primary: "stop" });
      expect(await runQuery(database.url, "select body from notes")).toEqual(["kept"]);
    });

    test("a primary that is left running accepts writes beside the new one", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      await database.run("create table notes (body text)");
      await cluster.catchUp();
      await cluster.failOver({ primary: "leave" });
      await database.run("insert into notes values ('new')");
      const former = cluster.former!.urlOf(database.name);
      expect(await runQuery(former, "select body from notes")).toEqual([]);
      await cluster.addStandby();
      await cluster.catchUp();
      expect(await runQuery(cluster.standby!.urlOf(database.name), "select body from notes")).toEqual(["new"]);
    });

    test("replication that was paused catches up when it is resumed", { timeout: TIMEOUT }, async () => {
      await using cluster = await startCluster(kind, { replication: "async" });
      await using database = await freshDatabase(cluster);
      await cluster.pauseReplication();
      await database.run("create table notes (body text)", "insert into notes values ('late')");
      await cluster.resumeReplication();
      await cluster.catchUp();
      expect(await runQuery(cluster.standby!.urlOf(database.name), "select body from notes")).toEqual(["late"]);
    });
  });
}
