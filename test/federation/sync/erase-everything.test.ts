// Erasing a run takes every value of it away: results of pure steps, and what an earlier epoch of the log published.

import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { systemClock, systemTimers } from "../../../src/base/index.ts";
import { eraseRun } from "../../../src/federation/sync/erase.ts";
import { statementFacts } from "../../../src/federation/sync/publish.ts";
import { Sequencer } from "../../../src/federation/sync/sequencer.ts";
import { everythingIn, filesIn, folderCarrier, secret, Site } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

const pure = workflow("vault.pure", async (ctx, pin: string) =>
  ctx.run("open", { pin }, () => `opened ${pin}`, { pure: "1" }),
);

test("the results of the pure steps of an erased run go from the store, the carrier and the peers", async () => {
  const edge = new Site("edge", { rules: RULES, definitions: [pure] });
  await edge.run(pure, { "p-1": "PIN-1234", "p-2": "PIN-5678" });
  await edge.take();
  const carrier = await folderCarrier();
  await edge.push(carrier, "hub");
  const hub = new Site("hub").admit(edge);
  await hub.pull(carrier, { journals: "all" });
  expect(hub.home.scan().filter(({ type }) => type.includes("memo-answer"))).toHaveLength(2);

  await eraseRun(await edge.store(), edge.home, edge.key, "p-1");
  await edge.take();
  await edge.push(carrier, "hub");
  await hub.pull(carrier, { journals: "all" });
  expect(everythingIn(carrier.folder)).not.toContain("PIN-1234");
  expect(everythingIn(carrier.folder)).toContain("PIN-5678");
  expect((await (await edge.store()).listMemos({ limit: 10 })).groups).toHaveLength(1);
  for (const { home } of [edge, hub])
    expect(home.scan().filter(({ type }) => type.includes("memo-answer"))).toHaveLength(1);
  expect(hub.home.stateHash()).toBe(edge.home.stateHash());
});

test("a run that an earlier epoch of the log published is erased here and at peers", async () => {
  const edge = new Site("edge", { rules: RULES });
  await edge.run(secret, { "v-1": "PIN-1234" });
  await edge.take();
  const carrier = await folderCarrier();
  await edge.push(carrier, "hub");
  const hub = new Site("hub").admit(edge);
  await hub.pull(carrier, { journals: "all" });
  const { journal } = statementFacts(hub.home.content(hub.home.findRuns({ run: "v-1" })[0]!.statement!)!)!;
  expect(hub.home.journal(journal.root)).toBeDefined();

  // The log is written a second time: another store of the site, with the home and the key of the first.
  const other = new Site("edge", { rules: RULES });
  await other.run(secret, { "v-9": "PIN-9999" });
  const store = await other.store();
  await new Sequencer({ store, key: other.key, timers: systemTimers, clock: systemClock }).run();
  expect(await other.meet(carrier)).toMatchObject({ status: "opened", origin: `${edge.origin}/2` });
  await other.sync(carrier, "hub");
  await hub.pull(carrier, { journals: "all", fill: true });

  expect((await eraseRun(store, other.home, other.key, "v-1")).cells).toContain(`a:${journal.root}`);
  await other.sync(carrier, "hub");
  await hub.pull(carrier, { journals: "all", fill: true });
  for (const { home } of [other, hub]) {
    expect(home.journal(journal.root)).toBeUndefined();
    expect(home.conflicts({ kind: "erase", state: "open" })).toEqual([]);
  }
  expect(everythingIn(carrier.folder)).not.toContain("PIN-1234");
});

test("the journals of every end of a run that was retried are erased", async () => {
  let isBroken = true;
  const flaky = workflow("vault.flaky", async (ctx, pin: string) =>
    ctx.run("open", { pin }, () => {
      if (isBroken) throw new Error("stuck");
      return `opened ${pin}`;
    }),
  );
  const edge = new Site("edge", { rules: RULES, definitions: [flaky] });
  await edge.run(flaky, { "v-1": "PIN-1234" });
  await edge.take();
  isBroken = false;
  await using engine = await createEngine({ store: `sqlite:${edge.file}`, definitions: [flaky], logger: false });
  const run = engine.get(flaky, "v-1");
  await run.retry();
  expect(await run.result()).toBe("opened PIN-1234");
  await edge.take();
  const carrier = await folderCarrier();
  await edge.push(carrier, "hub");
  const hub = new Site("hub").admit(edge);
  await hub.pull(carrier, { journals: "all" });
  expect([...filesIn(carrier.folder).keys()].filter((path) => path.includes("/journal/"))).toHaveLength(2);

  expect((await eraseRun(await edge.store(), edge.home, edge.key, "v-1")).cells).toHaveLength(2);
  await edge.take();
  await edge.push(carrier, "hub");
  await hub.pull(carrier, { journals: "all" });
  expect(everythingIn(carrier.folder)).not.toContain("PIN-1234");
  expect(hub.home.stateHash()).toBe(edge.home.stateHash());
});
