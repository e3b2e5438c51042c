// Keys: the signing key of this project, and the keys whose signatures it accepts.
//
// cli.K1. The own key is that of the site: `<home>/key`, or REPRISE_KEY (key-file.K1).
// cli.K2. `<home>/trusted` has a vkey per line. Empty lines, and lines that begin with `#`, do not count. A file that other users can
//   change is refused.

import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RepriseError } from "../base/index.ts";
import { createHomeFolder, findKeyIn, getKeyIn, KEY_VARIABLE, readSettings, type OwnKey } from "../federation/index.ts";
import { parseVkey, type VerifyingKey } from "../receipts/index.ts";
import { CommandError } from "./command-error.ts";
import { homeOf, type HomeOptions } from "./home.ts";

export type { OwnKey };

/** The signing key of this project; undefined: it has none. */
export function findKey(options: HomeOptions): OwnKey | undefined {
  return findKeyIn(homeOf(options));
}

/** The signing key of this project, created if it has none. */
export function getKey(options: HomeOptions, name?: string): OwnKey {
  try {
    return getKeyIn(homeOf(options), name);
  } catch (error) {
    throw error instanceof RepriseError ? error : unwritable(homeOf(options), error);
  }
}

/** The keys whose signatures are accepted: the own one, those of `<home>/trusted`, of peers, and of --key. */
export function admittedKeys(options: HomeOptions & { readonly key?: readonly string[] }): readonly VerifyingKey[] {
  const own = findKey(options);
  const keys = [
    ...(own === undefined ? [] : [own.key]),
    ...trustedKeys(options).map(({ key }) => key),
    ...Object.values(readSettings(homeOf(options)).peers ?? {}).map(({ vkey }) => parseVkey(vkey)),
    ...(options.key ?? []).map((text) => parseVkey(text)),
  ];
  return [...new Map(keys.map((key) => [key.vkey, key])).values()];
}

/** cli.K2 */
export function trustedKeys(options: HomeOptions): readonly { readonly key: VerifyingKey; readonly line: number }[] {
  const file = trustedFile(options);
  if (!existsSync(file)) return [];
  refuseMode(file);
  return readText(file)
    .split("\n")
    .flatMap((text, index) => {
      if (text.trim() === "" || text.startsWith("#")) return [];
      try {
        return [{ key: parseVkey(text), line: index + 1 }];
      } catch (cause) {
        const { message } = cause as Error;
        throw new RepriseError("BAD_OPTIONS", `Line ${index + 1} of ${file}: ${message}`, { cause });
      }
    });
}

/** False: the file has it already. */
export function trustKey(options: HomeOptions, vkey: string): boolean {
  const key = parseVkey(vkey);
  if (trustedKeys(options).some((one) => one.key.vkey === key.vkey)) return false;
  const file = trustedFile(options);
  try {
    createHomeFolder(homeOf(options));
    const before = existsSync(file) ? readText(file) : "";
    const separator = before === "" || before.endsWith("\n") ? "" : "\n";
    writeFileSync(file, `${separator}${key.vkey}\n`, { flag: "a", mode: 0o600 });
  } catch (error) {
    throw error instanceof RepriseError ? error : unwritable(homeOf(options), error);
  }
  return true;
}

export function trustedFile(options: HomeOptions): string {
  return join(homeOf(options), "trusted");
}

function unwritable(path: string, cause: unknown): CommandError {
  return new CommandError(
    "BAD_OPTIONS",
    `The signing key cannot be created: ${path} cannot be written: ${(cause as Error).message}. Name a folder with --home or REPRISE_HOME, pass a key in ${KEY_VARIABLE}, or write a bundle without a signature with --unsigned.`,
    `reprise key --home <folder>`,
    { cause },
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new RepriseError("BAD_OPTIONS", `${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}

/** Windows has no such modes. */
function refuseMode(file: string): void {
  if (process.platform === "win32" || (statSync(file).mode & 0o022) === 0) return;
  throw new CommandError(
    "BAD_OPTIONS",
    `${file} is not private: other users of this machine can add keys to it.`,
    `chmod 600 ${file}`,
  );
}
