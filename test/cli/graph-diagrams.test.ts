// reprise graph: diagrams match the definition, whatever its names are.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { graph, last, START } from "reprise";
import { describeGraph, type GraphDescription } from "reprise/describe";
import { command as cli, DEFINITIONS, ROOT, TemporaryFolder } from "./cli-process.ts";
import * as graphs from "./graphs.ts";
import { dotOf } from "../../src/cli/dot.ts";
import { mermaidOf } from "../../src/cli/mermaid.ts";
import { diagramOf, type Diagram } from "../../src/cli/diagram.ts";
import { pictureOfGraph } from "../../src/picture/index.ts";
import type { RunPicture } from "../../src/contract/index.ts";
import { readDot, readMermaid } from "./diagram-grammar.ts";

const GRAPHS = join(ROOT, "test/cli/graphs.ts");
const FORMATS = [
  ["mermaid", mermaidOf, readMermaid],
  ["dot", dotOf, readDot],
] as const;

function graphDiagramOf(described: GraphDescription, place: number): Diagram {
  return diagramOf({ title: described.name, kind: "graph", picture: pictureOfGraph(described) }, place);
}

describe.each(FORMATS)("%s", (_format, write, read) => {
  test("every name is unchanged, also names that have a meaning in the format", () => {
    const described = describeGraph(graphs.odd);
    const picture = read(write([graphDiagramOf(described, 0)]));
    expect(picture.titles).toEqual([described.name]);
    const names = [...picture.boxes.values()].map(({ lines }) => lines[0]);
    expect(names).toEqual(["START", ...described.nodes.map(({ name }) => name), "END"]);
  });

  test("any other text is unchanged, as a name and as a condition", () => {
    const text = fc
      .string({
        unit: fc.oneof(fc.constantFrom(...'"#&<>%{}[]()|;:\\`*_~$-+.1 ='), fc.string({ unit: "binary", maxLength: 1 })),
        minLength: 1,
        maxLength: 12,
      })
      .filter((one) => one !== "" && !/\p{Cc}/u.test(one) && one.isWellFormed());
    fc.assert(
      fc.property(text, text, (name, by) => {
        const node = { name, takesItems: false, waitsFor: [], hasEdges: true };
        const edge = { from: name, to: null, kind: "conditional" as const, index: 0, by, joins: false };
        const described = { name, version: 1, channels: [], maxSteps: 1, nodes: [node], edges: [edge] };
        const picture = read(write([graphDiagramOf(described, 0)]));
        expect([picture.titles, picture.boxes.get("g0n0")?.lines]).toEqual([[name], [name]]);
        expect(picture.arrows[0]?.label).toBe(`if ${by}`);
      }),
      { numRuns: 500 },
    );
  });

  test("edges, spreads, joins and conditions in the order of evaluation are drawn", () => {
    const picture = read(write([graphDiagramOf(describeGraph(graphs.agent), 0)]));
    const nameOf = (id: string): string => picture.boxes.get(id)!.lines[0]!;
    expect(picture.arrows.map(({ from, to, label }) => [nameOf(from), nameOf(to), label])).toEqual([
      ["START", "plan", ""],
      ["plan", "search", "each of state.questions"],
      ["search", "facts", ""],
      ["search", "read", ""],
      ["facts", "write", ""],
      ["read", "write", ""],
      ["write", "review", "if isEnough"],
      ["write", "plan", "else if state.found.length < 2"],
      ["write", "END", "else"],
    ]);
    const boxes = [...picture.boxes.values()];
    expect(boxes.find(({ lines }) => lines[0] === "write")?.lines[1]).toBe("waits for all");
    expect(boxes.find(({ lines }) => lines[0] === "search")?.lines[1]).toBe("once per item");
    expect(boxes.find(({ lines }) => lines[0] === "review")?.lines[1]).toBe("ends, or goto");
    expect(new Set(boxes.map(({ shape }) => shape)).size).toBe(4);
  });

  test("all graphs of a file are one diagram, each in its own frame", () => {
    const all = [graphs.agent, graphs.odd, graphs.loop].map((one, place) => graphDiagramOf(describeGraph(one), place));
    const picture = read(write(all));
    expect(picture.titles).toEqual([graphs.agent.name, graphs.odd.name, graphs.loop.name]);
    expect(picture.boxes.size).toBe(all.reduce((sum, { boxes }) => sum + boxes.length, 0));
  });

  test("a run marks the boxes of the definition", () => {
    const { nodes, edges } = pictureOfGraph(describeGraph(graphs.agent));
    const said: Readonly<Record<string, Partial<RunPicture["nodes"][number]>>> = {
      plan: { state: "completed", runs: 2 },
      review: { state: "running", text: "running", active: 1 },
      facts: { state: "failed", text: "failed" },
      write: { state: "pending", text: "has read" },
      read: { children: ["sub", "other"] },
    };
    const goto = { from: "review", to: "plan", kind: "goto" as const, label: "goto", taken: 3, live: false };
    const run: RunPicture = {
      ...{ id: "a-1", definition: "agent", version: 1, kind: "graph", status: "waiting", started: true, ended: false },
      nodes: nodes.map((node) => ({ ...node, state: "idle", runs: 0, active: 0, attempts: 1, ...said[node.id] })),
      edges: [...edges.map((edge) => ({ ...edge, taken: 0, live: false })), goto],
    };
    const title = "agent: a-1, waiting after step 5";
    const picture = read(write([diagramOf({ title, kind: "graph", picture: run }, 0)]));
    expect(picture.titles).toEqual([title]);
    const linesOf = (name: string): readonly string[] | undefined =>
      [...picture.boxes.values()].find(({ lines }) => lines[0]?.startsWith(name))?.lines;
    expect(linesOf("plan")).toEqual(["plan ×2"]);
    expect(linesOf("review")).toEqual(["review", "ends, or goto", "running"]);
    expect(linesOf("read")).toEqual(["read", "child sub", "child other"]);
    expect(linesOf("facts")).toEqual(["facts", "failed"]);
    expect(linesOf("write")).toEqual(["write", "waits for all", "has read"]);
    expect(picture.arrows.at(-1)).toMatchObject({ label: "goto ×3" });
    expect([...picture.marks.values()].flat()).toEqual(expect.arrayContaining(["g0n0", "g0n2", "g0n4", "g0n5"]));
  });
});

test("a description is plain data and runs no code of the graph", () => {
  const refuse = (): never => {
    throw new Error("was run");
  };
  const made = graph("quiet", { state: { n: last(0) } })
    .node("a", refuse)
    .node("b", async (_ctx, _state, _item: number) => {})
    .edge(START, "a", refuse)
    .spread("a", "b", function () {
      return refuse();
    });
  const described = describeGraph(made);
  expect(JSON.parse(JSON.stringify(described))).toEqual(described);
  expect(described.edges).toEqual([
    { from: null, to: "a", kind: "conditional", index: 0, by: "refuse", joins: false },
    { from: "a", to: "b", kind: "spread", index: 0, by: null, joins: false },
  ]);
  expect(described.nodes).toEqual([
    { name: "a", takesItems: false, waitsFor: [], hasEdges: true },
    { name: "b", takesItems: true, waitsFor: [], hasEdges: false },
  ]);
});

describe("the command", () => {
  test("writes Mermaid to standard output, and DOT or JSON on request", async () => {
    const mermaid = await cli(["graph", GRAPHS, "agent"]);
    expect([mermaid.code, mermaid.stderr]).toEqual([0, ""]);
    expect(readMermaid(mermaid.stdout).titles).toEqual(["agent"]);
    expect(readDot((await cli(["graph", GRAPHS, "--format", "dot"])).stdout).titles).toHaveLength(6);
    for (const args of [["--json"], ["--format", "json"]]) {
      const { stdout } = await cli(["graph", GRAPHS, "agent", ...args]);
      expect(JSON.parse(stdout)).toEqual({ graphs: [describeGraph(graphs.agent)], flows: [], run: null });
    }
  });

  test("writes to a new file and overwrites none", async () => {
    using folder = new TemporaryFolder();
    const out = folder.file("agent.mmd");
    expect(await cli(["graph", GRAPHS, "agent", "--out", out])).toMatchObject({ code: 0, stdout: "" });
    expect(readMermaid(readFileSync(out, "utf8")).titles).toEqual(["agent"]);
    const again = await cli(["graph", GRAPHS, "loop", "--out", out]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("already exists")]);
    expect(readMermaid(readFileSync(out, "utf8")).titles).toEqual(["agent"]);
    const nowhere = folder.file("no/such/folder");
    expect((await cli(["graph", GRAPHS, "--out", nowhere])).stderr).toContain("cannot be written");
    expect(existsSync(nowhere)).toBe(false);
  });

  test.each([
    [["graph", GRAPHS, "nothing"], "exports no graph or flow named nothing. It exports: agent"],
    [["graph", DEFINITIONS], "exports no graph or flow."],
    [["graph", "nowhere.ts"], "There is no file"],
    [["graph", GRAPHS, "--format", "svg"], "Allowed choices are mermaid, dot, json"],
    [["graph", GRAPHS, "--format", "dot", "--json"], "--json cannot be combined with --format dot"],
    [["graph", GRAPHS, "--generation", "1"], "--generation needs --run"],
  ])("refuses %j", async (args, words) => {
    const { code, stdout, stderr } = await cli(args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(words);
  });
});
