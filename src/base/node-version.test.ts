import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { nodeProblem, OLDEST_NODE } from "./node-version.ts";

test("a Node below the oldest supported version is named in one sentence with that version", () => {
  for (const version of ["18.20.4", "20.20.2", "22.11.0", "23.9.0", "24.0.0", "24.14.1"])
    expect(nodeProblem(version)).toBe(`reprise needs Node 24.15 or newer; this is ${version}.`);
  for (const version of ["24.15.0", "24.21.0", "25.0.0", "26.1.0", process.versions.node])
    expect(nodeProblem(version)).toBeUndefined();
});

test("the oldest version is the same in the package, the command line, the template of init and the scripts", () => {
  const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  expect((JSON.parse(read("package.json")) as { engines: unknown }).engines).toEqual({ node: `>=${OLDEST_NODE}` });
  const [major, minor] = OLDEST_NODE.split(".");
  expect(read("src/cli/main.ts")).toContain(`major < ${major} || (major === ${major} && minor < ${minor})`);
  expect(read("src/cli/main.ts")).toContain(`reprise needs Node ${OLDEST_NODE} or newer; this is `);
  expect(read("src/cli/init-files.ts")).toContain(`engines: { node: ">=${OLDEST_NODE}" }`);
  expect(read("scripts/set-up.mjs")).toContain(`OLDEST_NODE = [${major}, ${minor}]`);
});
