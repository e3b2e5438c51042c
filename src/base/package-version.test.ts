import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ENGINE_NAME } from "./package-version.ts";

test("the engine that runs record has the name and version of the package", () => {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { name, version } = JSON.parse(manifest) as { readonly name: string; readonly version: string };
  expect(ENGINE_NAME).toBe(`${name}/${version}`);
});
