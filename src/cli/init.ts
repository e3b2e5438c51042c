// reprise init: creates a small project that runs.

import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { RepriseError } from "../base/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { projectFiles } from "./init-files.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { plain } from "./text.ts";
import { packageVersion } from "./version.ts";

export async function init(folder: string, options: GlobalOptions): Promise<number> {
  const path = resolve(folder);
  const files = projectFiles(packageNameOf(path), packageVersion());
  refuseOverwrite(path, Object.keys(files));
  mkdirSync(path, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content, { flag: "wx" });
  const where = relative(process.cwd(), path);
  const next = [...(where === "" ? [] : [`cd ${where}`]), "npm install", "npm test", "npm run dev"];
  if (options.json) await printJson({ folder: path, files: Object.keys(files), next });
  else {
    for (const name of Object.keys(files)) await print(`${paint("green", "created")} ${plain(join(where, name))}`);
    remark(`\n${paintError("dim", "next:")} ${next.map((command) => plain(command)).join(" && ")}`);
  }
  return EXIT.ok;
}

/** If one file exists, nothing is written. */
function refuseOverwrite(path: string, names: readonly string[]): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isDirectory())
    throw new RepriseError("USAGE", `${path} is not a folder. Name another folder.`);
  const existing = names.filter((name) => existsSync(join(path, name)));
  if (existing.length > 0)
    throw new RepriseError(
      "USAGE",
      `${path} already contains ${existing.join(", ")}, so nothing was written. Name another folder.`,
      { details: { existing } },
    );
}

/** A package name that npm accepts. */
function packageNameOf(path: string): string {
  const name = basename(path)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+|[._-]+$/g, "");
  return name === "" ? "my-app" : name;
}
