// cancel, terminate, pause, resume and retry: one run, several runs, or all that a filter selects.

import { expect, test } from "vitest";
import { jsonLines } from "./cli-process.ts";
import { booking, charge, incomplete, pay, refuse, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([pay, charge, review, incomplete]).start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "review-1", what: review, tags: ["eu"], until: "waiting" },
    { id: "review-2", what: review, tags: ["us"], until: "waiting" },
    { id: "incomplete-1", what: incomplete, until: "blocked" },
  );

test("cancel requests cancellation and records the reason in the journal", async () => {
  using store = await shop();
  const { code, stdout } = await store.cli("cancel", "review-1", "--reason", "wrong customer");
  expect([code, stdout]).toEqual([0, "requested cancellation of review-1 review\n"]);
  expect(await store.finish("review-1")).toMatchObject({ status: "cancelled" });
  expect((await store.cli("show", "review-1")).stdout).toContain("wrong customer");
});

test("show reports a message that no worker has processed yet", async () => {
  using store = await shop();
  await store.cli("cancel", "review-1");
  const { stdout } = await store.cli("show", "review-1");
  expect(stdout).toContain(
    "now\n  No worker is live; the run with 1 unread message needs one with review version 1.\n",
  );
  const [shown] = jsonLines((await store.cli("show", "review-1", "--json")).stdout);
  expect(shown).toMatchObject({ status: "waiting", unread: 1 });
  expect((await store.cli("show", "review-2")).stdout).not.toContain("worker");
});

test("a run that has ended is skipped and reported", async () => {
  using store = await shop();
  const { code, stdout, stderr } = await store.cli("cancel", "pay-1", "review-1");
  expect([code, stdout]).toEqual([1, "requested cancellation of review-1 review\n"]);
  expect(stderr).toContain("skipped pay-1: already completed");
  const resumed = await store.cli("resume", "pay-1", "--json");
  expect(jsonLines(resumed.stdout)[0]).toEqual({
    action: "resume",
    dryRun: false,
    count: 0,
    ids: [],
    skipped: [{ id: "pay-1", status: "completed", reason: "already completed" }],
  });
  expect(resumed.code).toBe(1);
});

test("the exit code is 1 if a named run was skipped, and 0 if a filter selects no run", async () => {
  using store = await new StoreWithRuns([booking, review]).start(
    { id: "booking-1", what: booking, until: "failed" },
    { id: "review-1", what: review, until: "waiting" },
  );
  const refused = await store.cli("retry", "booking-1");
  expect([refused.code, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toMatch(/^skipped booking-1: .*its steps were undone; start a new run/);
  expect((await store.cli("retry", "booking-1", "review-1")).code).toBe(1);
  expect((await store.cli("retry", "review-1", "--dry-run")).code).toBe(1);
  expect((await store.cli("pause", "review-1", "booking-1")).code).toBe(1);
  expect((await store.cli("retry", "--definition", "booking", "--yes")).code).toBe(0);
  expect((await store.cli("retry", "--tag", "none", "--yes")).code).toBe(0);
});

test("show of a failed run whose steps were undone suggests a new run, not a retry", async () => {
  using store = await new StoreWithRuns([booking]).start({ id: "booking-1", what: booking, until: "failed" });
  const { stdout } = await store.cli("show", "booking-1");
  expect(stdout).toContain(`then start a new run: reprise run <file> booking '<input as JSON>' --store ${store.url}\n`);
  expect(stdout).not.toContain("reprise retry");
});

test("a filter needs --yes without a terminal; a dry run lists the runs and changes nothing", async () => {
  using store = await shop();
  const refused = await store.cli("cancel", "--definition", "review");
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(
    "error USAGE: Cancel 2 runs? This is not a terminal, so reprise cannot ask. Add --yes",
  );
  const [dry] = jsonLines((await store.cli("cancel", "--definition", "review", "--dry-run", "--json")).stdout);
  expect(dry).toMatchObject({ dryRun: true, count: 2, ids: ["review-1", "review-2"] });
  expect(await store.statusOf("review-1")).toBe("waiting");
  const [done] = jsonLines((await store.cli("cancel", "--tag", "eu", "--yes", "--json")).stdout);
  expect(done).toEqual({ action: "cancel", dryRun: false, count: 1, ids: ["review-1"], skipped: [] });
  expect(await store.finish("review-1")).toMatchObject({ status: "cancelled" });
  expect(await store.statusOf("review-2")).toBe("waiting");
});

test("--all selects every run that the command applies to, and no other", async () => {
  using store = await shop();
  const [done] = jsonLines((await store.cli("resume", "--all", "--yes", "--json")).stdout);
  expect(done).toMatchObject({ count: 1, ids: ["incomplete-1"], skipped: [] });
  expect(await store.statusOf("incomplete-1")).toBe("queued");
});

test("an empty or contradictory selection is refused before the store is opened", async () => {
  using store = await shop();
  for (const [args, expected] of [
    [[], /no run is selected\. Name run ids/],
    [["review-1", "--all"], /by id or by filter, not both/],
    [["--all", "--tag", "eu"], /Remove --all or the filter/],
    [["--status", "sad"], /--status: "sad" is not a status/],
    [["nope"], /There is no run nope/],
  ] as const) {
    const { code, stdout, stderr } = await store.cli("cancel", ...args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(expected);
  }
});

test("a paused run continues after resume; a terminated run never continues", async () => {
  using store = await shop();
  const pause = await store.cli("pause", "review-1");
  expect([pause.code, pause.stdout]).toEqual([0, "paused review-1 review\n"]);
  expect(await store.statusOf("review-1")).toBe("paused");
  expect((await store.cli("show", "review-1")).stdout).toContain(
    `\nnow\n  The run is paused: no new step starts, and messages are accepted.\n    next: reprise resume review-1 --store ${store.url}\n`,
  );
  const again = await store.cli("pause", "review-1", "--json");
  expect(jsonLines(again.stdout)).toMatchObject([{ action: "pause", count: 0, skipped: [{ id: "review-1" }] }]);
  expect((await store.cli("resume", "--status", "paused", "--yes")).stdout).toBe("resumed review-1 review\n");
  expect(await store.statusOf("review-1")).toBe("queued");
  const [ended] = jsonLines(
    (await store.cli("terminate", "--tag", "eu", "--reason", "gone", "--yes", "--json")).stdout,
  );
  expect(ended).toEqual({ action: "terminate", dryRun: false, count: 1, ids: ["review-1"], skipped: [] });
  expect(await store.statusOf("review-1")).toBe("cancelled");
  expect((await store.cli("show", "review-1")).stdout).toContain("gone");
});

test("a failed run is retried from the failed step; other runs are skipped", async () => {
  using store = await new StoreWithRuns([refuse, review]).start(
    { id: "refuse-1", what: refuse, until: "failed" },
    { id: "review-1", what: review, until: "waiting" },
  );
  const { code, stdout, stderr } = await store.cli("retry", "refuse-1", "review-1");
  expect([code, stdout]).toEqual([1, "retried refuse-1 refuse\n"]);
  expect(stderr).toContain("skipped review-1: it is waiting; this command applies to runs that are failed");
  expect(await store.statusOf("refuse-1")).toBe("queued");
  expect(await store.finish("refuse-1")).toMatchObject({ status: "failed" });
  const [again] = jsonLines((await store.cli("retry", "--definition", "refuse", "--yes", "--json")).stdout);
  expect(again).toEqual({ action: "retry", dryRun: false, count: 1, ids: ["refuse-1"], skipped: [] });
});
