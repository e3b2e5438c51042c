// run, worker and dev with graphs; answers of a person; Ctrl-C.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cli, finished, jsonLines, ROOT, waitForOutput, startCli, TemporaryFolder } from "./cli-process.ts";

const GRAPHS = join(ROOT, "test/cli/graphs.ts");

function shop(): TemporaryFolder & { on: (...args: readonly string[]) => ReturnType<typeof cli>; store: string[] } {
  const folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  return Object.assign(folder, { store, on: (...args: readonly string[]) => cli([...args, ...store]) });
}

test("run starts a graph by name; its input changes the channels", async () => {
  using here = shop();
  const { code, stdout, stderr } = await here.on("run", GRAPHS, "loop", '{"n":998,"log":["begun"]}', "--id", "l-1");
  expect(code).toBe(0);
  expect(stdout).toBe("{ log: [ 'begun', 'at 998', 'at 999' ], n: 1000 }\n");
  expect(stderr).toMatch(/^run l-1\ncompleted in .*, 7 entries\n$/);
  const again = await here.on("run", GRAPHS, "loop", '{"n":998,"log":["begun"]}', "--id", "l-1", "--json");
  expect(jsonLines(again.stdout)[0]).toMatchObject({ id: "l-1", status: "completed", output: { n: 1000 } });
});

test.each([
  ['{"m":1}', "graph loop has no channel m"],
  ["[1]", "expected changes of channels, such as { n: … }"],
])("run refuses the input %s and starts nothing", async (input, words) => {
  using here = shop();
  const { code, stderr } = await here.on("run", GRAPHS, "loop", input);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^error BAD_INPUT: The input of graph loop /)]);
  expect(stderr).toContain(words);
  expect((await here.on("list")).stdout).toBe("");
});

test("run reports the failure of the node that failed the run", async () => {
  using here = shop();
  const { code, stderr } = await here.on("run", GRAPHS, "failing", "--id", "f-1");
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining("error RUN_FAILED: Run f-1 failed: the index is gone\\u0007"),
  ]);
});

test("a worker lists its graphs, claims from their queues, and continues with the answer of a person", async () => {
  using here = shop();
  expect((await here.on("run", GRAPHS, "agent", "--detach", "--id", "a-1")).stdout).toBe("a-1\n");
  const worker = startCli(["worker", GRAPHS, "--queues", "default,gpu", ...here.store]);
  const ended = finished(worker);
  await waitForOutput(worker, "started worker");
  const watching = startCli(["show", "a-1", "--watch", ...here.store]);
  const watched = finished(watching);
  await waitForOutput(watching, "○ 5.0/approval");
  const refused = await here.on("resolve", "a-1", "approval", '{"ok":"yes"}', "--file", GRAPHS);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("BAD_INPUT")]);
  expect((await here.on("resolve", "a-1", "approval", '{"ok":true}', "--file", GRAPHS)).code).toBe(0);
  expect(await watched).toMatchObject({ code: 0, stdout: expect.stringContaining("goto publish") });
  worker.kill("SIGTERM");
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/1 workflow \(sub\), 6 graphs \(agent, .*slow.*\)/);
});

test("Ctrl-C waits for the running node, releases the run and exits with 130; the next command continues the run", async () => {
  using here = shop();
  const child = startCli(["run", GRAPHS, "slow", "--id", "s-1", ...here.store]);
  const ended = finished(child);
  await waitForOutput(child, "step running");
  child.kill("SIGINT");
  expect((await ended).code).toBe(130);
  const { stdout } = await here.on("show", "s-1");
  expect(stdout).toMatch(/^ +1 .* first +n /m);
  expect((await here.on("doctor")).code).toBe(0);
  const { code, stdout: output } = await here.on("run", GRAPHS, "slow", "--id", "s-1");
  expect([code, output]).toEqual([0, "{ n: 2 }\n"]);
});

test("dev prints the nodes and steps of a graph", async () => {
  using here = shop();
  writeFileSync(
    here.file("flow.mjs"),
    `import { append, END, graph, START } from ${JSON.stringify(import.meta.resolve("reprise"))};
     export const talk = graph("talk", { state: { said: append() } })
       .node("greet", (ctx) => { ctx.label("greeted"); return { said: ["hello"] }; })
       .edge(START, "greet").edge("greet", END);`,
  );
  const child = startCli(["dev", "flow.mjs", ...here.store], { cwd: here.path });
  const ended = finished(child);
  await waitForOutput(child, "ready: talk");
  const completed = waitForOutput(child, "completed");
  const start = ["run", "flow.mjs", "talk", "--detach", "--id", "t-1", ...here.store];
  expect((await cli(start, { cwd: here.path })).code).toBe(0);
  await completed;
  child.kill("SIGINT");
  const { code, stdout } = await ended;
  expect(code).toBe(130);
  expect(stdout).toMatch(/t-1 +● greet +node 1\.0, took .* → \{ said: \[ 'hello' \] \}, label greeted\n/);
  expect(stdout).toMatch(/t-1 +· step 1 +said \+1 \(9 bytes\), label greeted\n/);
});
