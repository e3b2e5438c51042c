// llms.txt lists every guide with one line, and the package ships it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { filesUnder } from "./code-blocks.ts";
import { llmsPage } from "./llms-page.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

test("llms.txt is what the documents give; `UPDATE_DOCS=1 npm test -- test/docs` writes it", () => {
  if (process.env["UPDATE_DOCS"] !== undefined) writeFileSync(join(ROOT, "llms.txt"), llmsPage());
  expect(readFileSync(join(ROOT, "llms.txt"), "utf8")).toBe(llmsPage());
});

test("every guide and every page of the reference has a line that says something", () => {
  const page = llmsPage();
  for (const path of [...filesUnder(ROOT, "docs/guides", ".md"), ...filesUnder(ROOT, "docs/reference", ".md")])
    expect(page).toMatch(new RegExp(`^- \\[[^\\]]+\\]\\(${RegExp.escape(path)}\\): .{20,}$`, "m"));
});

test("the package ships what coding agents read", () => {
  const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { files: readonly string[] };
  expect(files).toEqual(expect.arrayContaining(["llms.txt", "SKILL.md", "docs"]));
});

test("SKILL.md is short, and names itself as agents expect it", () => {
  const text = readFileSync(join(ROOT, "SKILL.md"), "utf8");
  expect(text).toMatch(/^---\nname: reprise\ndescription: .{50,500}\n---\n/);
  expect(text.split("\n").length).toBeLessThan(120);
});
