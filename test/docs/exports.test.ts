// Every exported name is documented where it is declared: one sentence, and an example if it can be called or used as a value.
// The examples compile (test/docs/examples.test.ts).

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { publicNames } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

type Read = (path: string) => string;

interface Exported {
  readonly name: string;
  readonly isType: boolean;
  /** The file it is re-exported from; undefined: it is declared here. */
  readonly from: string | undefined;
}

interface Declared {
  readonly path: string;
  readonly isCallable: boolean;
  readonly comment: string;
}

const DECLARATION =
  /^export (?:declare )?(?:async )?(?:(const|function|class|interface) (\w+)|(type) (\w+)(?:<[^\n]*>)? = ?(\(|\n)?)/gm;

/** The names that a file exports, as values or as types. */
function exportsOf(path: string, read: Read): readonly Exported[] {
  const source = read(path);
  const lists = Array.from(
    source.matchAll(/^export (type )?\{([^}]*)\}(?: from "(\.[^"]+)")?/gm),
    ([, allTypes, names = "", specifier]) => {
      const from = specifier === undefined ? undefined : join(dirname(path), specifier);
      return names
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "")
        .map((name) => ({
          name: name.replace(/^type /, ""),
          isType: allTypes !== undefined || name.startsWith("type "),
          from,
        }));
    },
  ).flat();
  const stars = Array.from(source.matchAll(/^export type \* from "(\.[^"]+)"/gm), ([, specifier = ""]) =>
    exportsOf(join(dirname(path), specifier), read).map(({ name }) => ({
      name,
      isType: true,
      from: join(dirname(path), specifier),
    })),
  ).flat();
  const own = Array.from(source.matchAll(DECLARATION), (match) => ({
    name: match[2] ?? match[4] ?? "",
    isType: match[1] === "interface" || match[3] === "type",
    from: undefined,
  }));
  return [...lists, ...stars, ...own];
}

/** The declarations of a name in a file, with the comments in front of them; re-exports are followed. */
function declarationsOf(name: string, path: string, read: Read): readonly Declared[] {
  const here = Array.from(read(path).matchAll(DECLARATION))
    .filter((match) => (match[2] ?? match[4]) === name)
    .map((match) => {
      const before = read(path).slice(0, match.index).trimEnd();
      const comment = before.endsWith("*/") ? before.slice(before.lastIndexOf("/**")) : "";
      const isFunctionType = match[3] === "type" && match[5] === "(";
      return { path, isCallable: isFunctionType || (match[1] ?? "interface") !== "interface", comment };
    });
  if (here.length > 0) return here;
  return exportsOf(path, read)
    .filter((exported) => exported.name === name && exported.from !== undefined)
    .flatMap(({ from }) => declarationsOf(name, from!, read));
}

/** A sentence starts with a capital letter or with code, and ends with a period in its first paragraph. */
const SENTENCE = /^\/\*\*\s*(?:\* )?[A-Z`"][^@]*?[.:](?:\s|$|\*)/;

function problemsOf({ name, isType, from }: Exported, door: string, read: Read): string[] {
  const found = declarationsOf(name, from ?? door, read);
  if (found.length === 0) return [`${name}: its declaration was not found`];
  const { path } = found[0]!;
  if (!found.some(({ comment }) => SENTENCE.test(comment))) return [`${path}: ${name} has no sentence`];
  const needsExample = found.some(({ isCallable }) => isCallable) && !(isType && isClassOf(name, path, read));
  const hasExample = found.some(({ comment }) => comment.includes("@example") && comment.includes("```ts"));
  return needsExample && !hasExample ? [`${path}: ${name} has no example`] : [];
}

/** A class of which only the type is exported cannot be constructed by a program. */
function isClassOf(name: string, path: string, read: Read): boolean {
  return new RegExp(`^export class ${name}\\b`, "m").test(read(path));
}

test("an export without a sentence or an example is found", () => {
  const sentence = "/** Says hello. */\n";
  const example = "/**\n * Says hello.\n *\n * @example\n * ```ts\n * hello();\n * ```\n */\n";
  const problems = (source: string, list = 'export { hello } from "./hello.ts";'): string[] => {
    const files: Record<string, string> = { "index.ts": list, "hello.ts": source };
    return exportsOf("index.ts", (path) => files[path]!).flatMap((one) =>
      problemsOf(one, "index.ts", (path) => files[path]!),
    );
  };
  expect(problems("")).toHaveLength(1);
  expect(problems("export function hello() {}")).toEqual(["hello.ts: hello has no sentence"]);
  expect(problems("/** says hello */\nexport function hello() {}")).toEqual(["hello.ts: hello has no sentence"]);
  expect(problems(`${sentence}export function hello() {}`)).toEqual(["hello.ts: hello has no example"]);
  expect(problems(`${sentence}export const hello = 1;\n${sentence}export type hello = 1;`)).toEqual([
    "hello.ts: hello has no example",
  ]);
  expect(problems(`${example}export function hello() {}`)).toEqual([]);
  const type = 'export type { hello } from "./hello.ts";';
  expect(problems(`${sentence}export interface hello {}`, type)).toEqual([]);
  expect(problems("export interface hello {}", type)).toEqual(["hello.ts: hello has no sentence"]);
  expect(problems(`${sentence}export type hello = (name: string) => void;`, type)).toEqual([
    "hello.ts: hello has no example",
  ]);
  expect(problems(`${sentence}export class hello {}`, type)).toEqual([]);
});

const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
};
const DOORS = Object.values(exports).flatMap((door) =>
  typeof door === "string" ? [] : [door["reprise-source"]!.replace("./", "")],
);
const texts = new Map<string, string>();
const read: Read = (path) => {
  if (!texts.has(path)) texts.set(path, readFileSync(join(ROOT, path), "utf8"));
  return texts.get(path)!;
};

test("every export of every door has a sentence, and an example if it can be called or used as a value", () => {
  const exported = DOORS.flatMap((door) => exportsOf(door, read).map((one) => ({ door, one })));
  expect(exported.length).toBeGreaterThan(130);
  expect([...new Set(exported.flatMap(({ door, one }) => problemsOf(one, door, read)))]).toEqual([]);
  expect(
    [...publicNames(ROOT)].filter((name) => name !== "" && !exported.some(({ one }) => one.name === name)),
  ).toEqual([]);
});
