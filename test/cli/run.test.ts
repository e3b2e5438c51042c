// reprise run: starts a run from a file and prints its output.

import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { cli, DEFINITIONS, finished, jsonLines, waitForOutput, startCli, TemporaryFolder } from "./cli-process.ts";

test("run starts a run, executes it and prints its output; the same id returns the same run", async () => {
  using folder = new TemporaryFolder();
  const args = ["run", DEFINITIONS, "pay", "4990", "--id", "pay-1", "--store", `sqlite:${folder.file("shop.db")}`];
  const first = await cli(args);
  expect(first.code).toBe(0);
  expect(first.stdout).toBe("{ at: 1970-01-01T00:00:00.000Z, label: 'L-4990\\x1B[2J' }\n");
  expect(first.stderr).toMatch(/^run pay-1\ncompleted in \d+ ms, 8 entries\n$/);
  const again = await cli([...args, "--json"]);
  expect(again.code).toBe(0);
  expect(jsonLines(again.stdout)).toEqual([
    {
      id: "pay-1",
      status: "completed",
      output: { at: { $: "date", v: 0 }, label: "L-4990\u001b[2J" },
      entries: 8,
      digest: expect.stringMatching(/^sha256:/),
      createdAt: expect.stringMatching(/Z$/),
      endedAt: expect.stringMatching(/Z$/),
    },
  ]);
  const other = await cli([
    "run",
    DEFINITIONS,
    "pay",
    "1",
    "--id",
    "pay-1",
    "--store",
    `sqlite:${folder.file("shop.db")}`,
  ]);
  expect(other.code).toBe(2);
  expect(other.stderr).toContain("error START_CONFLICT:");
});

test("REPRISE_CODE names the code in the runtimes of a run; an invalid name is refused before anything is started", async () => {
  using folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  const args = ["run", DEFINITIONS, "greet", "--id", "greet-1", ...store];
  const refused = await cli(args, { env: { REPRISE_CODE: "two words" } });
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("REPRISE_CODE: expected 1 to 200")]);
  expect((await cli(args, { env: { REPRISE_CODE: "sha-1" } })).code).toBe(0);
  const [shown] = jsonLines((await cli(["show", "greet-1", "--json", ...store])).stdout);
  expect(shown).toMatchObject({ runtimes: [{ code: "sha-1", arch: process.arch, node: process.versions.node }] });
});

test("run reads its input from a file or from standard input, or has none", async () => {
  using folder = new TemporaryFolder();
  writeFileSync(folder.file("name.json"), '"Ada"');
  const store = ["--store", "sqlite::memory:"];
  const [file, stdin, none] = await Promise.all([
    cli(["run", DEFINITIONS, "greet", "--input-file", folder.file("name.json"), ...store]),
    cli(["run", DEFINITIONS, "greet", "--input-file", "-", ...store], { input: '"Grace"' }),
    cli(["run", DEFINITIONS, "greet", ...store]),
  ]);
  expect([file.stdout, stdin.stdout, none.stdout]).toEqual(["Hello, Ada\n", "Hello, Grace\n", "Hello, stranger\n"]);
});

test("run reports a failed, a stopped and an unknown workflow with its code", async () => {
  const store = ["--store", "sqlite::memory:"];
  const [failed, blocked, unknown] = await Promise.all([
    cli(["run", DEFINITIONS, "refuse", "--id", "refuse-1", ...store]),
    cli(["run", DEFINITIONS, "incomplete", "--id", "incomplete-1", ...store]),
    cli(["run", DEFINITIONS, "nothing", ...store]),
  ]);
  expect([failed.code, blocked.code, unknown.code]).toEqual([1, 4, 2]);
  expect(failed.stderr).toContain("error RUN_FAILED: Run refuse-1 failed: not today\\u0007");
  expect(blocked.stderr).toContain(
    "error RUN_BLOCKED: Run incomplete-1 is stopped: Workflow incomplete requests task `unexported`",
  );
  expect(unknown.stderr).toContain("exports no workflow, graph or flow named nothing. It exports: ");
});

test("Ctrl-C waits for the running step, releases the run and exits with 130; the next command continues the run", async () => {
  using folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  const args = ["run", DEFINITIONS, "slow", '"signaled"', "--id", "slow-1", ...store];
  const child = startCli(args);
  const ended = finished(child);
  await waitForOutput(child, "step running");
  child.kill("SIGINT");
  expect((await ended).code).toBe(130);
  const [report] = jsonLines((await cli(["doctor", "--json", ...store])).stdout);
  expect(report).toMatchObject({ healthy: true, store: { workers: [] } });
  const next = await cli(args);
  expect([next.code, next.stdout]).toEqual([0, "worked\n"]);
});

test("readers and workers use the store at the same time", async () => {
  using folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  const child = startCli(["run", DEFINITIONS, "review", "--id", "review-1", ...store]);
  const ended = finished(child);
  await waitForOutput(child, "run review-1");
  expect((await cli(["show", "review-1", ...store])).code).toBe(0);
  expect((await cli(["doctor", ...store])).code).toBe(0);
  child.kill("SIGINT");
  expect((await ended).code).toBe(130);
});

test("a second Ctrl-C exits immediately, and nothing is lost", async () => {
  using folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  const child = startCli(["run", DEFINITIONS, "slow", '"killed"', "--id", "slow-1", ...store]);
  const ended = finished(child);
  await waitForOutput(child, "step running");
  const stopping = waitForOutput(child, "stopping");
  child.kill("SIGINT");
  await stopping;
  child.kill("SIGINT");
  expect((await ended).code).toBe(130);
  expect((await cli(["doctor", ...store])).code).toBe(0);
});

test("the exported outbox of a file delivers the messages of its workflows", async () => {
  using folder = new TemporaryFolder();
  writeFileSync(
    folder.file("flows.mjs"),
    `import { workflow } from ${JSON.stringify(import.meta.resolve("reprise"))};
     export const outbox = { mail: async (payload) => process.stdout.write("delivered " + payload + "\\n") };
     export const notify = workflow("notify", async (ctx) => {
       ctx.send("mail", "hello");
       await ctx.sleep(300);
     });`,
  );
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  const { code, stdout } = await cli(["run", folder.file("flows.mjs"), "notify", ...store]);
  expect([code, stdout]).toEqual([0, "delivered hello\n"]);
});
