// A real node of a Galera cluster.

import { expect, test } from "vitest";
import { findGalera } from "../../../scripts/servers.mjs";
import { systemRandom, systemTimers } from "../../../src/base/index.ts";
import { openMysqlBackend } from "../../../src/stores/mysql/backend.ts";
import { freePort } from "../../servers/supervised-process.ts";
import { describeOn, fastFolder, startServer } from "../../servers/index.ts";

describeOn("galera", "Galera", () => {
  test("a node is refused with a reason, and nothing is written to it", { timeout: 240_000 }, async () => {
    const port = await freePort();
    await using node = await startServer("mysql", {
      under: fastFolder(),
      settings: {
        "wsrep-on": "ON",
        "wsrep-provider": findGalera()!,
        "wsrep-cluster-address": "gcomm://",
        "wsrep-node-address": "127.0.0.1",
        "wsrep-provider-options": `base_port=${port};gmcast.listen_addr=tcp://127.0.0.1:${port}`,
        "wsrep-sst-method": "skip",
        "binlog-format": "ROW",
      },
    });
    await node.run("create database shop");
    const url = node.urlOf("shop");
    const backend = openMysqlBackend({ url, random: systemRandom, timers: systemTimers, durability: "full" });
    const error = await backend.connect().catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: "STORE_LOCATION" });
    expect((error as Error).message).toContain("wsrep_on = ON");
    await expect(node.run("select * from shop.reprise_meta")).rejects.toThrow("doesn't exist");
  });
});
