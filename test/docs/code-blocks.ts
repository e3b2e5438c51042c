// Code in documents: where it stands, and what it says about itself.
//
// A block is a whole module. It is compiled and run, unless its first line says `// not run: reason`.
// `// prints: text` after a statement, or on a line of its own, is a promise about standard output.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface CodeBlock {
  /** `docs/tutorial.md:12` */
  readonly place: string;
  readonly code: string;
  readonly notRun: string | undefined;
  readonly prints: readonly string[];
}

export function filesUnder(root: string, folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .toSorted();
}

export function documentsOf(root: string): string[] {
  const atRoot = readdirSync(root).filter((name) => name.endsWith(".md"));
  return [...atRoot, ...filesUnder(root, "docs", ".md"), ...filesUnder(root, "examples", ".md")];
}

/** The ```ts blocks of a document. */
export function blocksIn(root: string, path: string): CodeBlock[] {
  return fencesIn(readFileSync(join(root, path), "utf8"), path);
}

export interface SourceExample {
  readonly place: string;
  /** What the comment stands above. */
  readonly name: string;
  /** Empty when the example is not fenced, and so cannot be checked. */
  readonly blocks: readonly CodeBlock[];
}

/** The `@example`s in a source file. */
export function examplesIn(root: string, path: string): SourceExample[] {
  const source = readFileSync(join(root, path), "utf8");
  const comments = source.matchAll(
    /\/\*\*((?:(?!\*\/)[\s\S])*?@example(?:(?!\*\/)[\s\S])*?)\*\/\s*export (?:async )?\w+ (\w+)/g,
  );
  return Array.from(comments, ({ index, 1: text = "", 2: name = "" }) => {
    const place = `${path}:${source.slice(0, index).split("\n").length}`;
    const blocks = fencesIn(text.replace(/^ *\* ?/gm, ""), path).map((block) => ({ ...block, place }));
    return { place, name, blocks };
  });
}

/** What users can import: the names the doors export. */
export function publicNames(root: string): ReadonlySet<string> {
  const doors = [
    "src/index.ts",
    "src/checkpoints.ts",
    "src/describe.ts",
    "src/federation.ts",
    "src/testing/index.ts",
    "src/langgraph/index.ts",
    "src/ai/index.ts",
    "src/ai/openai/index.ts",
    "src/a2a/index.ts",
    "src/stores/sqlite/index.ts",
    "src/stores/postgres/index.ts",
    "src/stores/mysql/index.ts",
  ];
  const lists = doors.flatMap((door) =>
    Array.from(
      readFileSync(join(root, door), "utf8").matchAll(/export (?:type )?\{([^}]*)\}/g),
      ([, names = ""]) => names,
    ),
  );
  return new Set(lists.flatMap((names) => names.split(",").map((name) => name.trim().replace(/^type /, ""))));
}

function fencesIn(text: string, path: string): CodeBlock[] {
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => {
    const code = match[1] ?? "";
    return {
      place: `${path}:${text.slice(0, match.index).split("\n").length}`,
      code,
      notRun: /^\/\/ not run: (.+)/.exec(code)?.[1],
      prints: [...code.matchAll(/\/\/ prints: (.+)$/gm)].map((promise) => promise[1] ?? ""),
    };
  });
}
