// cancel, terminate, pause, resume, retry: one run, several, all that a filter finds.

import { expect, test } from "vitest";
import { jsonLines } from "./cli-process.ts";
import { charge, incomplete, pay, refuse, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([pay, charge, review, incomplete]).start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "review-1", what: review, tags: ["eu"], until: "waiting" },
    { id: "review-2", what: review, tags: ["us"], until: "waiting" },
    { id: "incomplete-1", what: incomplete, until: "blocked" },
  );

test("cancel asks a run to stop, with the reason in its journal", async () => {
  using store = await shop();
  const { code, stdout } = await store.cli("cancel", "review-1", "--reason", "wrong customer");
  expect([code, stdout]).toEqual([0, "asked to stop review-1 review\n"]);
  expect(await store.finish("review-1")).toMatchObject({ status: "cancelled" });
  expect((await store.cli("show", "review-1")).stdout).toContain("wrong customer");
});

test("a message that no worker has taken in yet is shown, with what takes it in", async () => {
  using store = await shop();
  await store.cli("cancel", "review-1");
  const { stdout } = await store.cli("show", "review-1");
  expect(stdout).toContain("waits for\n  a worker that has the definition review, to take in 1 message\n");
  const [shown] = jsonLines((await store.cli("show", "review-1", "--json")).stdout);
  expect(shown).toMatchObject({ status: "waiting", unread: 1 });
  expect((await store.cli("show", "review-2")).stdout).not.toContain("a worker");
});

test("a run that has ended is passed over, and said so", async () => {
  using store = await shop();
  const { code, stdout, stderr } = await store.cli("cancel", "pay-1", "review-1");
  expect([code, stdout]).toEqual([0, "asked to stop review-1 review\n"]);
  expect(stderr).toContain("passed over pay-1: it has ended (completed)");
  const [json] = jsonLines((await store.cli("resume", "pay-1", "--json")).stdout);
  expect(json).toEqual({
    action: "resume",
    dryRun: false,
    count: 0,
    ids: [],
    passedOver: [{ id: "pay-1", reason: "it has ended (completed)" }],
  });
});

test("a filter needs a yes where nobody can be asked; a dry run only says which", async () => {
  using store = await shop();
  const refused = await store.cli("cancel", "--definition", "review");
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("error USAGE: Cancel 2 runs? Nobody can be asked here: say --yes");
  const [dry] = jsonLines((await store.cli("cancel", "--definition", "review", "--dry-run", "--json")).stdout);
  expect(dry).toMatchObject({ dryRun: true, count: 2, ids: ["review-1", "review-2"] });
  expect(await store.statusOf("review-1")).toBe("waiting");
  const [done] = jsonLines((await store.cli("cancel", "--tag", "eu", "--yes", "--json")).stdout);
  expect(done).toEqual({ action: "cancel", dryRun: false, count: 1, ids: ["review-1"], passedOver: [] });
  expect(await store.finish("review-1")).toMatchObject({ status: "cancelled" });
  expect(await store.statusOf("review-2")).toBe("waiting");
});

test("--all takes every run it can have an effect on, and no other", async () => {
  using store = await shop();
  const [done] = jsonLines((await store.cli("resume", "--all", "--yes", "--json")).stdout);
  expect(done).toMatchObject({ count: 1, ids: ["incomplete-1"], passedOver: [] });
  expect(await store.statusOf("incomplete-1")).toBe("queued");
});

test("what names nothing, or names it twice, is refused before the store is opened", async () => {
  using store = await shop();
  for (const [args, says] of [
    [[], /name at least one run/],
    [["review-1", "--all"], /by their ids or by a filter/],
    [["--all", "--tag", "eu"], /leave out either/],
    [["--status", "sad"], /--status: expected one of/],
    [["nope"], /There is no run nope/],
  ] as const) {
    const { code, stdout, stderr } = await store.cli("cancel", ...args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(says);
  }
});

test("a paused run does not go on before it is resumed; a terminated one never", async () => {
  using store = await shop();
  const pause = await store.cli("pause", "review-1");
  expect([pause.code, pause.stdout]).toEqual([0, "paused review-1 review\n"]);
  expect(await store.statusOf("review-1")).toBe("paused");
  expect((await store.cli("show", "review-1")).stdout).toContain("somebody who resumes it");
  const again = await store.cli("pause", "review-1", "--json");
  expect(jsonLines(again.stdout)).toMatchObject([{ action: "pause", count: 0, passedOver: [{ id: "review-1" }] }]);
  expect((await store.cli("resume", "--status", "paused", "--yes")).stdout).toBe("resumed review-1 review\n");
  expect(await store.statusOf("review-1")).toBe("queued");
  const [ended] = jsonLines(
    (await store.cli("terminate", "--tag", "eu", "--reason", "gone", "--yes", "--json")).stdout,
  );
  expect(ended).toEqual({ action: "terminate", dryRun: false, count: 1, ids: ["review-1"], passedOver: [] });
  expect(await store.statusOf("review-1")).toBe("cancelled");
  expect((await store.cli("show", "review-1")).stdout).toContain("gone");
});

test("a failed run is retried from where it failed; others are passed over", async () => {
  using store = await new StoreWithRuns([refuse, review]).start(
    { id: "refuse-1", what: refuse, until: "failed" },
    { id: "review-1", what: review, until: "waiting" },
  );
  const { code, stdout, stderr } = await store.cli("retry", "refuse-1", "review-1");
  expect([code, stdout]).toEqual([0, "retried refuse-1 refuse\n"]);
  expect(stderr).toContain("passed over review-1: it is waiting; this is for runs that are failed");
  expect(await store.statusOf("refuse-1")).toBe("queued");
  expect(await store.finish("refuse-1")).toMatchObject({ status: "failed" });
  const [again] = jsonLines((await store.cli("retry", "--definition", "refuse", "--yes", "--json")).stdout);
  expect(again).toEqual({ action: "retry", dryRun: false, count: 1, ids: ["refuse-1"], passedOver: [] });
});
