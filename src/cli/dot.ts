// DOT: renders diagrams in the language of Graphviz.

import type { Arrow, Box, Mark, Diagram } from "./diagram.ts";

const SHAPES: Readonly<Record<Box["shape"], string>> = {
  terminal: "shape=oval",
  node: 'shape=box, style="rounded,filled"',
  derived: 'shape=box, style="filled"',
  items: 'shape=box3d, style="filled"',
  join: 'shape=hexagon, style="filled"',
  choice: 'shape=diamond, style="filled"',
};

const ARROWS: Readonly<Record<Arrow["style"], readonly string[]>> = {
  always: [],
  value: [],
  conditional: [],
  spread: ["penwidth=2.5"],
  goto: ["style=dashed"],
  branch: ["style=dashed"],
};

const MARKS: Readonly<Record<Mark, string>> = {
  done: 'fillcolor="#d8f3dc", color="#2d6a4f"',
  now: 'fillcolor="#ffe8a3", color="#b08900", penwidth=3',
  failed: 'fillcolor="#ffd6d6", color="#c1121f", penwidth=3',
  waiting: 'fillcolor="#e2e2ff", color="#5a4fcf"',
  skipped: 'fillcolor="#eeeeee", color="#999999", fontcolor="#777777"',
};

export function dotOf(diagrams: readonly Diagram[]): string {
  const [only] = diagrams;
  const lines =
    diagrams.length === 1 && only !== undefined
      ? [`label=${quoted([only.title])};`, "labelloc=t;", ...linesOf(only)]
      : diagrams.flatMap((diagram, index) => [
          `subgraph cluster_g${index} {`,
          ...[`label=${quoted([diagram.title])};`, ...linesOf(diagram)].map((line) => `  ${line}`),
          "}",
        ]);
  const head = [
    'fontname="Helvetica";',
    'node [fontname="Helvetica", fillcolor="#ffffff"];',
    'edge [fontname="Helvetica", fontsize=10];',
  ];
  return `digraph reprise {\n${[...head, ...lines].map((line) => `  ${line}\n`).join("")}}\n`;
}

function linesOf({ boxes, arrows }: Diagram): string[] {
  return [
    ...boxes.map(({ id, lines, shape, mark, isOpen }) => {
      const style = isOpen ? SHAPES[shape].replace("filled", "filled,dashed") : SHAPES[shape];
      const filled = shape === "terminal" && mark !== undefined ? [`${style}, style="filled"`] : [style];
      return `${id} [${[`label=${quoted(lines)}`, ...filled, ...(mark === undefined ? [] : [MARKS[mark]])].join(", ")}];`;
    }),
    ...arrows.map(({ from, to, label, style }) => {
      const attributes = [...(label === "" ? [] : [`label=${quoted([label])}`]), ...ARROWS[style]];
      return `${from} -> ${to}${attributes.length === 0 ? "" : ` [${attributes.join(", ")}]`};`;
    }),
  ];
}

/** Escapes backslashes, quotes and entities for Graphviz, and control characters for terminals. */
function quoted(lines: readonly string[]): string {
  const safe = lines.map((line) =>
    line.replace(/[\p{C}&]/gu, (char) => `&#${char.codePointAt(0)};`).replace(/[\\"]/g, "\\$&"),
  );
  return `"${safe.join("\\n")}"`;
}
