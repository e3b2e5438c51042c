// A command on named objects exits 0 only if it changed every one of them (docs/decisions/0090).

import { expect, test } from "vitest";
import { queue, task, workflow } from "reprise";
import { DEFINITIONS, jsonLines } from "./cli-process.ts";
import { cart, greet, incomplete, refuse, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const mail = queue("mail", { concurrency: 4 });
const send = task("send", { queue: mail }, (_ctx, to: string) => `sent to ${to}`);
const notify = workflow("notify", async (ctx, to: string) => ctx.task(send, to));

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([notify, send, review, refuse, incomplete, cart]).start(
    { id: "done", what: notify, input: "ann", until: "completed" },
    { id: "waits", what: review, until: "waiting" },
    { id: "cart", what: cart, until: "waiting" },
    { id: "failed", what: refuse, until: "failed" },
    { id: "blocked", what: incomplete, until: "blocked" },
  );

test("a control command that changed a named run exits 0; one that changed nothing exits 1 with the reason", async () => {
  using store = await shop();
  for (const [args, code, said] of [
    [["cancel", "done"], 1, "skipped done: already completed"],
    [["cancel", "failed"], 1, "skipped failed: already failed"],
    [["terminate", "done"], 1, "skipped done: already completed"],
    [["pause", "done"], 1, "skipped done: already completed"],
    [["pause", "blocked"], 1, "skipped blocked: it is blocked; this command applies to runs that are queued, running"],
    [["resume", "waits"], 1, "skipped waits: it is waiting; this command applies to runs that are paused, blocked"],
    [["resume", "done"], 1, "skipped done: already completed"],
    [["retry", "done"], 1, "skipped done: already completed"],
    [["retry", "waits"], 1, "skipped waits: it is waiting; this command applies to runs that are failed"],
    [["pause", "waits"], 0, ""],
    [["pause", "waits"], 1, "skipped waits: already paused"],
    [["resume", "waits"], 0, ""],
    [["resume", "waits"], 1, "skipped waits: it is queued; this command applies to runs that are paused"],
    [["terminate", "waits"], 0, ""],
    [["terminate", "waits"], 1, "skipped waits: already cancelled"],
    [["retry", "failed"], 0, ""],
    [["retry", "failed"], 1, "skipped failed: it is queued; this command applies to runs that are failed"],
  ] as const) {
    const result = await store.cli(...args);
    expect([args, result.code, result.stderr.startsWith(said)]).toEqual([args, code, true]);
    expect(result.stdout === "").toBe(code === 1);
  }
});

test("a command on several runs exits 1 if it skipped one of them, and changes the others", async () => {
  using store = await shop();
  const both = await store.cli("pause", "done", "waits");
  expect([both.code, both.stdout]).toEqual([1, "paused waits review\n"]);
  expect(both.stderr).toBe("skipped done: already completed\npaused 1 run\n");
  const json = await store.cli("cancel", "done", "waits", "--json");
  expect([json.code, ...jsonLines(json.stdout)]).toEqual([
    1,
    {
      action: "cancel",
      dryRun: false,
      count: 1,
      ids: ["waits"],
      skipped: [{ id: "done", status: "completed", reason: "already completed" }],
    },
  ]);
  // A filter names no run.
  expect((await store.cli("retry", "--definition", "review", "--yes")).code).toBe(0);
});

test("pausing a paused queue, and resuming one that is not paused, exit 1 with the reason", async () => {
  using store = await shop();
  const say = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await store.cli("queue", ...args);
    return [code, stdout, stderr];
  };
  expect(await say("resume", "mail")).toEqual([1, "", "skipped mail: it is not paused\n"]);
  expect(await say("pause", "mail")).toEqual([0, "paused mail\n", ""]);
  expect(await say("pause", "mail")).toEqual([1, "", "skipped mail: already paused\n"]);
  const [json] = jsonLines((await store.cli("queue", "pause", "mail", "--json")).stdout);
  expect(json).toMatchObject({ action: "pause", skipped: "already paused", queue: { name: "mail", paused: true } });
  expect(await say("resume", "mail")).toEqual([0, "resumed mail\n", ""]);
  expect((await store.cli("queue", "resume", "nope")).code).toBe(2);
});

test("a schedule that is already paused or not paused, and a backfill without a missing run, exit 1", async () => {
  using store = new StoreWithRuns([greet]);
  await store.cli("schedule", "create", "hourly", DEFINITIONS, "greet", '"Ada"', "--cron", "0 * * * *");
  const say = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await store.cli("schedule", ...args);
    return [code, stdout, stderr];
  };
  expect(await say("resume", "hourly")).toEqual([1, "", "skipped hourly: it is not paused\n"]);
  expect(await say("pause", "hourly")).toEqual([0, "paused hourly\n", ""]);
  expect(await say("pause", "hourly")).toEqual([1, "", "skipped hourly: already paused\n"]);
  const period = ["--from", "2026-01-01T00:00Z", "--to", "2026-01-01T03:00Z"];
  expect(await say("backfill", "hourly", ...period)).toEqual([0, "started 3 runs of hourly\n", ""]);
  const none = "no planned time in this period is without a run";
  expect(await say("backfill", "hourly", ...period)).toEqual([1, "", `skipped hourly: ${none}\n`]);
  const [json] = jsonLines((await store.cli("schedule", "backfill", "hourly", ...period, "--json")).stdout);
  expect(json).toMatchObject({ action: "backfill", count: 0, skipped: none });
});

test("a message that a run no longer accepts exits 1; one with an id of its own can be repeated", async () => {
  using store = await shop();
  const ended = await store.cli("resolve", "done", "approval", "1");
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringMatching(/^error RUN_ENDED: Run done has ended/)]);
  expect((await store.cli("resolve", "waits", "approval", '{"ok":true}')).code).toBe(0);
  const second = await store.cli("reject", "waits", "approval", "no");
  expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/^error PROMISE_ALREADY_RESOLVED:/)]);
  for (const _ of [1, 2])
    expect((await store.cli("signal", "cart", "add", '{"sku":"a","qty":2}', "--dedup-id", "click-81")).code).toBe(0);
  expect(jsonLines((await store.cli("show", "cart", "--json")).stdout)[0]).toMatchObject({ unread: 1 });
});
