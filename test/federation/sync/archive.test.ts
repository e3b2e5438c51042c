// T-17: archived runs come back, erased ones never do. T-20: the same run by every way is the same bytes.

import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { copyOfBundle } from "../../../src/cli/bundle-copy.ts";
import { openHome } from "../../../src/federation/home/home.ts";
import { archiveTo, fetchRun } from "../../../src/federation/sync/archive.ts";
import { eraseKeys, eraseRun } from "../../../src/federation/sync/erase.ts";
import { homeBundle } from "../../../src/federation/sync/home-bundle.ts";
import { checkBundleWithLog } from "../../../src/federation/sync/log-proof.ts";
import { statementFacts } from "../../../src/federation/sync/publish.ts";
import { pullFrom } from "../../../src/federation/sync/pull.ts";
import { bundleText, checkBundle, readRun, writeBundle } from "../../../src/receipts/index.ts";
import { Mirror } from "../../../src/stores/maintenance/index.ts";
import { command } from "../../cli/cli-process.ts";
import { double, everythingIn, folderCarrier, freshFolder, secret, Site, sum } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

test("an archived run is pruned, and pulled back every reading command says the same of it", async () => {
  const edge = new Site("edge", { archives: true });
  await edge.run(sum, { "s-1": [1, 2, 3] });
  await edge.take();
  const store = await edge.store();
  const carrier = await folderCarrier();
  const far = Date.now() + 1_000_000;
  expect(await store.prune(far)).toEqual({ runs: 0 });
  const before = (await command(["show", "s-1", "--json", "--store", `sqlite:${edge.file}`])).stdout;
  const journal = (await command(["journal", "s-1", "--json", "--store", `sqlite:${edge.file}`])).stdout;
  expect(journal).toContain("ChildWorkflowInitiated");

  expect(await archiveTo(store, edge.home, edge.key, carrier, { state: edge.state })).toMatchObject({
    runs: 4,
    isBlind: false,
  });
  expect(await store.prune(far)).toEqual({ runs: 4 });
  expect(await store.findRun("s-1")).toBeUndefined();

  // Another machine has nothing but the vkey and the archive.
  using home = openHome(join(freshFolder(), "home"));
  home.admit(edge.key.vkey);
  await pullFrom(home, carrier);
  expect(home.findRuns({ run: "s-1" })).toHaveLength(1);
  expect(
    home.journal(statementFacts(home.content(home.findRuns({ run: "s-1" })[0]!.statement!)!)!.journal.root),
  ).toBeUndefined();
  const [found] = await fetchRun(home, carrier, edge.origin, "s-1");
  const text = [...homeBundle(home, found!)].map((line) => `${line}\n`).join("");
  const [report] = await Array.fromAsync(checkBundleWithLog(bundleText(text), [edge.key]));
  expect([report!.problem, report!.signature]).toEqual([undefined, { status: "trusted", origin: edge.origin }]);

  const folder = freshFolder();
  const mirror = await Mirror.open({
    path: join(folder, "edge.db"),
    name: "edge",
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    codec: undefined,
  });
  await mirror.put([await copyOfBundle(report!, "the archive")], () => {});
  await mirror.close();
  const url = `sqlite:${join(folder, "edge.db")}`;
  expect((await command(["journal", "s-1", "--json", "--store", url])).stdout).toBe(journal);
  expect(JSON.parse((await command(["show", "s-1", "--json", "--store", url])).stdout)).toMatchObject({
    status: (JSON.parse(before) as { status: string }).status,
  });
});

test("the same run by a directory and by a file is the same bytes", async () => {
  const edge = new Site("edge", { rules: RULES });
  const hub = new Site("hub").admit(edge);
  const carrier = await folderCarrier();
  await edge.run(sum, { "s-1": [1, 2] });
  await edge.sync(carrier, "hub");
  await hub.pull(carrier, { journals: "all" });
  const store = await edge.store();
  for (const { run } of hub.home.findRuns()) {
    const [found] = hub.home.findRuns({ run });
    const lines = [...homeBundle(hub.home, found!)];
    const record = (await store.findRun(run))!;
    const options = { form: "full" as const, key: edge.key, engine: "reprise/0.2.0" };
    const bundled = await Array.fromAsync(writeBundle(await readRun(store, record), options));
    const payload = (line: string): unknown => (JSON.parse(line) as { payload: unknown }).payload;
    // Only the home signs an envelope; the log vouches for the other.
    expect(payload(lines[1]!)).toBe(payload(bundled[1]!));
    expect(lines.filter((_, at) => at !== 1).slice(0, bundled.length - 1)).toEqual(bundled.filter((_, at) => at !== 1));
    expect(lines.slice(bundled.length).every((line) => line.startsWith('{"checkpoint":'))).toBe(true);
    const reports = await Array.fromAsync(
      checkBundle(bundleText(lines.map((line) => `${line}\n`).join("")), [edge.key]),
    );
    expect(reports[0]!.problem).toBeUndefined();
  }
});

test("every line of a log proof that is changed is found", async () => {
  const edge = new Site("edge", { rules: RULES });
  await edge.run(double, { "d-1": 1, "d-2": 2 });
  await edge.take();
  const lines = [...homeBundle(edge.home, edge.home.findRuns({ run: "d-1" })[0]!)];
  const verdict = async (changed: readonly string[]): Promise<string> => {
    const text = changed.map((line) => `${line}\n`).join("");
    const [report] = await Array.fromAsync(checkBundleWithLog(bundleText(text), [edge.key]));
    return report!.problem?.kind ?? report!.signature.status;
  };
  expect(await verdict(lines)).toBe("trusted");
  const [first, second] = lines.slice(-2) as [string, string];
  const rest = lines.slice(0, -2);
  expect(await verdict(rest)).toBe("unsigned");
  expect(await verdict([...rest, second, first])).toBe("damaged");
  expect(await verdict([...rest, first, first])).toBe("damaged");
  for (const field of ["checkpoint", "record"] as const) {
    const value = JSON.parse(first) as Record<"checkpoint" | "record", string>;
    for (const [at, char] of [...value[field]].entries()) {
      const other = char === "1" ? "2" : "1";
      const text = value[field].slice(0, at) + other + value[field].slice(at + 1);
      if (text === value[field]) continue;
      const line = JSON.stringify({ ...value, [field]: text });
      expect(await verdict([...rest, line, second]), `${field} ${at}`).not.toBe("trusted");
    }
  }
});

test("an erased run is gone at home, at peers and on carriers, and is refused when it is offered again", async () => {
  const edge = new Site("edge", { rules: RULES });
  const carrier = await folderCarrier();
  const [away, hub] = [new Site("away").admit(edge), new Site("hub").admit(edge)];
  await edge.run(secret, { "s-1": "pin 4711471147", "s-2": "pin 2222222222" });
  await edge.sync(carrier, "hub");
  for (const site of [away, hub]) await site.pull(carrier, { journals: "all" });
  const store = await edge.store();
  const [found] = edge.home.findRuns({ run: "s-1" });
  const facts = statementFacts(edge.home.content(found!.statement!)!)!;
  const journal = hub.home.journal(facts.journal.root)!;
  expect(Buffer.from(journal).toString()).toContain("pin 4711471147");

  expect(await eraseRun(store, edge.home, edge.key, "s-1")).toEqual({ cells: [`a:${facts.journal.root}`], deleted: 1 });
  expect(await eraseRun(store, edge.home, edge.key, "s-1")).toEqual({ cells: [], deleted: 0 });
  await edge.sync(carrier, "hub");
  await hub.pull(carrier);
  // The peer was away when it was erased, and syncs later.
  await away.pull(carrier);

  expect(everythingIn(carrier.folder)).not.toContain("pin 4711471147");
  expect(everythingIn(carrier.folder)).toContain("pin 2222222222");
  for (const { home } of [edge, hub, away]) {
    expect(home.journal(facts.journal.root)).toBeUndefined();
    expect(home.contentState(facts.journal.root)).toBe("erased");
    expect(home.content(found!.statement!)).toBeDefined();
    expect(() => [...homeBundle(home, found!)]).toThrow("erased");
    // Offered again: refused.
    expect(home.putJournal(facts.journal.root, journal)).toMatchObject({ stored: 0, erased: 1 });
    expect(home.journal(facts.journal.root)).toBeUndefined();
    expect(home.conflicts()).toEqual([]);
  }
  expect(hub.home.stateHash()).toBe(edge.home.stateHash());
  expect(away.home.stateHash()).toBe(edge.home.stateHash());

  // Receipts go when they are named; lines of packs with them.
  const [other] = edge.home.findRuns({ run: "s-2" });
  const line = '\\"run\\":\\"s-2\\"';
  expect(everythingIn(carrier.folder)).toContain(line);
  await eraseKeys(store, edge.home, edge.key, [other!.statement!, other!.record]);
  await edge.sync(carrier, "hub");
  expect(everythingIn(carrier.folder)).not.toContain(line);
  await hub.pull(carrier);
  expect(hub.home.content(other!.statement!)).toBeUndefined();
});

test("a run that is too large for the home stays in the store, and the runs beside it are archived", async () => {
  const edge = new Site("edge", { archives: true, limits: { journalBytes: 2_000 } });
  await edge.run(secret, { "v-1": "small", "v-2": "large ".repeat(1_000), "v-3": "small too" });
  await edge.take();
  const store = await edge.store();
  const carrier = await folderCarrier();
  const archived = await archiveTo(store, edge.home, edge.key, carrier, { state: edge.state });
  expect(archived).toMatchObject({ runs: 2 });
  expect(await store.prune(Date.now() + 1_000_000)).toEqual({ runs: 2 });
  expect(await store.findRun("v-2")).toBeDefined();
  expect(edge.home.findRuns().map(({ run }) => run)).toEqual(["v-1", "v-3"]);
});
