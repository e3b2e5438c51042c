// Runs of graphs: list, show, journal and graph --run on a store with runs of every kind.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine, RepriseError } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { readGraphRun, type GraphRun } from "../../src/explain/graph-run.ts";
import { currentStepLines } from "../../src/cli/graph-view.ts";
import { stepRangeOf } from "../../src/cli/show-graph.ts";
import type { RunRecord, Store } from "../../src/kernel/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { command as cli, finished, jsonLines, ROOT, waitForOutput, startCli, type Finished } from "./cli-process.ts";
import { charge, pay } from "./definitions.ts";
import { agent, failing, loop, odd, sub, waits } from "./graphs.ts";
import { readMermaid } from "./diagram-grammar.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const GRAPHS = join(ROOT, "test/cli/graphs.ts");
const ALL = [agent, failing, loop, odd, sub, waits, pay, charge];
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

const store = new StoreWithRuns(ALL);
beforeAll(() =>
  store.start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "agent-1", what: agent, input: { questions: ["why"] }, tags: ["eu"], until: "waiting" },
    { id: "failing-1", what: failing, input: {}, until: "failed" },
    { id: "waits-1", what: waits, input: {}, until: "waiting" },
    { id: "loop-1", what: loop, input: {}, until: "completed" },
  ),
);
afterAll(() => store[Symbol.dispose]());
const on = (...args: readonly string[]): Promise<Finished> => store.cli(...args);

describe("list", () => {
  test("shows the kind of each run, and one kind with --kind", async () => {
    const { stdout } = await on("list");
    expect(stdout).toMatch(/^RUN +DEFINITION +KIND +STATUS/);
    expect(stdout).toMatch(/^agent-1 +agent +graph +waiting/m);
    expect(stdout).toMatch(/^pay-1 +pay +workflow +completed/m);
    const ids = async (...args: readonly string[]): Promise<string[]> =>
      jsonLines((await on("list", "--json", ...args)).stdout).map(({ id }) => id as string);
    expect(await ids("--kind", "graph")).toEqual(["loop-1", "waits-1", "failing-1", "agent-1"]);
    expect(await ids("--kind", "graph", "--tag", "eu")).toEqual(["agent-1"]);
    expect(await ids("--kind", "workflow")).toContain("pay-1");
    expect((await on("list", "--kind", "tree")).stderr).toContain("Allowed choices are workflow, graph, flow");
  });
});

describe("show", () => {
  test("prints a row per step with nodes, attempts, changes, label and key; then what the run waits for", async () => {
    const { code, stdout, stderr } = await on("show", "agent-1");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).not.toMatch(CONTROL);
    const rows = stdout.split("\n").filter((line) => /^ +\d/.test(line));
    expect(rows.map((row) => row.trim().split(/ {2,}/).slice(2, -1))).toEqual([
      ["input", "draft, found, ok, questions", "16"],
      ["plan", "questions", "20", "plan 1"],
      ["search ×3 (2 attempts)", "found +3", "38"],
      ["facts, read", "found +2", "19"],
      ["write", "draft", "10"],
    ]);
    expect(rows.every((row) => / [0-9a-f]{8}$/.test(row))).toBe(true);
    expect(stdout).toContain(`    next: reprise resolve agent-1 approval '<value as JSON>' --store ${store.url}\n`);
    expect(stdout).toMatch(
      /step 5\n {2}waiting: review\n\nnow\n {2}Node review 5\.0 has waited .* for promise approval, showing \{ draft: '5 things' \}\.\s+Node\(5\.0\)#0\/Promise\(0\)\n/,
    );
  });

  test("names the child that a node waits for, and when a wait times out", async () => {
    const { stdout } = await on("show", "waits-1");
    const text = stdout.replace(/\s+/g, " ");
    expect(text).toMatch(
      /Node asks 1\.0 has waited \S+ m?s for child sub, run [0-9a-f]{32}, waiting: it has waited \S+ m?s for promise go\. Node\(1\.0\)#0\/ChildWorkflow\(0\)/,
    );
    expect(text).toMatch(/Node idles 1\.1 has waited \S+ m?s for promise never, times out in (1 d|23 h.*)\. Node/);
  });

  test("names the failed node, its attempt and the states of the other nodes", async () => {
    const { code, stdout } = await on("show", "failing-1");
    expect(code).toBe(0);
    expect(stdout).toContain(
      "step 2\n  bad 2.1 failed, attempt 2: FatalError: the index is gone\\u0007\n  completed: good\n",
    );
    expect(stdout).toContain("failed FATAL: FatalError: the index is gone\\u0007");
  });

  test("counts the nodes that the engine stopped, and does not report them as failed", () => {
    const node = { state: "failed", attempt: 1, dueAt: undefined, waits: [] } as const;
    const stopped = new RepriseError("NODE_STOPPED", "another one failed");
    const graph: GraphRun = {
      last: 1,
      steps: [],
      current: [
        { ...node, command: "Node(2.0)", node: "map", error: stopped },
        { ...node, command: "Node(2.1)", node: "map", error: new Error("404") },
        { ...node, command: "Node(2.2)", node: "map", error: stopped },
      ],
      joins: [],
      since: [],
      forked: undefined,
    };
    const lines = currentStepLines({ status: "failed" } as RunRecord, graph, (_how, text) => text);
    expect(lines).toEqual(["step 2", "  map 2.1 failed: Error: 404", "  stopped: map ×2"]);
  });

  test("prints the last steps of a long run, and others with --steps", async () => {
    const stepsOf = ({ stdout }: Finished): number[] =>
      Array.from(stdout.matchAll(/^ *(\d+) .* [0-9a-f]{8}$/gm), (match) => Number(match[1]));
    const tail = await on("show", "loop-1");
    expect(stepsOf(tail)).toEqual(Array.from({ length: 20 }, (_, index) => 981 + index));
    expect(tail.stdout).toContain("… 981 steps earlier; show with --steps 0..980\n");
    expect(tail.stdout).toMatch(/● completed +→ \{ log: \[/);
    const middle = await on("show", "loop-1", "--steps", "10..12");
    expect(stepsOf(middle)).toEqual([10, 11, 12]);
    expect(middle.stdout).toContain("… 988 steps later; show with --steps 13..1000\n");
    expect(stepsOf(await on("show", "loop-1", "--steps", "..2"))).toEqual([0, 1, 2]);
    expect((await on("show", "loop-1", "--steps", "2000..")).stdout).toContain(
      "there is no step 2000; the last committed step is 1000",
    );
  });

  test("a range is a step, two steps, or open at one end; anything else is refused", async () => {
    expect(stepRangeOf("7")).toEqual({ from: 7, to: 7 });
    expect(stepRangeOf("3..5")).toEqual({ from: 3, to: 5 });
    expect(stepRangeOf("..5")).toEqual({ from: 0, to: 5 });
    expect(stepRangeOf("5..")).toMatchObject({ from: 5 });
    for (const range of ["", "..", "5..2", "a", "1-3", "1.5", "1...3", "99999999999999999999"])
      expect(() => stepRangeOf(range), range).toThrow("is not a step or a range");
    expect((await on("show", "loop-1", "--steps", "5..2")).code).toBe(2);
  });

  test("refuses --steps for a run of a workflow", async () => {
    expect((await on("show", "pay-1", "--steps", "1")).stderr).toContain("run pay-1 is a run of the workflow pay");
  });

  test("reads little more than the steps it prints", async () => {
    const machine = { clock: systemClock, timers: systemTimers, random: systemRandom };
    const real = await openSqliteStore({ ...machine, path: store.url.slice("sqlite:".length) });
    let read = 0;
    const counting = new Proxy(real, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (key === "readJournal")
          return async (...args: Parameters<Store["readJournal"]>) => {
            const entries = await target.readJournal(...args);
            read += entries.length;
            return entries;
          };
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    try {
      const record = (await real.findRun("loop-1"))!;
      const { steps, last } = await readGraphRun(counting, record, { from: 500, to: 519 });
      expect([steps.length, last, record.head]).toEqual([20, 1_000, 2_003]);
      // Two entries per step, the previous checkpoint, the last one, and the entries since.
      expect(read).toBeLessThan(50);
    } finally {
      await real.close();
    }
  });

  test("--timeline prints every entry of the steps, with the place of nodes", async () => {
    const { stdout } = await on("show", "agent-1", "--timeline", "--steps", "1..2");
    expect(stdout).not.toContain("step 0 ");
    expect(stdout).toMatch(/● plan +node 1\.0, took .* → \{ questions: \[ 'why', 'who', 'what' \] \}, label plan 1\n/);
    expect(stdout).toMatch(/· step 1 +questions \(20 bytes\), label plan 1, next search ×3\n/);
    expect(stdout).toMatch(/· search +node 2\.2, attempt 1 failed, retry in 1 ms\n +└ Error: no answer/);
    expect(stdout).toMatch(/● 2\.0\/look up +operation.* → 'about why'\n/);
    expect(stdout).toMatch(/● search +node 2\.2, took .*, attempt 2 → /);
  });

  test("--json has the same data", async () => {
    const [run] = jsonLines((await on("show", "agent-1", "--json", "--steps", "1..2")).stdout);
    expect(run).toMatchObject({ id: "agent-1", kind: "graph", input: { questions: ["why"] }, output: null });
    expect(run!["graph"]).toEqual({
      step: 4,
      steps: [
        {
          step: 1,
          seq: expect.any(Number),
          at: expect.stringMatching(/Z$/),
          tookMs: expect.any(Number),
          key: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
          label: "plan 1",
          nodes: [{ node: "plan", count: 1, attempts: 1 }],
          changed: [{ channel: "questions", how: "set", count: 1, bytes: 20 }],
          next: [{ node: "search", count: 3, attempts: 1 }],
          bytes: 20,
        },
        expect.objectContaining({ step: 2, label: null, nodes: [{ node: "search", count: 3, attempts: 2 }] }),
      ],
      nodes: [
        {
          command: "Node(5.0)",
          node: "review",
          state: "waiting",
          attempt: 1,
          error: null,
          dueAt: null,
          waitsFor: ["Node(5.0)#0/Promise(0)"],
        },
      ],
      joins: [],
      forked: null,
    });
    const [failed] = jsonLines((await on("show", "failing-1", "--json")).stdout);
    expect(failed!["graph"].nodes).toMatchObject([
      { node: "good", state: "completed" },
      { node: "bad", state: "failed", attempt: 2, error: { $: "error", v: { message: "the index is gone\u0007" } } },
    ]);
    const [workflow] = jsonLines((await on("show", "pay-1", "--json")).stdout);
    expect(workflow!["graph"]).toBeNull();
  });

  test("--watch follows a graph until its promise is resolved", async () => {
    using own = await new StoreWithRuns(ALL).start({ id: "agent-2", what: agent, input: {}, until: "waiting" });
    const child = startCli(["show", "agent-2", "--watch", "--store", own.url]);
    const ended = finished(child);
    await waitForOutput(child, "○ 5.0/approval");
    expect((await own.cli("resolve", "agent-2", "approval", '{"ok":true}')).code).toBe(0);
    expect(await own.finish("agent-2")).toMatchObject({ status: "completed", output: { ok: true } });
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/● review +node 5\.0, took .* → \{ ok: true \}, goto publish\n/);
    expect(stdout).toMatch(/\nagent-2 {2}agent v1 {2}completed in .*\n$/);
    const last = jsonLines((await own.cli("show", "agent-2", "--watch", "--json")).stdout).at(-1);
    expect(last).toMatchObject({ run: { output: { ok: true }, graph: { step: 6, nodes: [] } } });
  });
});

describe("journal", () => {
  test("prints steps without paths and order keys, which --json has", async () => {
    const { stdout } = await on("journal", "agent-1");
    expect(stdout).toMatch(
      /StepCommitted +\{ step: 1, label: 'plan 1', delta: \{ set: .* \}, frontier: \[ 'search ×3' \], key: 'sha256:[0-9a-f]{8}…' \}\n/,
    );
    expect(stdout).toMatch(/OperationCompleted +Node\(2\.0\)#0\/Operation\(0\) +\{ operationName: 'look up', /);
    expect(stdout).not.toContain("orderKey");
    const entries = jsonLines((await on("journal", "agent-1", "--json")).stdout);
    const step = entries.find(({ type, data }) => type === "StepCommitted" && data.step === 1)!;
    expect(step["data"].frontier[0]).toMatchObject({ node: "search", orderKey: expect.any(String) });
  });
});

describe("graph --run", () => {
  test("marks what the run did", async () => {
    const { code, stdout, stderr } = await on("graph", GRAPHS, "--run", "agent-1");
    expect([code, stderr]).toEqual([0, ""]);
    const { titles, boxes, marks } = readMermaid(stdout);
    expect(titles).toEqual(["agent: agent-1, waiting after step 4"]);
    const named = new Map([...boxes].map(([id, { lines }]) => [id, lines]));
    const marked = (mark: string): string[] => (marks.get(mark) ?? []).map((id) => named.get(id)![0]!);
    expect(marked("done")).toEqual(["START", "plan", "search ×3", "facts", "read", "write"]);
    expect(marked("now")).toEqual(["review"]);
    const failed = readMermaid((await on("graph", GRAPHS, "--run", "failing-1")).stdout);
    expect((failed.marks.get("failed") ?? []).map((id) => failed.boxes.get(id)!.lines)).toEqual([["bad", "failed"]]);
  });

  test("names the children that nodes started", async () => {
    const [drawn] = jsonLines((await on("graph", GRAPHS, "--run", "waits-1", "--json")).stdout);
    const asks = drawn!["run"].nodes.find(({ id }: { id: string }) => id === "asks");
    expect(asks).toMatchObject({ state: "waiting", children: ["sub"] });
  });

  test("adds the goto targets and marks the end", async () => {
    using own = await new StoreWithRuns(ALL).start({ id: "agent-2", what: agent, input: {}, until: "waiting" });
    await own.cli("resolve", "agent-2", "approval", '{"ok":true}');
    await own.finish("agent-2");
    const [drawn] = jsonLines((await own.cli("graph", GRAPHS, "--run", "agent-2", "--json")).stdout);
    const { nodes, edges, ...run } = drawn!["run"];
    expect(run).toMatchObject({ id: "agent-2", status: "completed", started: true, ended: true, step: 6 });
    expect(
      nodes.filter(({ active, state }: { active: number; state: string }) => active > 0 || state === "failed"),
    ).toEqual([]);
    expect(nodes).toContainEqual(expect.objectContaining({ id: "publish", state: "completed", runs: 1, step: 6 }));
    expect(edges.at(-1)).toEqual({ from: "review", to: "publish", kind: "goto", label: "goto", taken: 1, live: false });
    const { arrows } = readMermaid((await own.cli("graph", GRAPHS, "--run", "agent-2")).stdout);
    expect(arrows.filter(({ style }) => style === "-.->")).toEqual([
      { from: "g0n5", to: "g0n6", label: "goto", style: "-.->" },
    ]);
  });

  test("refuses runs of workflows and of other graphs", async () => {
    expect((await on("graph", GRAPHS, "--run", "pay-1")).stderr).toContain(
      "Only runs of graphs and flows can be drawn",
    );
    expect((await on("graph", GRAPHS, "loop", "--run", "agent-1")).stderr).toContain(
      "is a run of the graph agent, not of loop",
    );
    expect((await on("graph", GRAPHS, "--run", "unknown")).stderr).toContain("RUN_NOT_FOUND");
  });
});

test("show prints when a node is retried, and why", async () => {
  const { graph, START, last } = await import("reprise");
  const slow = graph("slow", { state: { n: last(0) } })
    .node("tries", { retry: { maxAttempts: 3, baseDelay: "1 hour" } }, async () => {
      throw new Error("not now");
    })
    .edge(START, "tries");
  using own = new StoreWithRuns([slow]);
  {
    await using engine = await createEngine({ store: own.url, definitions: [slow], logger: SILENT });
    const run = await engine.start(slow, {}, { id: "slow-1" });
    while ((await run.info()).entries < 3) await new Promise((resolve) => setImmediate(resolve));
  }
  const { stdout } = await own.cli("show", "slow-1");
  expect(stdout).toMatch(/step 1\n {2}retrying: tries\n/);
  expect(stdout.replace(/\s+/g, " ")).toMatch(
    /Attempt 2 of node tries starts in (1 h|59 m .*), at \S+Z; attempt 1 failed: Error: not now\. Node\(1\.0\)/,
  );
});

test("show prints the origin of a fork and its own steps", async () => {
  using own = await new StoreWithRuns(ALL).start({ id: "agent-2", what: agent, input: {}, until: "waiting" });
  {
    await using engine = await createEngine({ store: own.url, definitions: ALL, logger: SILENT });
    await engine.get(agent, "agent-2").fork({ step: 3, id: "fork-1", patch: { found: ["patched"] } });
  }
  const { stdout } = await own.cli("show", "fork-1");
  expect(stdout).toMatch(/^ +3 .* fork of agent-2 +draft, found, ok, questions +\d+ +[0-9a-f]{8}$/m);
  expect(stdout).not.toContain("steps earlier");
  const timeline = await own.cli("show", "fork-1", "--timeline");
  expect(timeline.stdout).toMatch(/· started +as a fork of agent-2, from step 3\n/);
  const [run] = jsonLines((await own.cli("show", "fork-1", "--json")).stdout);
  expect(run!["graph"]).toMatchObject({ forked: { run: "agent-2", step: 3 } });
});

test("after a retry the failed nodes are pending and the completed ones are not", async () => {
  using own = await new StoreWithRuns(ALL).start({ id: "failing-2", what: failing, input: {}, until: "failed" });
  expect((await own.cli("retry", "failing-2")).code).toBe(0);
  const { stdout } = await own.cli("show", "failing-2");
  expect(stdout).toMatch(/· retried +step 2 again\n/);
  expect(stdout).toContain("step 2\n  completed: good\n  pending: bad\n");
  expect(stdout).not.toContain("failed, attempt");
});

test("completion offers graphs, their runs and option values", async () => {
  const fits = async (...words: readonly string[]): Promise<string[]> =>
    (await cli(["complete", "--", "--store", store.url, ...words])).stdout
      .split("\n")
      .flatMap((line) => line.split("\t")[0] || []);
  expect(await fits("graph", GRAPHS, "")).toEqual(["loop", "waits", "failing", "agent"]);
  expect(await fits("graph", GRAPHS, "--run", "")).toEqual(["loop-1", "waits-1", "failing-1", "agent-1"]);
  expect(await fits("graph", GRAPHS, "--format", "")).toEqual(["mermaid", "dot", "json"]);
  expect(await fits("checkpoints", "")).toEqual(["loop-1", "waits-1", "failing-1", "agent-1"]);
  expect(await fits("diff", "loop-1", "ag")).toEqual(["agent-1"]);
  expect(await fits("list", "--kind", "g")).toEqual(["graph"]);
  expect(await fits("resolve", "agent-1", "")).toEqual(["approval"]);
});
