// Diagram grammar: a strict parser for the subset of Mermaid and DOT that diagrams use. It returns labels as a reader sees
// them, so that tests can compare them with names.
//
// Checked by hand against Mermaid 11.4 and 12.3 and Graphviz (viz.js): both accept everything that this parser accepts.

export interface ReadPicture {
  readonly titles: readonly string[];
  readonly boxes: ReadonlyMap<string, { readonly lines: readonly string[]; readonly shape: string }>;
  readonly arrows: readonly {
    readonly from: string;
    readonly to: string;
    readonly label: string;
    readonly style: string;
  }[];
  /** The ids of the boxes of each class or color. */
  readonly marks: ReadonlyMap<string, readonly string[]>;
}

const SHAPES: Readonly<Record<string, string>> = {
  '(["': '"])',
  '["': '"]',
  '[["': '"]]',
  '{{"': '"}}',
  '("': '")',
  '{"': '"}',
};

class Reading {
  readonly titles: string[] = [];
  readonly boxes = new Map<string, { lines: string[]; shape: string }>();
  readonly arrows: { from: string; to: string; label: string; style: string }[] = [];
  readonly marks = new Map<string, string[]>();

  box(id: string, lines: string[], shape: string): void {
    if (this.boxes.has(id)) throw new Error(`The box ${id} is there twice.`);
    this.boxes.set(id, { lines, shape });
  }

  finish(): this {
    for (const id of [...this.arrows.flatMap(({ from, to }) => [from, to]), ...[...this.marks.values()].flat()])
      if (!this.boxes.has(id)) throw new Error(`There is no box ${id}.`);
    return this;
  }
}

export function readMermaid(text: string): ReadPicture {
  const reading = new Reading();
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines[0] === "---") {
    const [title = ""] = lines.splice(0, 3).slice(1);
    reading.titles.push(JSON.parse(title.replace(/^title: /, "")) as string);
    if (title.includes("%%")) throw new Error("A directive in the title.");
  }
  if (lines.shift() !== "flowchart TD") throw new Error("Expected a flowchart.");
  let depth = 0;
  for (const line of lines) depth += readLine(reading, line.trim());
  if (depth !== 0) throw new Error("A subgraph is not closed.");
  return reading.finish();
}

/** Returns the change of the nesting depth. */
function readLine(reading: Reading, line: string): number {
  let match: RegExpExecArray | null;
  if (line === "end") return -1;
  if ((match = /^subgraph g\d+\["(.*)"\]$/.exec(line)) !== null) {
    reading.titles.push(mermaidLabel(match[1]!).join("\n"));
    return 1;
  }
  if (
    (match = /^(g\d+(?:start|end|n\d+)) (-->|==>|-\.->)(?:\|"([^"]*)"\|)? (g\d+(?:start|end|n\d+))$/.exec(line)) !==
    null
  ) {
    const [, from, style, label = "", to] = match;
    reading.arrows.push({ from: from!, to: to!, label: mermaidLabel(label).join("\n"), style: style! });
  } else if (
    (match = /^(g\d+(?:start|end|n\d+))(\(\["|\["|\[\["|\{\{"|\("|\{")([^"]*)("\]\)|"\]|"\]\]|"\}\}|"\)|"\})$/.exec(
      line,
    )) !== null
  ) {
    const [, id, before, label, after] = match;
    if (SHAPES[before!] !== after) throw new Error(`Brackets do not match: ${line}`);
    reading.box(id!, mermaidLabel(label!), before!);
  } else if ((match = /^class ([\w,]+) (\w+)$/.exec(line)) !== null) reading.marks.set(match[2]!, match[1]!.split(","));
  else if (!/^classDef \w+ (?:[\w-]+:(?:#[0-9a-f]{6}|\d+px|\d+ \d+),?)+$/.test(line))
    throw new Error(`Mermaid would not know: ${line}`);
  return 0;
}

const NAMED: Readonly<Record<string, string>> = { quot: '"', amp: "&", lt: "<", gt: ">" };

function mermaidLabel(label: string): string[] {
  return label.split("<br/>").map((line) => {
    const bare = line.replace(/#\w+;/g, "");
    if (/[#<>&"`;:%{}[\]|*~$\\@^]/.test(bare)) throw new Error(`Mermaid, HTML or Markdown would read it: ${line}`);
    if (/^(?:[-+ ]|\d+[.)])/.test(line)) throw new Error(`Markdown would make a list of it: ${line}`);
    return line.replace(/#(\w+);/g, (_all, name: string) => NAMED[name] ?? String.fromCodePoint(Number(name)));
  });
}

type Token = { readonly kind: "word" | "string" | "mark"; readonly text: string };

function dotTokens(text: string): Token[] {
  const tokens: Token[] = [];
  const pattern = /\s+|([A-Za-z_]\w*|\d+(?:\.\d+)?)|"((?:[^"\\]|\\[\\"n])*)"|(->|[{}[\];,=])/y;
  while (pattern.lastIndex < text.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(text);
    if (match === null) throw new Error(`Graphviz would not know: ${text.slice(at, at + 40)}`);
    const [, word, string, mark] = match;
    if (word !== undefined) tokens.push({ kind: "word", text: word });
    else if (string !== undefined) tokens.push({ kind: "string", text: string });
    else if (mark !== undefined) tokens.push({ kind: "mark", text: mark });
  }
  return tokens;
}

function dotLabel(text: string): string[] {
  if (/&(?!#\d+;)/.test(text)) throw new Error(`Graphviz would read an entity in ${text}`);
  return text.split(/(?<!\\)(?:\\\\)*\\n/).length === 1
    ? [unescapeDot(text)]
    : text
        .replace(/\\(.)/g, (_all, char: string) => (char === "n" ? "\u0000" : `\\${char}`))
        .split("\u0000")
        .map(unescapeDot);
}

function unescapeDot(text: string): string {
  return text.replace(/\\(.)/g, "$1").replace(/&#(\d+);/g, (_all, code: string) => String.fromCodePoint(Number(code)));
}

export function readDot(text: string): ReadPicture {
  const reading = new Reading();
  const tokens = dotTokens(text);
  let at = 0;
  const next = (): Token => tokens[at++] ?? { kind: "mark", text: "" };
  const expect = (wanted: string): void => {
    const { text: got } = next();
    if (got !== wanted) throw new Error(`Expected ${wanted}, got ${got} at ${at}.`);
  };
  const attributes = (): Map<string, string> => {
    const found = new Map<string, string>();
    if (tokens[at]?.text !== "[") return found;
    do {
      at += 1;
      const name = next().text;
      expect("=");
      found.set(name, next().text);
    } while (tokens[at]?.text === ",");
    expect("]");
    return found;
  };
  const block = (): void => {
    expect("{");
    while (tokens[at]?.text !== "}") {
      const { text: first, kind } = next();
      if (kind !== "word") throw new Error(`Expected a statement, got ${first}.`);
      if (first === "subgraph") {
        next();
        block();
        continue;
      }
      const { text: after = "" } = tokens[at] ?? {};
      if (after === "=") {
        at += 1;
        const value = next().text;
        if (first === "label") reading.titles.push(dotLabel(value).join("\n"));
      } else if (after === "->") {
        at += 1;
        const to = next().text;
        const given = attributes();
        const style = given.get("style") ?? (given.has("penwidth") ? "bold" : "plain");
        reading.arrows.push({ from: first, to, label: dotLabel(given.get("label") ?? "").join("\n"), style });
      } else {
        const given = attributes();
        if (first !== "node" && first !== "edge") {
          reading.box(first, dotLabel(given.get("label") ?? ""), given.get("shape") ?? "");
          const color = given.get("fillcolor");
          if (color !== undefined) reading.marks.set(color, [...(reading.marks.get(color) ?? []), first]);
        }
      }
      expect(";");
    }
    expect("}");
  };
  expect("digraph");
  next();
  block();
  if (at !== tokens.length) throw new Error("There is more than one graph.");
  return reading.finish();
}
