// A real HAProxy in front of a primary with its standby.

import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { describeOn, freshDatabase, startCluster, startHaProxy } from "../../servers/index.ts";

const TIMEOUT = 240_000;

describeOn("haproxy", "HAProxy", () => {
  test("runs continue at the primary that its checks find, and nothing is lost", { timeout: TIMEOUT }, async () => {
    await using cluster = await startCluster("postgres", { replication: "sync" });
    await using database = await freshDatabase(cluster);
    await using proxy = await startHaProxy(cluster.primary.url, cluster.standby!.url);
    const order = workflow("order", { ports: {} }, async (ctx, card: string) => {
      const charged = await ctx.run("charge", () => `charged ${card}`);
      await ctx.sleep(20);
      return [charged, await ctx.run("ship", () => `shipped to ${card}`)];
    });
    await using engine = await createEngine({ store: proxy.urlOf(database.name), definitions: [order] });
    const cards = Array.from({ length: 60 }, (_, at) => `card-${at}`);
    const start = async (card: string): Promise<unknown> => {
      for (;;)
        try {
          return await (await engine.start(order, card, { id: card })).result();
        } catch (error) {
          // While no server accepts writes, a call throws after ten seconds; it may be repeated.
          if (!String((error as { code?: string }).code).startsWith("STORE_")) throw error;
        }
    };
    const before = Promise.all(cards.slice(0, 30).map(start));
    const failedOver = cluster.failOver();
    const after = failedOver.then(() => Promise.all(cards.slice(30).map(start)));
    const results = (await Promise.all([before, after])).flat();
    expect(results).toEqual(cards.map((card) => [`charged ${card}`, `shipped to ${card}`]));
  });
});
