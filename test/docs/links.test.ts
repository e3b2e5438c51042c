// Every link inside the documents leads to a file, and to a heading if it names one.

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { documentsOf } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The anchor that a heading gets where Markdown is shown. */
function anchorOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, "");
}

function anchorsIn(text: string): ReadonlySet<string> {
  return new Set([...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading)));
}

type Read = (path: string) => string | undefined;

function brokenLinks(path: string, read: Read): string[] {
  const links = [...withoutCode(read(path) ?? "").matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return links
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [file = "", anchor] = target.split("#");
      const text = read(file === "" ? path : normalize(join(dirname(path), file)));
      return text === undefined || (anchor !== undefined && !anchorsIn(text).has(anchor));
    })
    .map((target) => `${path}: ${target}`);
}

test("a link to a missing file or heading is found", () => {
  const files: Record<string, string> = {
    "docs/a.md": "[b](b.md) [c](c.md) [d](b.md#the-ctxrun-call) [e](b.md#no) [f](#here) [g](https://example.org)",
    "docs/b.md": "## The `ctx.run` call\n```sh\n# no\n```",
  };
  expect(brokenLinks("docs/a.md", (path) => files[path])).toEqual([
    "docs/a.md: c.md",
    "docs/a.md: b.md#no",
    "docs/a.md: #here",
  ]);
});

test("every link in the documents leads somewhere", () => {
  const read: Read = (path) => {
    if (!existsSync(join(ROOT, path))) return undefined;
    return statSync(join(ROOT, path)).isDirectory() ? "" : readFileSync(join(ROOT, path), "utf8");
  };
  expect(documentsOf(ROOT).flatMap((path) => brokenLinks(path, read))).toEqual([]);
});
