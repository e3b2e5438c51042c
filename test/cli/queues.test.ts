// reprise queue, and the queue options of worker and run.

import { expect, test } from "vitest";
import { queue, task, workflow } from "reprise";
import {
  command as cli,
  DEFINITIONS,
  finished,
  jsonLines,
  waitForOutput,
  startCli,
  TemporaryFolder,
} from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const mail = queue("mail", { concurrency: 4, rate: { limit: 100, per: "1 minute" }, perKey: { concurrency: 1 } });
const send = task("send", { queue: mail, key: (to: string) => to }, (_ctx, to: string) => `sent to ${to}`);
const notify = workflow("notify", async (ctx, to: string) => ctx.task(send, to));

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([notify, send]).start({ id: "notify-1", what: notify, input: "ann", until: "completed" });

const MAIL = {
  name: "mail",
  paused: false,
  pausedAt: null,
  ready: 0,
  leased: 0,
  delayed: 0,
  oldestReadyAt: null,
  limits: { concurrency: 4, rate: { limit: 100, per: 60_000 }, perKey: { concurrency: 1 } },
};

test("queues are listed with their work and limits, paused and resumed", async () => {
  using store = await shop();
  const listed = jsonLines((await store.cli("queue", "list", "--json")).stdout);
  expect(listed.map(({ name }) => name as string)).toEqual(["default", "mail"]);
  expect(listed[1]).toEqual(MAIL);
  expect((await store.cli("queue", "pause", "mail")).stdout).toBe("paused mail\n");
  const { stdout } = await store.cli("queue", "list");
  expect(stdout).toMatch(/^QUEUE +READY +RUNNING +DELAYED +OLDEST +LIMITS\n/);
  expect(stdout).toMatch(/\nmail +0 +0 +0 +4 at once, 100 per 1 m, per key 1 at once +paused since 20\S+Z\n$/);
  const [, paused] = jsonLines((await store.cli("queue", "list", "--json")).stdout);
  expect(paused).toEqual({ ...MAIL, paused: true, pausedAt: expect.stringMatching(/^20.*Z$/) });
  expect(stdout).toContain(`paused since ${String(paused?.["pausedAt"])}`);
  const [resumed] = jsonLines((await store.cli("queue", "resume", "mail", "--json")).stdout);
  expect(resumed).toEqual({ action: "resume", skipped: null, queue: MAIL });
});

test("queue limit sets or removes limits", async () => {
  using store = await shop();
  const limited = await store.cli("queue", "limit", "mail", "--concurrency", "2", "--key-rate", "5/10s");
  expect(limited.stdout).toBe("changed mail  2 at once, per key 5 per 10 s\n");
  const [none] = jsonLines((await store.cli("queue", "limit", "mail", "--none", "--json")).stdout);
  expect(none).toMatchObject({ action: "limit", queue: { limits: {} } });
});

test("invalid limits and queues are refused", async () => {
  using store = await shop();
  for (const [args, expected] of [
    [["queue", "pause", "nope"], /error QUEUE_NOT_FOUND:/],
    [["queue", "pause", "default"], /error USAGE: Queue default/],
    [["queue", "limit", "mail"], /pass new limits, .* or --none/],
    [["queue", "limit", "mail", "--none", "--concurrency", "1"], /not both/],
    [
      ["queue", "limit", "mail", "--rate", "many"],
      /--rate: "many" is not a rate\. Use a count and a time, such as 100\/1m/,
    ],
    [
      ["worker", DEFINITIONS, "--queues", "mail"],
      /--queues: no definition in this file uses the queue mail\. It uses: default/,
    ],
    [
      ["worker", DEFINITIONS, "--labels", "gpu"],
      /--labels: no definition in this file has the label gpu\. It has no labels/,
    ],
  ] as const) {
    const { code, stderr } = await store.cli(...args);
    expect([args, code]).toEqual([args, 2]);
    expect(stderr).toMatch(expected);
  }
});

test("a worker reports its queues, and a run can be started with a tag and a delay", async () => {
  using folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  const child = startCli(["worker", DEFINITIONS, "--queues", "default", "--json", ...store]);
  const ended = finished(child);
  await waitForOutput(child, "worker.started");
  const start = ["run", DEFINITIONS, "greet", '"Ada"', "--id", "greet-1", "--detach"];
  const started = await cli([...start, "--tag", "eu,test", "--priority", "3", "--delay", "1h", ...store]);
  expect([started.code, started.stdout]).toEqual([0, "greet-1\n"]);
  const [shown] = jsonLines((await cli(["show", "greet-1", "--json", ...store])).stdout);
  expect(shown).toMatchObject({ status: "queued", tags: ["eu", "test"], priority: 3 });
  child.kill("SIGTERM");
  expect(jsonLines((await ended).stdout)[0]).toMatchObject({ event: "worker.started", queues: ["default"] });
});
