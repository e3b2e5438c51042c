// Promises on the command line: promises, resolve, reject, show, journal and doctor.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { release } from "./approvals.ts";
import { jsonLines } from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const waiting = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([release]).start(
    { id: "release-1", what: release, until: "waiting" },
    { id: "release-2", what: release, until: "waiting" },
  );

test("show names each promise with its key and the command that resolves it", async () => {
  using store = await waiting();
  const { stdout } = await store.cli("show", "release-1");
  expect(stdout).toContain("promise approve with key ann, showing { build: 7 }");
  expect(stdout).toContain("next: reprise resolve release-1 approve '<value as JSON>' --key ann");
  expect(stdout).toContain("next: reprise resolve release-1 approve '<value as JSON>' --key 'bob jr'");
});

test("resolve and reject settle the promise with the key, and the timeline says by whom and why", async () => {
  using store = await waiting();
  const first = await store.cli(
    ...["resolve", "release-1", "approve", '{"ok":true}', "--key", "ann", "--by", "Ann", "--reason", "all green"],
  );
  expect([first.code, first.stdout]).toEqual([0, "resolved approve[ann] of release-1\n"]);
  const second = await store.cli(
    ...["reject", "release-1", "approve", "flaky", "--key", "bob jr", "--by", "Bob", "--json"],
  );
  expect(jsonLines(second.stdout)).toEqual([
    { action: "reject", id: "release-1", name: "approve", key: "bob jr", checked: false },
  ]);
  expect(await store.finish("release-1")).toMatchObject({ status: "failed" });
  const { stdout } = await store.cli("show", "release-1");
  expect(stdout).toMatch(/approve\[ann\] .*resolved after .* by Ann \(all green\) → \{ ok: true \}/);
  expect(stdout).toMatch(/approve\[bob jr\] .*rejected after .* by Bob: Error: flaky/);
  const [shown] = jsonLines((await store.cli("show", "release-1", "--json")).stdout);
  expect((shown as { steps: unknown }).steps).toContainEqual(
    expect.objectContaining({ name: "approve[ann]", key: "ann", by: "Ann", reason: "all green" }),
  );
  const entries = jsonLines((await store.cli("journal", "release-1", "--json")).stdout);
  expect(entries.map((entry) => (entry as { data: object }).data)).toContainEqual({
    promiseId: "approve[ann]",
    key: "ann",
    by: "Ann",
    reason: "all green",
    value: { ok: true },
  });
});

test("the same value again exits with 0; another one is refused with what was recorded", async () => {
  using store = await waiting();
  const resolve = (value: string) => store.cli("resolve", "release-1", "approve", value, "--key", "ann", "--by", "Ann");
  expect((await resolve('{"ok":true}')).code).toBe(0);
  expect((await resolve('{"ok":true}')).code).toBe(0);
  const refused = await resolve('{"ok":false}');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /^error PROMISE_ALREADY_RESOLVED: Promise approve\[ann\] of run release-1 is already resolved to \{ ok: true \} by Ann;/,
  );
});

test("without the code, a key that the run does not wait for is refused, and the waits are named", async () => {
  using store = await waiting();
  for (const key of [["--key", "anna"], []]) {
    const { code, stderr } = await store.cli("resolve", "release-1", "approve", "1", ...key);
    expect(code).toBe(2);
    expect(stderr).toContain("is not waiting for a promise named `approve`");
    expect(stderr).toContain("It has waited for: approve --key ann, approve --key bob jr.");
  }
});

test("promises lists what runs wait for, with the commands that resolve it", async () => {
  using store = await waiting();
  const { code, stdout } = await store.cli("promises", "--limit", "2");
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^approve\[ann\] of release-1 \(release\): waiting for .*\n {2}showing \{ build: 7 \}\n {2}next: reprise resolve release-1 approve '<value as JSON>' --key ann/,
  );
  expect(stdout).toMatch(/approve\[bob jr\] of release-1 \(release\): waiting for .*, times out in /);
  const [first] = jsonLines((await store.cli("promises", "--json", "--name", "approve", "--limit", "1")).stdout);
  expect(first).toMatchObject({
    runId: "release-1",
    definition: "release",
    name: "approve",
    key: "ann",
    show: { build: 7 },
    deadline: null,
  });
  const all = jsonLines((await store.cli("promises", "--json", "--definition", "release")).stdout);
  expect(all).toHaveLength(4);
  const none = await store.cli("promises", "--name", "sign");
  expect([none.code, none.stdout]).toEqual([0, ""]);
  expect(none.stderr).toContain("No run waits for a matching promise.");
});

test("doctor reports an open promise that is not listed, and a listed one that is not open", async () => {
  using store = await waiting();
  expect((await store.cli("doctor")).code).toBe(0);
  const db = new DatabaseSync(store.folder.file("shop.db"));
  db.exec("delete from run_promises where command = 'Promise(0)'");
  db.exec("update run_promises set command = 'Promise(7)' where command = 'Promise(1)'");
  db.close();
  const { code, stdout } = await store.cli("doctor");
  expect(code).not.toBe(0);
  expect(stdout).toContain(
    "The run waits for promise approve[ann] (Promise(0)), which `reprise promises` does not show.",
  );
  expect(stdout).toContain("Promise(7) is listed as an open promise, but the run does not wait for it.");
});
