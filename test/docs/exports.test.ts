// What can be imported is explained where it is declared: one sentence each, and an example for what can be called or made.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { filesUnder, publicNames } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
// Nothing is exported from the command line; some of its own names are those of the engine.
const sources = filesUnder(ROOT, "src", ".ts")
  .filter((path) => !path.endsWith(".test.ts") && !path.startsWith(join("src", "cli")))
  .map((path) => readFileSync(join(ROOT, path), "utf8"));

interface Declared {
  readonly isValue: boolean;
  readonly comment: string;
}

/** What is declared for others, by name; overloads and types of the same name included. */
function declarationsIn(texts: readonly string[]): ReadonlyMap<string, readonly Declared[]> {
  const found = texts.flatMap((text) =>
    [...text.matchAll(/^export (?:async )?(const|function|class|interface|type) (\w+)/gm)].map(
      ({ index, 1: kind, 2: name = "" }) => {
        const before = text.slice(0, index).trimEnd();
        const comment = before.endsWith("*/") ? before.slice(before.lastIndexOf("/**")) : "";
        return { name, isValue: kind !== "interface" && kind !== "type", comment };
      },
    ),
  );
  return Map.groupBy(found, ({ name }) => name);
}

function problemsOf(name: string, declared: ReadonlyMap<string, readonly Declared[]>): string[] {
  const found = declared.get(name) ?? [];
  if (found.length === 0) return [`${name} is exported and declared nowhere`];
  const sentence = /\/\*\*\s*(?:\* )?\S[^\n]*[.:]/;
  if (!found.some(({ comment }) => sentence.test(comment))) return [`${name} has no sentence`];
  // A type may share its name with a class that is nobody else's business.
  const needsExample = found.every(({ isValue }) => isValue);
  return needsExample && !found.some(({ comment }) => comment.includes("@example")) ? [`${name} has no example`] : [];
}

test("an export without a sentence or an example is found", () => {
  const said = "/** Says hello. */\n";
  const shown = "/**\n * Says hello.\n *\n * @example\n */\n";
  const problems = (source: string): string[] => problemsOf("hello", declarationsIn([source]));
  expect(problems("")).toHaveLength(1);
  expect(problems("export function hello() {}")).toEqual(["hello has no sentence"]);
  expect(problems(`${said}export function hello() {}`)).toEqual(["hello has no example"]);
  expect(problems(`${shown}export function hello() {}`)).toEqual([]);
  expect(problems(`${said}export interface hello {}`)).toEqual([]);
});

test("every export has a sentence, and every function, class and value an example", () => {
  const names = [...publicNames(ROOT)].filter((name) => name !== "");
  expect(names.length).toBeGreaterThan(100);
  const declared = declarationsIn(sources);
  expect(names.flatMap((name) => problemsOf(name, declared))).toEqual([]);
});
