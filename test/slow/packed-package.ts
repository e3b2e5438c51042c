// The published package: built and packed from a copy of the repository, and installed into a project of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

export interface Ended {
  readonly code: number | null;
  /** Standard output, then standard error. */
  readonly output: string;
}

export async function runCommand(command: string, args: readonly string[], cwd: string): Promise<Ended> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const exited = once(child, "exit");
  const output = (await Promise.all([text(child.stdout), text(child.stderr)])).join("");
  const [code] = (await exited) as [number | null];
  return { code, output };
}

async function succeed(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { code, output } = await runCommand(command, args, cwd);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}: ${output}`);
}

/** Packs the repository into `folder`. Returns the tarball and the unpacked package. */
export async function packPackage(folder: string): Promise<{ tarball: string; unpacked: string }> {
  // A copy is built and packed: the repository's own dist may be in use.
  const copy = join(folder, "copy");
  mkdirSync(copy);
  for (const name of readdirSync(ROOT))
    if (!/^(?:node_modules|dist|test|bench|examples|\..*)$/.test(name))
      cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"), "dir");
  await succeed(process.execPath, ["scripts/run.mjs", "build"], copy);
  await succeed("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], copy);
  const tarball = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith(".tgz"))!,
  );
  await succeed("tar", ["xzf", tarball], folder);
  return { tarball, unpacked: join(folder, "package") };
}

/** Makes a package of the repository resolvable from a project, as an installer would. */
export function linkPackage(project: string, name: string): void {
  const to = join(project, "node_modules", name);
  mkdirSync(dirname(to), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), to, "dir");
}

/** Installs the unpacked package and its dependencies into a project. */
export function installPackage(project: string, unpacked: string): void {
  cpSync(unpacked, join(project, "node_modules/reprise"), { recursive: true });
  const manifest = readFileSync(join(unpacked, "package.json"), "utf8");
  for (const name of Object.keys((JSON.parse(manifest) as { dependencies: object }).dependencies))
    linkPackage(project, name);
}
