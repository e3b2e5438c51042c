// checkpoints, fork and diff, without the graph's code.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { append, graph, last, START, workflow } from "reprise";
import { checkpointFromJson } from "reprise/checkpoints";
import { command as cli, jsonLines, ROOT } from "./cli-process.ts";
import { agent, loop } from "./graphs.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

// Every command is a process, which is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const GRAPHS = join(ROOT, "test/cli/graphs.ts");
const secretive = graph("secretive", { state: { password: last(""), log: append<string>() } })
  .node("say", async (ctx, state) => {
    await ctx.run("login", { apiKey: `key of ${state.password}` }, () => "in");
    return { log: ["said\u001b[31m"] };
  })
  .edge(START, "say");
const plainWorkflow = workflow("plain", async (ctx) => ctx.run("x", () => 1));

const store = new StoreWithRuns([agent, loop, secretive, plainWorkflow]);
beforeAll(async () => {
  await store.start(
    { id: "agent-1", what: agent, input: {}, until: "waiting" },
    { id: "loop-1", what: loop, input: {}, until: "completed" },
    { id: "plain-1", what: plainWorkflow, until: "completed" },
    { id: "secret-1", what: secretive, input: { password: "hunter2" }, until: "completed" },
  );
});
afterAll(() => {
  vi.resetConfig();
  store[Symbol.dispose]();
});

test("checkpoints prints a table of steps with the next nodes, or a line of JSON for each", async () => {
  const { stdout, code } = await store.cli("checkpoints", "agent-1");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^STEP +RUN +LABEL +AT +NEXT +KEY$/m);
  expect(stdout).toMatch(/^ {3}1 +agent-1 +plan 0 +\S+Z +search ×2 +[0-9a-f]{8}$/m);
  expect(stdout).toMatch(/^ {3}4 +agent-1 +\S+Z +review +[0-9a-f]{8}$/m);
  const json = jsonLines((await store.cli("checkpoints", "agent-1", "--after", "2", "--json")).stdout);
  expect(json.map(({ step, next }) => [step, next])).toEqual([
    [3, ["write"]],
    [4, ["review"]],
  ]);
  expect(Object.keys(json[0]!)).toEqual(["runId", "step", "label", "timestamp", "idempotencyKey", "rngSeed", "next"]);
  const some = jsonLines((await store.cli("checkpoints", "loop-1", "--after", "500", "--limit", "3", "--json")).stdout);
  expect(some.map(({ step }) => step)).toEqual([501, 502, 503]);
  expect((await store.cli("checkpoints", "loop-1", "--after", "5000")).stdout).toContain("no matching checkpoints");
});

test("checkpoints --step and --label print one step with its state, calls and next nodes, also in the exchange format", async () => {
  const { stdout } = await store.cli("checkpoints", "agent-1", "--step", "2");
  expect(stdout).toContain("found: [ 'about who', 'about what' ]");
  expect(stdout).toMatch(/^ {2}search, attempt 2 look up {2}\{ question: 'what' \} → 'about what'/m);
  expect(stdout).toMatch(/^next\n {2}facts\n {2}read$/m);
  const json = await store.cli("checkpoints", "agent-1", "--label", "plan 0", "--json");
  const checkpoint = checkpointFromJson(json.stdout.trimEnd());
  expect(checkpoint).toMatchObject({
    runId: "agent-1",
    step: 1,
    label: "plan 0",
    frontier: [{ item: "who" }, { item: "what" }],
  });
});

test("checkpoints and diff redact secrets unless --show-secrets is given", async () => {
  const hidden = await store.cli("checkpoints", "secret-1", "--step", "1");
  expect(hidden.stdout).not.toContain("hunter2");
  expect(hidden.stdout).not.toContain("\u001b[31m");
  const json = await store.cli("checkpoints", "secret-1", "--step", "1", "--json");
  expect(json.stdout).toContain("[redacted]");
  expect(json.stdout).not.toContain("hunter2");
  const open = await store.cli("checkpoints", "secret-1", "--step", "1", "--json", "--show-secrets");
  expect(open.stdout).toContain("hunter2");
  await store.cli("fork", "secret-1", "--step", "0", "--patch", '{"password":"swordfish"}', "--id", "secret-2");
  await store.finish("secret-2");
  const diff = await store.cli("diff", "secret-1", "secret-2");
  expect(diff.code).toBe(1);
  expect(diff.stdout).toContain("password");
  expect(diff.stdout).not.toMatch(/hunter2|swordfish/);
  expect((await store.cli("diff", "secret-1", "secret-2", "--show-secrets")).stdout).toMatch(/hunter2[^]*swordfish/);
});

test("fork needs no code and takes a step or a label, and a patch; a worker continues the new run", async () => {
  const made = await store.cli("fork", "loop-1", "--step", "995", "--patch", '{"log":["fresh"]}', "--id", "loop-2");
  expect([made.code, made.stdout.trimEnd()]).toEqual([0, "forked loop-2 from step 995 of loop-1"]);
  expect(made.stderr).toContain("--file");
  expect(await store.finish("loop-2")).toMatchObject({
    status: "completed",
    output: { n: 1_000, log: ["fresh", "at 995", "at 996", "at 997", "at 998", "at 999"] },
  });
  const again = await store.cli(
    "fork",
    "loop-1",
    "--step",
    "995",
    "--patch",
    '{"log":["fresh"]}',
    "--id",
    "loop-2",
    "--json",
  );
  expect(jsonLines(again.stdout)).toEqual([
    {
      action: "fork",
      id: "loop-2",
      from: "loop-1",
      step: 995,
      label: null,
      at: null,
      answers: [],
      effects: "live",
      models: {},
      status: "completed",
      checked: false,
    },
  ]);
  const other = await store.cli("fork", "loop-1", "--step", "994", "--id", "loop-2");
  expect(other.code).toBe(2);
  expect(other.stderr).toContain("START_CONFLICT");
  const labeled = await store.cli("fork", "agent-1", "--label", "plan 0", "--tag", "eu,late", "--json");
  const { id } = jsonLines(labeled.stdout)[0]!;
  expect(jsonLines((await store.cli("list", "--tag", "late", "--json")).stdout).map((run) => run["id"])).toEqual([id]);
});

test("fork of a workflow takes a command and answers; show and journal say what it shares", async () => {
  const made = await store.cli("fork", "plain-1", "--at", "Operation:0", "--id", "plain-2");
  expect([made.code, made.stdout.trimEnd()]).toEqual([0, "forked plain-2 from Operation(0) of plain-1"]);
  expect(await store.finish("plain-2")).toMatchObject({ status: "completed", output: 1 });
  const changed = [
    "fork",
    "plain-1",
    "--answer",
    "Operation(0)=[7]",
    "--effects",
    "recorded",
    "--model",
    "fast=strong",
    "--id",
    "plain-3",
    "--json",
  ];
  expect(jsonLines((await store.cli(...changed)).stdout)[0]).toMatchObject({
    id: "plain-3",
    answers: ["Operation(0)"],
    effects: "recorded",
    models: { fast: "strong" },
  });
  expect((await store.cli("fork", "plain-1", "--at", "Operation:0", "--model", "fast")).stderr).toContain(
    "fast=strong",
  );
  expect(await store.finish("plain-3")).toMatchObject({ status: "completed", output: [7] });
  const journal = await store.cli("journal", "plain-3");
  expect(journal.stdout).toMatch(/^shared with plain-1\n +1 .*RunStarted[^]*^entries of plain-3\n +1 .*RunStarted/m);
  const lines = jsonLines((await store.cli("journal", "plain-3", "--json")).stdout);
  expect(lines.map(({ run, seq, type }) => [run, seq, type])).toEqual([
    ["plain-1", 1, "RunStarted"],
    [undefined, 1, "RunStarted"],
    [undefined, 2, "OperationCompleted"],
    [undefined, 3, "RunCompleted"],
  ]);
  const cut = await store.cli("fork", "plain-1", "--call", "Hello", "--id", "plain-4");
  expect([cut.code, cut.stderr]).toEqual([2, expect.stringContaining("no call of Hello")]);
  expect((await store.cli("fork", "plain-1", "--at", "input", "--id", "plain-4")).stdout).toContain(
    "from input of plain-1",
  );
  expect((await store.cli("show", "plain-3")).stdout).toContain("as a fork of plain-1, at Operation(0)");
  expect(jsonLines((await store.cli("show", "plain-3", "--json")).stdout)[0]).toMatchObject({
    forked: {
      run: "plain-1",
      generation: 0,
      at: "Operation(0)",
      seq: 1,
      answers: ["Operation(0)"],
      effects: "recorded",
    },
  });
  const bad = await store.cli("fork", "plain-1", "--answer", "Operation(0)");
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining("a command and its answer as JSON")]);
  const missing = await store.cli("fork", "plain-1", "--at", "Task(4)");
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("has not requested Task(4)")]);
});

test("fork validates a patch before it writes, with --file by the channels", async () => {
  const fork = (...more: readonly string[]) => store.cli("fork", "loop-1", "--step", "3", "--id", "never", ...more);
  const stranger = await fork("--patch", '{"color":1}');
  expect([stranger.code, stranger.stderr]).toEqual([2, expect.stringContaining("its channels are: log, n")]);
  const shape = await fork("--patch", '{"log":"text"}');
  expect([shape.code, shape.stderr]).toEqual([
    2,
    expect.stringContaining("holds a list, got 'text'; pass the graph's file"),
  ]);
  const kind = await fork("--patch", '{"log":"text"}', "--file", GRAPHS);
  expect([kind.code, kind.stderr]).toEqual([2, expect.stringContaining("holds a list, got a value of type string.")]);
  expect(await store.statusOf("never")).toBeUndefined();
  writeFileSync(store.folder.file("patch.json"), '{"n":998}');
  const made = await fork("--patch-file", store.folder.file("patch.json"), "--file", GRAPHS);
  expect([made.code, made.stderr]).toEqual([0, ""]);
  expect((await store.finish("never")).output).toMatchObject({ n: 1_000 });
});

test("fork takes the command of a node as the journal prints it, with its attempt", async () => {
  const { code, stderr } = await store.cli("fork", "loop-1", "--answer", "Node(1.0)#0/Operation(9)=1");
  expect([code, stderr]).toEqual([2, expect.stringContaining("has not requested Node(1.0)/Operation(9)")]);
});

test("fork refuses contradictory options", async () => {
  const both = await store.cli("fork", "loop-1", "--step", "1", "--label", "x");
  expect([both.code, both.stderr]).toEqual([
    2,
    expect.stringContaining("fork of a graph needs either --step or --label, or --node or --call."),
  ]);
  const twice = await store.cli("fork", "loop-1", "--step", "1", "--patch", "{}", "--patch-file", "x.json");
  expect([twice.code, twice.stderr]).toEqual([
    2,
    expect.stringContaining("with --patch or with --patch-file, not both"),
  ]);
  const workflows = await store.cli("fork", "plain-1", "--step", "0");
  expect([workflows.code, workflows.stderr]).toEqual([2, expect.stringContaining("needs --at, --call or --answer")]);
  const late = await store.cli("fork", "loop-1", "--step", "5000");
  expect([late.code, late.stderr]).toEqual([
    2,
    expect.stringContaining("its newest is step 1000, and it is completed"),
  ]);
});

test("diff prints the first step where two runs differ and what differs, and exits with 1", async () => {
  const same = await store.cli("diff", "loop-1", "loop-1");
  expect([same.code, same.stdout]).toEqual([0, "same loop-1 and loop-1: all steps are equal\n"]);
  await store.cli("fork", "loop-1", "--step", "990", "--patch", '{"n":999}', "--id", "loop-3");
  await store.finish("loop-3");
  const differ = await store.cli("diff", "loop-1", "loop-3", "--limit", "2");
  expect(differ.code).toBe(1);
  expect(differ.stdout).toMatch(/^differ from step 990\n {2}- loop-1\n {2}\+ loop-3$/m);
  expect(differ.stdout).toMatch(/^step 990\n {2}- n: 990\n {2}\+ n: 999$/m);
  expect(differ.stdout).toMatch(/^ {2}- next: count\n {2}\+ next: end$/m);
  expect(differ.stdout).toContain("show them with a higher --limit");
  const json = jsonLines((await store.cli("diff", "loop-1", "loop-3", "--json")).stdout)[0]!;
  expect(json).toMatchObject({ same: false, firstDivergence: 990, more: false });
  expect(json["steps"]).toHaveLength(11);
  expect(json["steps"][10]).toMatchObject({ step: 1_000, in: "here", next: { here: [] } });
  await store.cli("fork", "loop-1", "--step", "998", "--patch", '{"log":["at 0","other"]}', "--id", "loop-4");
  await store.finish("loop-4");
  const lists = await store.cli("diff", "loop-1", "loop-4");
  expect(lists.stdout).toMatch(/^step 998\n {2}- log\[1…\]: \[ 'at 1'.*\n {2}\+ log\[1…\]: \[ 'other' \]$/m);
  const strangers = await store.cli("diff", "loop-1", "agent-1");
  expect([strangers.code, strangers.stderr]).toEqual([
    2,
    expect.stringContaining("run agent-1 of agent. Only runs of the same definition can be compared."),
  ]);
});

test("completion offers runs of graphs to checkpoints and fork, and every run to diff", async () => {
  const fits = async (...words: readonly string[]): Promise<string> =>
    (await cli(["complete", "--", ...words], { env: { REPRISE_STORE: store.url } })).stdout;
  for (const line of [["checkpoints"], ["diff"], ["diff", "loop-1"]]) {
    const offered = await fits(...line, "");
    expect(offered).toContain("loop-1\tloop, completed");
    expect(offered.includes("plain-1")).toBe(line[0] === "diff");
  }
  expect(await fits("fork", "")).toContain("plain-1\tplain, completed");
  expect(await fits("fork", "plain-1", "--at", "")).toContain("Operation:0");
  expect(await fits("fork", "plain-1", "--answer", "")).toContain("Operation:0=");
  expect(await fits("fork", "plain-1", "--effects", "")).toContain("recorded");
});
