// What the tidy rules read: the files of the repository, and their code without comments and strings.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

export type Files = ReadonlyMap<string, string>;

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const NOT_OURS = new Set(["node_modules", "dist", "coverage", ".git", ".reprise", ".stryker-tmp"]);
const TEXT = /\.(?:[cm]?[jt]sx?|json|md|sql|html|css|ya?ml|sh)$|(?:^|\/)(?:\.npmrc|\.gitignore|run)$/;

export function readRepository(): Files {
  const files = new Map<string, string>();
  const visit = (folder: string): void => {
    for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory() && !NOT_OURS.has(entry.name)) visit(path);
      else if (entry.isFile() && TEXT.test(path)) files.set(path, readFileSync(join(ROOT, path), "utf8"));
    }
  };
  visit(".");
  return files;
}

export function only(files: Files, pattern: RegExp): Files {
  return new Map([...files].filter(([path]) => pattern.test(path)));
}

export const isTest = (path: string): boolean => path.endsWith(".test.ts") || path.startsWith("test/");

/** The code with comments, and if asked the insides of strings, replaced by spaces; line numbers stay. */
export function codeOf(source: string, { keepStrings = false } = {}): string {
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|\$\{(?:[^{}`]|\{[^{}]*\})*\}|[^`\\])*`|(?<=(?:^|[(,=:[!&|?{};\n]|return)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/[a-z]*/g;
  const blank = (text: string): string => text.replace(/[^\n]/g, " ");
  return source.replace(token, (text) => {
    if (text.startsWith("//") || text.startsWith("/*")) return blank(text);
    // No import is written with a template; a file that is made from one may have imports of its own.
    if (keepStrings) return text.startsWith("`") ? blank(text) : text;
    // What stands in ${…} is code.
    if (text.startsWith("`"))
      return text.replace(/(\$\{(?:[^{}`]|\{[^{}]*\})*\})|[^\n]/g, (char, code) => code ?? (char === "`" ? char : " "));
    return text[0] + blank(text.slice(1, -1)) + text.at(-1);
  });
}

export function importsOf(source: string): string[] {
  const code = codeOf(source, { keepStrings: true });
  const forms = [
    /^\s*(?:import|export)\b[^"'`;]*?\bfrom\s*["']([^"']+)["']/gm,
    /^\s*import\s*["']([^"']+)["']/gm,
    /\bimport\(\s*["']([^"']+)["']/g,
    /\bnew URL\(\s*["'](\.[^"']+\.ts)["']\s*,\s*import\.meta\.url/g,
  ];
  return forms.flatMap((form) => Array.from(code.matchAll(form), (match) => match[1]!));
}
