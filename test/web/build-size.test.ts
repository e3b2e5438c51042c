// The build of the dashboard: its size, and that it loads nothing from elsewhere.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

const folder = fileURLToPath(new URL("../../dist/web", import.meta.url));
const KB = 1000;

const files = new Map(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(folder.length + 1), readFileSync(path)] as const),
);
const isCode = (path: string): boolean => /\.(?:js|css)$/.test(path);
const zipped = (paths: Iterable<string>): number => {
  let sum = 0;
  for (const path of paths) sum += gzipSync(files.get(path)!, { level: 9 }).length;
  return sum;
};

/** The files that a page needs: its chunk, and all that the chunk imports when it is loaded. */
function closure(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path) || !files.has(path)) return seen;
  seen.add(path);
  if (!path.endsWith(".js")) return seen;
  const source = files.get(path)!.toString();
  for (const [, name] of source.matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g)) closure(`assets/${name}`, seen);
  return seen;
}

test("all scripts and styles of the dashboard take at most 120 KB compressed", () => {
  expect(zipped([...files.keys()].filter(isCode))).toBeLessThanOrEqual(120 * KB);
});

test("the first screen takes at most 60 KB compressed", () => {
  const page = files.get("index.html")!.toString();
  const first = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, path]) => path!);
  expect(first.length).toBeGreaterThanOrEqual(2);
  const needed = new Set<string>();
  for (const path of first) closure(path, needed);
  // The page Runs is loaded right after: its script and style are named in the entry.
  const entry = files.get(first.find((path) => path.endsWith(".js"))!)!.toString();
  const runs = [...entry.matchAll(/assets\/(runs[^"]*\.(?:js|css))|import\(`?"?\.\/(runs[^"`]+)/g)];
  expect(runs.length).toBeGreaterThan(0);
  for (const [, asset, chunk] of runs) closure(`assets/${asset ?? chunk}`, needed);
  expect(zipped(needed)).toBeLessThanOrEqual(60 * KB);
});

test("the page has no inline script, no style and no address of another site", () => {
  const page = files.get("index.html")!.toString();
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/);
  for (const [path, content] of files) {
    if (!isCode(path)) continue;
    const foreign = [...content.toString().matchAll(/https?:\/\/[^\s"'`)]+/g)].map(([address]) => address);
    // Names of XML and links in prose are no requests.
    expect(foreign.filter((address) => !address.startsWith("http://www.w3.org/"))).toEqual([]);
  }
});
