// reprise worker: runs until it receives a signal, and releases its work.

import { once } from "node:events";
import { expect, test } from "vitest";
import { createClient } from "reprise";
import { DEFINITIONS, finished, jsonLines, waitForOutput, startCli, TemporaryFolder, cli } from "./cli-process.ts";
import { refuse, pay, slow } from "./definitions.ts";

test("a worker executes runs of other processes, prints its definitions, and exits with 0 on SIGTERM", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  const child = startCli(["worker", DEFINITIONS, "--concurrency", "4", "--store", store]);
  const ended = finished(child);
  await waitForOutput(child, "started worker");
  {
    await using client = await createClient({ store, definitions: [pay] });
    expect(await (await client.start(pay, 7, { id: "pay-1" })).result()).toMatchObject({ label: expect.any(String) });
  }
  child.kill("SIGTERM");
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/\d\d:\d\d:\d\d started worker .* workflows \(.*pay.*\), 1 task \(charge\)\n/);
  expect(stdout).toMatch(/stopping: .*\n.*stopped\n$/);
});

test("a worker prints each failure once, with the command that shows it in this store", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  const child = startCli(["worker", DEFINITIONS, "--store", store]);
  const ended = finished(child);
  await waitForOutput(child, "started worker");
  const printed = waitForOutput(child, "of refuse failed");
  {
    await using client = await createClient({ store, definitions: [refuse] });
    await (await client.start(refuse, undefined, { id: "refuse-1" })).result().catch(() => {});
  }
  await printed;
  child.kill("SIGTERM");
  const { stdout } = await ended;
  const lines = stdout.split("\n").filter((line) => line.includes("refuse-1"));
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain(`warn  Run refuse-1: `);
  expect(lines[1]).toContain("error Run refuse-1 of refuse failed: not today");
  expect(lines[1]).toContain(`\`reprise retry refuse-1 --store ${store}\``);
});

test("with --json every line of a worker is one JSON value", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  const child = startCli(["worker", DEFINITIONS, "--json", "--events", "--store", store]);
  const ended = finished(child);
  await waitForOutput(child, "worker.started");
  {
    await using client = await createClient({ store, definitions: [pay] });
    await (await client.start(pay, 7, { id: "pay-1" })).result();
  }
  child.kill("SIGINT");
  const { code, stdout, stderr } = await ended;
  expect([code, stderr]).toEqual([130, ""]);
  const lines = jsonLines(stdout);
  expect(lines[0]).toMatchObject({ level: "info", event: "worker.started", tasks: ["charge"], at: expect.any(String) });
  expect(lines.map(({ event }) => event as string)).toEqual(
    expect.arrayContaining(["attempt.failed", "run.ended", "worker.stopping", "worker.stopped"]),
  );
});

test("after a signal a worker finishes its running steps; a second signal ends it immediately, and nothing is lost", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  await using client = await createClient({ store, definitions: [slow] });
  const start = async (id: string, until: "signaled" | "killed") => {
    const child = startCli(["worker", DEFINITIONS, "--json", "--events", "--store", store]);
    const ended = finished(child);
    await waitForOutput(child, "worker.started");
    const running = waitForOutput(child, "step running");
    await client.start(slow, until, { id });
    await running;
    const stopping = waitForOutput(child, "worker.stopping");
    child.kill("SIGTERM");
    await stopping;
    return { child, ended };
  };
  const first = await start("slow-1", "signaled");
  expect((await first.ended).code).toBe(0);
  const [entry] = jsonLines((await cli(["journal", "slow-1", "--after", "1", "--json", "--store", store])).stdout);
  expect(entry).toMatchObject({ type: "OperationCompleted" });

  const second = await start("slow-2", "killed");
  second.child.kill("SIGTERM");
  expect((await second.ended).code).toBe(143);
  expect((await cli(["doctor", "--store", store])).stdout).toContain("healthy");
});

test("a worker whose terminal is closed releases its work", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  const child = startCli(["worker", DEFINITIONS, "--store", store]);
  await waitForOutput(child, "started worker");
  const exited = once(child, "exit");
  child.stdout.destroy();
  child.stderr.destroy();
  child.kill("SIGHUP");
  expect(await exited).toEqual([129, null]);
  const [report] = jsonLines((await cli(["doctor", "--json", "--store", store])).stdout);
  expect(report).toMatchObject({ healthy: true, store: { workers: [] } });
});

test("a worker refuses a store in memory, a missing file and invalid options", async () => {
  using folder = new TemporaryFolder();
  for (const [args, code, expected] of [
    [
      ["worker", DEFINITIONS, "--store", "sqlite::memory:"],
      3,
      /error BAD_STORE_URL: .*Name a file or a database server/,
    ],
    [["worker", "nowhere.ts"], 2, /There is no file/],
    [["worker", DEFINITIONS, "--concurrency", "0"], 2, /1 or more/],
    [["worker", DEFINITIONS, "--lease", "never"], 2, /error BAD_DURATION: worker\.lease/],
    [["worker", DEFINITIONS, "--memory", "64"], 2, /error BAD_OPTIONS: worker\.memory: expected a size/],
    [["worker", DEFINITIONS, "--memory", "64KB"], 2, /error BAD_OPTIONS: worker\.memory: expected 1 MiB or more/],
    [["worker", DEFINITIONS, "--grace", "never"], 2, /error BAD_DURATION: --grace/],
  ] as const) {
    const result = await cli(args, { cwd: folder.path });
    expect([args, result.code]).toEqual([args, code]);
    expect(result.stderr).toMatch(expected);
  }
});
