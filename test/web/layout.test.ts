// The drawing of graphs and flows: every node and edge is placed once, inside the drawing, and the same picture gives the same drawing.

import fc from "fast-check";
import { expect, test } from "vitest";
import { layoutPicture, type Picture, type PlacedNode } from "../../web/src/graph/layout.ts";

const AGENT: Picture = {
  nodes: ["triage", "think", "search_kb", "lookup_order", "refund", "reply"].map((name) => ({
    id: name,
    name,
  })),
  edges: [
    { to: "triage" },
    { from: "triage", to: "think" },
    { from: "think", to: "search_kb" },
    { from: "search_kb", to: "think" },
    { from: "think", to: "lookup_order" },
    { from: "lookup_order", to: "think" },
    { from: "think", to: "refund" },
    { from: "refund", to: "think" },
    { from: "think", to: "reply", label: "if answer" },
    { from: "reply" },
  ],
};

function overlap(a: PlacedNode, b: PlacedNode): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

test("an agent is drawn from left to right without overlaps, and the same picture gives the same drawing", () => {
  const { nodes, edges, ends, width, height } = layoutPicture(AGENT);
  expect(nodes.map(({ id }) => id)).toEqual(AGENT.nodes.map(({ id }) => id));
  expect(edges).toHaveLength(AGENT.edges.length);
  expect(ends.map(({ kind }) => kind)).toEqual(["start", "end"]);
  for (const [index, node] of nodes.entries())
    for (const other of nodes.slice(index + 1)) expect(overlap(node, other), `${node.id} ${other.id}`).toBe(false);
  const x = (id: string): number => nodes.find((node) => node.id === id)!.x;
  expect(x("triage")).toBeLessThan(x("think"));
  expect(x("think")).toBeLessThan(x("reply"));
  expect(width).toBeGreaterThan(height);
  expect(layoutPicture(AGENT)).toEqual({ nodes, edges, ends, width, height });
});

test("on a phone the same graph is drawn from top to bottom", () => {
  const { nodes, width, height } = layoutPicture(AGENT, "down");
  const y = (id: string): number => nodes.find((node) => node.id === id)!.y;
  expect(y("triage")).toBeLessThan(y("think"));
  expect(y("think")).toBeLessThan(y("reply"));
  expect(height).toBeGreaterThan(0);
  expect(width).toBeGreaterThan(0);
});

test("a picture without nodes has a size, and an edge to an unknown node is left out", () => {
  expect(layoutPicture({ nodes: [], edges: [] })).toMatchObject({ nodes: [], edges: [], ends: [] });
  const one: Picture = {
    nodes: [{ id: "a", name: "a" }],
    edges: [
      { from: "a", to: "a" },
      { from: "a", to: "gone" },
    ],
  };
  const { edges, width } = layoutPicture(one);
  expect(edges).toHaveLength(1);
  expect(width).toBeGreaterThan(100);
});

test("edges from a node to itself are arcs beside it, one around the other, and other nodes stay out of their room", () => {
  const loop = { from: "a", to: "a", label: "again" };
  const picture: Picture = {
    nodes: ["a", "b"].map((id) => ({ id, name: id })),
    edges: [{ to: "a" }, { to: "b" }, loop, { from: "a" }, loop],
  };
  for (const direction of ["right", "down"] as const) {
    const { nodes, edges, width, height } = layoutPicture(picture, direction);
    const [a, b] = nodes as [PlacedNode, PlacedNode];
    // The room of loops is free on one side only.
    expect(direction === "right" ? Math.min(a.y, b.y) : Math.min(a.x, b.x)).toBeLessThan(40);
    const far = direction === "right" ? a.y + a.height : a.x + a.width;
    const depths = [edges[2]!, edges[4]!].map(({ middle }) => (direction === "right" ? middle.y : middle.x) - far);
    expect(depths[0]).toBeGreaterThan(10);
    expect(depths[1]).toBeGreaterThan(depths[0]! + 10);
    for (const edge of [edges[2]!, edges[4]!]) {
      const numbers = edge.path.match(/-?[\d.]+/g)!.map(Number);
      // It begins and ends on the side of its node.
      expect(direction === "right" ? [numbers[1], numbers.at(-1)] : [numbers[0], numbers.at(-2)]).toEqual([far, far]);
      const { x, y } = edge.middle;
      expect(x > b.x && x < b.x + b.width && y > b.y && y < b.y + b.height).toBe(false);
      expect(x).toBeLessThan(width);
      expect(y).toBeLessThan(height);
    }
  }
});

const pictures = fc
  .record({
    count: fc.integer({ min: 1, max: 12 }),
    pairs: fc.array(fc.tuple(fc.option(fc.nat(11)), fc.option(fc.nat(11))), { maxLength: 24 }),
  })
  .map(({ count, pairs }): Picture => {
    const id = (index: number): string => `n${index % count}`;
    return {
      nodes: Array.from({ length: count }, (_, index) => ({ id: id(index), name: id(index) })),
      edges: pairs.map(([from, to]) => ({
        ...(from !== null && { from: id(from) }),
        ...(to !== null && { to: id(to) }),
      })),
    };
  });

test("every picture is drawn with finite coordinates inside its size", () => {
  fc.assert(
    fc.property(pictures, fc.constantFrom("right" as const, "down" as const), (picture, direction) => {
      const drawing = layoutPicture(picture, direction);
      expect(drawing.nodes).toHaveLength(picture.nodes.length);
      expect(drawing.edges).toHaveLength(picture.edges.length);
      for (const { x, y, width, height } of drawing.nodes) {
        expect(x).toBeGreaterThanOrEqual(0);
        expect(y).toBeGreaterThanOrEqual(0);
        expect(x + width).toBeLessThanOrEqual(drawing.width + 1);
        expect(y + height).toBeLessThanOrEqual(drawing.height + 1);
      }
      for (const { path, middle } of drawing.edges) {
        expect(path).toMatch(/^M-?[\d.]+ -?[\d.]+C/);
        expect(path).not.toContain("NaN");
        expect(Number.isFinite(middle.x + middle.y)).toBe(true);
      }
    }),
    { numRuns: 60 },
  );
});
