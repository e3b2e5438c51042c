// reprise graph: diagrams of flows match the definition, whatever its names are.

import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { flow, typed } from "reprise";
import { describeFlow, type FlowDescription } from "reprise/describe";
import { dotOf } from "../../src/cli/dot.ts";
import { diagramOf, type Diagram } from "../../src/cli/diagram.ts";
import type { RunPicture } from "../../src/contract/index.ts";
import { pictureOfFlow } from "../../src/picture/index.ts";
import { mermaidOf } from "../../src/cli/mermaid.ts";
import { cli, ROOT } from "./cli-process.ts";
import * as flows from "./flows.ts";
import { readDot, readMermaid } from "./diagram-grammar.ts";

const FLOWS = join(ROOT, "test/cli/flows.ts");
const FORMATS = [
  ["mermaid", mermaidOf, readMermaid],
  ["dot", dotOf, readDot],
] as const;

function flowDiagramOf(described: FlowDescription, place: number): Diagram {
  return diagramOf({ title: described.name, kind: "flow", picture: pictureOfFlow(described) }, place);
}

describe.each(FORMATS)("%s", (_format, write, read) => {
  test("every name is unchanged, also names that have a meaning in the format", () => {
    const described = describeFlow(flows.odd);
    const picture = read(write([flowDiagramOf(described, 0)]));
    expect(picture.titles).toEqual([described.name]);
    const names = [...picture.boxes.values()].map(({ lines }) => lines[0]);
    expect(names).toEqual(["INPUT", ...described.nodes.map(({ id }) => id), "OUTPUT"]);
  });

  test("needs are arrows, those of a spread are thick; a branch points to its first nodes", () => {
    const picture = read(write([flowDiagramOf(describeFlow(flows.shop), 0)]));
    const nameOf = (id: string): string => picture.boxes.get(id)!.lines[0]!;
    const arrows = picture.arrows.map(({ from, to, label }) => [nameOf(from), nameOf(to), label]);
    expect(arrows).toEqual([
      ["INPUT", "rate", ""],
      ["INPUT", "prices", ""],
      ["prices", "taxed", "each of prices"],
      ["rate", "taxed", "each of prices"],
      ["taxed", "total", ""],
      ["total", "large?", ""],
      ["total", "approved", ""],
      ["large?", "approved", "then"],
      ["approved", "loud", ""],
      ["total", "waved", ""],
      ["large?", "waved", "otherwise"],
      ["waved", "calm", ""],
      ["loud", "both.mail", ""],
      ["calm", "both.mail", ""],
      ["loud", "both.log", ""],
      ["calm", "both.log", ""],
      ["both.mail", "both", ""],
      ["both.log", "both", ""],
      ["total", "doubled", ""],
      ["both", "asked", ""],
      ["doubled", "asked", ""],
      ["asked", "late", ""],
      ["both", "late", ""],
      ["late", "OUTPUT", ""],
      ["taxed", "OUTPUT", ""],
    ]);
    const linesOf = (name: string): readonly string[] =>
      [...picture.boxes.values()].find(({ lines }) => lines[0] === name)!.lines.slice(1);
    expect(linesOf("rate")).toEqual(["up to 3 attempts", "timeout 5 s"]);
    expect(linesOf("taxed")).toEqual(["once per item", "5 at once", "collects failures", "queue tax"]);
    expect(linesOf("large?")).toEqual(["isLarge"]);
    expect(linesOf("approved")).toEqual(["catches"]);
    expect(linesOf("doubled")).toEqual(["calls task double", "up to 2 attempts"]);
    expect(linesOf("asked")).toEqual(["calls workflow sub"]);
    expect(new Set([...picture.boxes.values()].map(({ shape }) => shape)).size).toBeGreaterThanOrEqual(4);
  });

  test("a run marks the boxes of the definition", () => {
    const described = describeFlow(flows.shop);
    const { nodes, edges } = pictureOfFlow(described);
    const said: Readonly<Record<string, Partial<RunPicture["nodes"][number]>>> = {
      rate: { state: "completed", runs: 1 },
      taxed: { state: "running", text: "3 of 9, 1 failed, 5 queued" },
      waved: { state: "skipped", text: "skipped" },
      late: { state: "pending", text: "waiting, 1 of 2 inputs" },
      asked: { state: "failed", text: "failed" },
    };
    const run: RunPicture = {
      ...{ id: "s-1", definition: "shop", version: 1, kind: "flow", status: "running", started: true, ended: false },
      nodes: nodes.map((node) => ({ ...node, state: "idle", runs: 0, active: 0, attempts: 1, ...said[node.id] })),
      edges: edges.map((edge) => ({ ...edge, taken: 0, live: false })),
    };
    const title = "shop: s-1, running";
    const plain = read(write([flowDiagramOf(described, 0)]));
    const picture = read(write([diagramOf({ title, kind: "flow", picture: run }, 0)]));
    expect(picture.titles).toEqual([title]);
    expect(picture.arrows).toEqual(plain.arrows);
    const idOf = (name: string): string => [...picture.boxes].find(([, { lines }]) => lines[0] === name)![0];
    expect(picture.boxes.get(idOf("taxed"))!.lines.at(-1)).toBe("3 of 9, 1 failed, 5 queued");
    const marked = [...picture.marks.values()].map((ids) => ids.map((id) => picture.boxes.get(id)!.lines[0]));
    expect(new Set(marked.map((names) => names.join()))).toEqual(
      new Set(["INPUT,rate", "taxed", "waved", "late", "asked"]),
    );
  });
});

test("a description is plain data and runs no code of the flow", () => {
  const refuse = (): never => {
    throw new Error("was run");
  };
  const made = flow("quiet", { input: typed<number>(), version: 3, deadline: "1 s" })
    .inline("a", ["input"], refuse)
    .when("b", ["a"], refuse, (branch) => branch.action("c", ["a"], { retry: { maxAttempts: 2 } }, refuse))
    .spread(
      "d",
      ["a"],
      { concurrency: 4 },
      function () {
        return refuse();
      },
      refuse,
    )
    .output(["c", "d"], refuse);
  const described = describeFlow(made);
  expect(JSON.parse(JSON.stringify(described))).toEqual(described);
  const plain = {
    branch: null,
    calls: null,
    by: null,
    maxAttempts: 1,
    timeoutMs: null,
    concurrency: null,
    settle: false,
    catches: false,
    queue: null,
    label: null,
  };
  expect(described).toEqual({
    name: "quiet",
    version: 3,
    deadlineMs: 1_000,
    label: null,
    nodes: [
      { ...plain, id: "a", name: "a", kind: "inline", needs: ["input"] },
      { ...plain, id: "b?", name: "b", kind: "when", needs: ["a"], by: "refuse" },
      {
        ...plain,
        id: "c",
        name: "c",
        kind: "action",
        needs: ["a"],
        branch: { when: "b", side: true },
        maxAttempts: 2,
      },
      { ...plain, id: "d", name: "d", kind: "spread", needs: ["a"], concurrency: 4 },
    ],
    edges: [
      { from: null, to: "a", kind: "value", side: null },
      { from: "a", to: "b?", kind: "value", side: null },
      { from: "a", to: "c", kind: "value", side: null },
      { from: "b?", to: "c", kind: "branch", side: true },
      { from: "a", to: "d", kind: "value", side: null },
      { from: "c", to: null, kind: "value", side: null },
      { from: "d", to: null, kind: "value", side: null },
    ],
  });
});

test("the command draws all flows of a file, one flow, or JSON", async () => {
  const all = await cli(["graph", FLOWS, "--format", "dot"]);
  expect([all.code, all.stderr]).toEqual([0, ""]);
  expect(readDot(all.stdout).titles).toHaveLength(6);
  const { stdout } = await cli(["graph", FLOWS, "shop", "--json"]);
  expect(JSON.parse(stdout)).toEqual({ graphs: [], flows: [describeFlow(flows.shop)], run: null });
  expect((await cli(["graph", FLOWS, "nothing"])).stderr).toContain(
    "exports no graph or flow named nothing. It exports: broken, failing, ",
  );
});
