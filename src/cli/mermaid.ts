// Mermaid: renders diagrams as Mermaid flowcharts, which GitHub, GitLab and most documentation tools draw.
//
// Mermaid parses entities (#34;), directives (%%{…}%%), Markdown and HTML inside labels. Every character that could start
// one of these is written as an entity.

import type { Arrow, Box, Mark, Diagram } from "./diagram.ts";

const SHAPES: Readonly<Record<Box["shape"], readonly [string, string]>> = {
  terminal: ["([", "])"],
  node: ["[", "]"],
  derived: ["(", ")"],
  items: ["[[", "]]"],
  join: ["{{", "}}"],
  choice: ["{", "}"],
};

const ARROWS: Readonly<Record<Arrow["style"], string>> = {
  always: "-->",
  value: "-->",
  conditional: "-->",
  spread: "==>",
  goto: "-.->",
  branch: "-.->",
};

const CLASSES: Readonly<Record<Mark, string>> = {
  done: "fill:#d8f3dc,stroke:#2d6a4f,color:#081c15",
  now: "fill:#ffe8a3,stroke:#b08900,stroke-width:3px,color:#332701",
  failed: "fill:#ffd6d6,stroke:#c1121f,stroke-width:3px,color:#3c0006",
  waiting: "fill:#e2e2ff,stroke:#5a4fcf,color:#141133",
  skipped: "fill:#eeeeee,stroke:#999999,color:#777777,stroke-dasharray:5 4",
};

export function mermaidOf(diagrams: readonly Diagram[]): string {
  const [only] = diagrams;
  const lines =
    diagrams.length === 1 && only !== undefined
      ? ["---", `title: ${titleText(only.title)}`, "---", "flowchart TD", ...linesOf(only, "  ")]
      : [
          "flowchart TD",
          ...diagrams.flatMap((diagram, index) => [
            `  subgraph g${index}[${labelText([diagram.title])}]`,
            ...linesOf(diagram, "    "),
            "  end",
          ]),
        ];
  return `${[...lines, ...classLines(diagrams.flatMap(({ boxes }) => boxes))].join("\n")}\n`;
}

function linesOf({ boxes, arrows }: Diagram, indent: string): string[] {
  return [
    ...boxes.map(({ id, lines, shape }) => {
      const [before, after] = SHAPES[shape];
      return `${indent}${id}${before}${labelText(lines)}${after}`;
    }),
    ...arrows.map(({ from, to, label, style }) => {
      const text = label === "" ? "" : `|${labelText([label])}|`;
      return `${indent}${from} ${ARROWS[style]}${text} ${to}`;
    }),
  ];
}

/** The lines have no semicolon at the end: Mermaid would read it as part of an entity. */
function classLines(boxes: readonly Box[]): string[] {
  const lines: string[] = [];
  const add = (name: string, style: string, of: readonly Box[]): void => {
    if (of.length > 0) lines.push(`  classDef ${name} ${style}`, `  class ${of.map(({ id }) => id).join(",")} ${name}`);
  };
  for (const [mark, style] of Object.entries(CLASSES))
    add(
      mark,
      style,
      boxes.filter((box) => box.mark === mark),
    );
  add(
    "open",
    "stroke-dasharray:5 4",
    boxes.filter(({ isOpen }) => isOpen),
  );
  return lines;
}

/** Every character that Mermaid, HTML or Markdown could interpret, except those that are common in code and harmless here. */
const SPECIAL =
  /[^\p{L}\p{M}\p{N} _,.()/=!?+×…'-]|^[-+ ]|(?<=^\d+)[.)]|(?<=www)\.|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/giu;
const NAMED: Readonly<Record<string, string>> = { '"': "quot", "&": "amp", "<": "lt", ">": "gt" };

export function labelText(lines: readonly string[]): string {
  return `"${lines.map((line) => line.replace(SPECIAL, entityOf)).join("<br/>")}"`;
}

function entityOf(char: string): string {
  return `#${NAMED[char] ?? char.codePointAt(0)};`;
}

/** YAML in double quotes understands what JSON does. */
function titleText(title: string): string {
  return JSON.stringify(title).replaceAll("%", "\\u0025");
}
