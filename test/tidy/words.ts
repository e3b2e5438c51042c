// Words that only this project used: a reader had to translate them. Names and sentences use those of the field instead.

import { posix } from "node:path";
import { codeOf, type Files } from "./files.ts";

/** As a part of any name, in the code or of a file. */
const PARTS = new Set(
  (
    "speech spoken speak firmness footprint foresee quickly carefully wary lane lanes seal border patience patiently " +
    "insistence solitude news steer steers steering unbegun mortal told talk talking approachable anew whoever nobody " +
    "somebody look looking served caring proving travelling"
  ).split(" "),
);
/** As a whole name. */
const NAMES = new Set("Held Memory Word Words Waiting Care bornAs functionWords hasChanged lives care".split(" "));
/** As a part of a file's name. */
const IN_PATHS = new Set("words ask life lives wanted care helping everywhere elsewhere".split(" "));
/** `crashEverywhere` is a public name. */
const KEPT_PATHS = /(?:^|\/)crash-everywhere(?:\.test)?\.ts$/;
/** Names of tables and indexes, which databases hold already. */
const STORED_NAMES = new Set(["lanes", "lanes_opening"]);

const PROSE =
  /\b(?:whoever|whomever|nobody|somebody|anybody|everybody|anew|(?:go|goes|going|went) on|(?:is|are|was|were|be) told|at work|in silence|hang together|begin anew)\b/gi;

export function findPrivateNames(files: Files): string[] {
  const problems: string[] = [];
  for (const [path, source] of files) {
    if (path.startsWith("test/tidy")) continue;
    const inPath = posix.dirname(path) === "." ? [path] : path.split("/");
    const parts = inPath.flatMap((name) => name.replace(/\..*$/, "").split(/[-_]/));
    if (!KEPT_PATHS.test(path))
      for (const part of parts)
        if (PARTS.has(part) || IN_PATHS.has(part)) problems.push(`${path}: a file named "${part}"`);
    const code = codeOf(source);
    const seen = new Set<string>();
    for (const { 0: name, index } of code.matchAll(/[A-Za-z_$][\w$]*/g)) {
      if (seen.has(name)) continue;
      seen.add(name);
      const isPrivate = NAMES.has(name) || partsOf(name).some((part) => PARTS.has(part));
      if (isPrivate && !STORED_NAMES.has(name))
        problems.push(`${path}:${code.slice(0, index).split("\n").length}: ${name}`);
    }
  }
  return problems;
}

function partsOf(name: string): string[] {
  return name
    .split(/(?<=[a-z0-9])(?=[A-Z])|_|\$/)
    .map((part) => part.toLowerCase())
    .filter((part) => part !== "");
}

export function findPrivateProse(files: Files): string[] {
  const problems: string[] = [];
  for (const [path, source] of files)
    for (const [index, line] of source.split("\n").entries())
      for (const [phrase] of line.matchAll(PROSE)) problems.push(`${path}:${index + 1}: "${phrase}"`);
  return problems;
}
