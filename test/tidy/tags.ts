// Tags of invariants: `pump.P3` is the third invariant of src/worker/pump.ts. One line of a header defines it
// (`// pump.P3. One batch …`); comments cite it by that name. Rules of the product are defined in docs/rules.md.

import { posix } from "node:path";
import { codeOf, type Files } from "./files.ts";

const TAG = /(?<![\w./-])([a-z][a-z0-9-]*)\.([A-Z]\d{1,2})\b/g;
const DEFINITION = /^\/\/ ([a-z][a-z0-9-]*\.[A-Z]\d{1,2})\. |^\*\*([a-z]+\.[A-Z]\d{1,2})\.\*\* /gm;
/** A letter and a number that are no tag: `V8`, `S3` (the protocol), a cell, a key of a journal in a test. */
const BARE = /(?<![\w.#$'"`-])(?!(?:V8|S3)\b)[A-Z]\d{1,2}(?![\w'"`-])/g;

export function findBadTags(files: Files): string[] {
  const problems: string[] = [];
  const defined = new Map<string, string>();
  for (const [path, source] of files) {
    for (const match of source.matchAll(DEFINITION)) {
      const tag = match[1] ?? match[2] ?? "";
      const prefix = tag.slice(0, tag.indexOf("."));
      const place = `${path}:${source.slice(0, match.index).split("\n").length}`;
      if (defined.has(tag)) problems.push(`${place}: ${tag} is defined in ${defined.get(tag)} already`);
      else defined.set(tag, place);
      const stem = posix.basename(path).replace(/\.(?:test\.)?\w+$/, "");
      if (prefix !== stem && prefix !== posix.basename(posix.dirname(path)))
        problems.push(`${place}: ${tag} belongs into a file or folder called ${prefix}`);
    }
  }
  for (const [path, source] of files) {
    const text = path.endsWith(".ts") ? commentsOf(source) : source;
    for (const [index, line] of text.split("\n").entries()) {
      for (const match of line.matchAll(TAG))
        if (!defined.has(match[0])) problems.push(`${path}:${index + 1}: ${match[0]} is defined nowhere`);
      if (!path.startsWith("src/")) continue;
      for (const match of line.matchAll(BARE))
        problems.push(`${path}:${index + 1}: ${match[0]} does not say whose invariant it is`);
    }
  }
  return problems;
}

/** The comments alone; line numbers stay. */
function commentsOf(source: string): string {
  const code = codeOf(source, { keepStrings: true });
  return Array.from(source, (char, at) => (char === "\n" || (code[at] === " " && char !== " ") ? char : " ")).join("");
}
