// doctor: pending and stopped work in a healthy store.

import { expect, test } from "vitest";
import { createClient, createEngine, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { cli, jsonLines, TemporaryFolder } from "./cli-process.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

test("doctor reports runs that no worker can claim, stopped runs by reason, and messages by destination", async () => {
  using folder = new TemporaryFolder();
  const url = `sqlite:${folder.file("shop.db")}`;
  const notifies = workflow("notifies", async (ctx) => {
    ctx.send("mail", "hello");
    ctx.send("chat", "hello");
  });
  const endless = workflow("endless", async () => new Promise(() => {}));
  const later = workflow("later", { version: 2 }, async () => 1);
  {
    let failures = 0;
    const mail = (): void => {
      failures += 1;
      throw new Error("no answer");
    };
    await using engine = await createTestEngine({ store: url, definitions: [notifies, endless], outbox: { mail } });
    await (await engine.start(notifies)).result();
    for (const id of ["a", "b"]) await (await engine.start(endless, undefined, { id })).result().catch(() => {});
    while (failures < 3) await engine.clock.advance("1 s");
  }
  await using client = await createClient({ store: url, definitions: [later] });
  for (const id of ["later-1", "later-2"]) await client.start(later, undefined, { id });

  const { code, stdout } = await cli(["doctor", "--store", url]);
  expect([code, stdout]).toEqual([0, expect.stringContaining("healthy")]);
  expect(stdout).toMatch(
    /^pending +No worker is live; 2 runs of later v2 need one with later version 2 \(oldest .*\)\n +next: reprise worker <file> --store sqlite:\S+$/m,
  );
  expect(stdout).toMatch(/^stopped +2 blocked, STALLED: b, a$/m);
  expect(stdout).toMatch(
    /^outbox +1 message to chat, oldest .*\n +1 message to mail, .*; 1 failing, up to 3 attempts$/m,
  );
  const [report] = jsonLines((await cli(["doctor", "--json", "--store", url])).stdout);
  expect(report).toMatchObject({
    healthy: true,
    dueRuns: [{ definition: "later", version: 2, due: 2, live: 2 }],
    stopped: [{ status: "blocked", code: "STALLED", runs: 2, ids: ["b", "a"], next: expect.any(String) }],
    store: {
      outbox: {
        pending: 2,
        failing: 1,
        destinations: [
          { destination: "chat", pending: 1, attempts: 0 },
          { destination: "mail", pending: 1, attempts: 3 },
        ],
      },
    },
  });

  await using _worker = await createEngine({ store: url, definitions: [notifies], logger: SILENT });
  const beside = await cli(["doctor", "--store", url]);
  expect(beside.stdout).toMatch(
    /No live worker can claim 2 runs of later v2, which need later version 2: \S+ \(\w+\) does not\s+have it/,
  );
});
