// run, worker, show --watch, pause, retry, verify and doctor with flows; Ctrl-C.

import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, flow, typed } from "reprise";
import {
  command as cli,
  finished,
  jsonLines,
  ROOT,
  waitForOutput,
  startCli,
  startOnTerminal,
  isInstalled,
  TemporaryFolder,
} from "./cli-process.ts";
import { failingUntil, wide } from "./flows.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const FLOWS = join(ROOT, "test/cli/flows.ts");

function place(): TemporaryFolder & { on: (...args: readonly string[]) => ReturnType<typeof cli>; store: string[] } {
  const folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  return Object.assign(folder, { store, on: (...args: readonly string[]) => cli([...args, ...store]) });
}

test("a worker claims nodes from their queues; show and doctor report running, queued and unclaimable nodes", async () => {
  using here = place();
  expect((await here.on("run", FLOWS, "slow", "--detach", "--id", "s-1")).stdout).toBe("s-1\n");
  expect((await here.on("show", "s-1")).stdout).toContain(
    "now\n  No worker is live; the run needs one with slow version 1.\n",
  );
  expect((await here.on("worker", FLOWS, "--queues", "cpu")).stderr).toContain("It uses: default, tax, gpu");
  const worker = startCli(["worker", FLOWS, "--queues", "default,gpu", "--events", ...here.store]);
  const ended = finished(worker);
  await waitForOutput(worker, "step running");
  const watching = startCli(["show", "s-1", "--watch", ...here.store]);
  const watched = finished(watching);
  await waitForOutput(watching, "● other");
  expect((await here.on("pause", "s-1")).code).toBe(0);
  const paused = await here.on("show", "s-1");
  expect(paused.stdout).toMatch(/^work +running$/m);
  expect(paused.stdout).toMatch(/^\[output\] +output +waiting, 1 of 2 inputs$/m);
  expect(paused.stdout).toContain(
    `now\n  The run is paused: no new step starts, and messages are accepted.\n    next: reprise resume s-1 ${here.store.join(" ")}\n`,
  );
  worker.kill("SIGTERM");
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/6 flows \(broken, failing, .*slow, wide\)/);
  expect((await here.on("show", "s-1")).stdout).toMatch(/^\[output\] +output +queued, paused$/m);
  expect((await here.on("resume", "s-1")).code).toBe(0);
  const doctor = await here.on("doctor");
  expect(doctor.stdout).toMatch(
    /^pending +No worker is live; 1 node of slow v1 needs one with slow version 1 \(oldest .*\)$/m,
  );
  expect(doctor.code).toBe(0);
  const [json] = jsonLines((await here.on("doctor", "--json")).stdout);
  expect(json!["dueNodes"]).toEqual([
    { definition: "slow", version: 1, queue: null, count: 1, oldestAt: expect.any(String) },
  ]);
  const done = await here.on("run", FLOWS, "slow", "--id", "s-1");
  expect([done.code, done.stdout]).toEqual([0, "5\n"]);
  expect(await watched).toMatchObject({ code: 0, stdout: expect.stringContaining("● completed") });
});

test("a retried flow continues from the failed item, and verify reports that the code matches the journal", async () => {
  let isRepaired = false;
  const failing = failingUntil(() => isRepaired);
  using own = await new StoreWithRuns([failing]).start({ id: "f-1", what: failing, input: 5, until: "failed" });
  expect((await own.cli("retry", "f-1")).code).toBe(0);
  const retried = await own.cli("show", "f-1");
  expect(retried.stdout).toMatch(/^each +spread +2 of 5, 1 queued$/m);
  expect(retried.stdout).toMatch(/· retried +from entry 7\n/);
  expect(retried.stdout).not.toContain("failed");
  expect(retried.stdout).toContain("now\n  No worker is live; the run needs one with failing version 1.\n");
  isRepaired = true;
  expect(await own.finish("f-1")).toMatchObject({ status: "completed", output: 5 });
  expect((await own.cli("show", "f-1")).stdout).toMatch(/^each +spread +completed, 5 items +\d/m);
  const verified = await own.cli("verify", "f-1", FLOWS);
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("verified")]);
});

test("--watch counts completed items and prints no line for them; --json has every entry, and the nodes at the end", async () => {
  using own = await new StoreWithRuns([wide]).start({ id: "w-1", what: wide, input: 300, until: "completed" });
  const { code, stdout } = await own.cli("show", "w-1", "--watch");
  expect(code).toBe(0);
  expect(stdout).toMatch(/· items\[\] +spread, 300 items\n/);
  expect(stdout).toMatch(/✖ items\[107\] +node failed: FatalError: item 107\n/);
  expect(stdout).not.toContain("items[108]");
  const lines = jsonLines((await own.cli("show", "w-1", "--watch", "--json")).stdout);
  expect(lines.filter(({ entry }) => entry?.command === "items[108]")).toHaveLength(1);
  expect(lines.at(-1)!["run"].flow.nodes[0]).toMatchObject({
    node: "items",
    items: { total: 300, completed: 297, failed: 3 },
  });
});

test("show prints when nodes and items are retried, and why", async () => {
  const later = flow("later", { input: typed<number>() })
    .action("tries", ["input"], { retry: { maxAttempts: 3, baseDelay: "1 hour" } }, () => {
      throw new Error("not now\u0007");
    })
    .spread(
      "each",
      ["input"],
      { retry: { maxAttempts: 3, baseDelay: "1 hour" } },
      ({ input }) => [input, 1, 2],
      (_ctx, n) => {
        if (n > 0) throw new Error("nor these");
        return n;
      },
    )
    .output(["tries", "each"], () => 1);
  using own = new StoreWithRuns([later]);
  {
    await using engine = await createEngine({ store: own.url, definitions: [later], logger: SILENT });
    await engine.start(later, 0, { id: "l-1" });
    const items = async (): Promise<number> => {
      const [json] = jsonLines((await own.cli("doctor", "--json")).stdout);
      return json!["store"].items.delayed as number;
    };
    while ((await items()) < 3) await new Promise((resolve) => setImmediate(resolve));
  }
  const { stdout } = await own.cli("show", "l-1");
  expect(stdout).toMatch(/^tries +retrying +2$/m);
  expect(stdout).toMatch(/^each +spread +1 of 3, 2 retrying$/m);
  expect(stdout).toMatch(
    /Attempt 2 of node tries starts in (1 h|59 m .*), at \S+; attempt 1\s+failed: Error: not now\\u0007\./,
  );
});

test("doctor names the run and the node whose counters are wrong", async () => {
  using own = await new StoreWithRuns([wide]).start({ id: "w-1", what: wide, input: 3, until: "completed" });
  const db = new DatabaseSync(own.url.slice("sqlite:".length));
  db.exec("update readiness set completed = 2 where node = 'items'");
  db.close();
  const { code, stdout } = await own.cli("doctor");
  expect(code).toBe(1);
  expect(stdout).toMatch(/✖ I2 .*run w-1\n +Node items counts 2 arrivals, but 3 are stored\./);
});

test.runIf(isInstalled("script"))(
  "on a terminal values are clipped before states, and no line is wider than the terminal",
  async () => {
    using own = await new StoreWithRuns([wide]).start({ id: "w-1", what: wide, input: 300, until: "completed" });
    const child = startOnTerminal(["show", "w-1", "--store", own.url]);
    const { stdout } = await finished(child);
    // eslint-disable-next-line no-control-regex
    const lines = stdout.replace(/\u001b\[\d+m/g, "").split(/\r?\n/);
    expect(lines.find((line) => line.startsWith("items "))).toContain("completed, 300 items, 3 failed");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  },
);
