// Private file: a small file with secrets or rights, which only its owner may read.
//
// private-file.F1. The mode is 0600; a file that other users can read is refused, because they could already have read it.
// private-file.F2. A change replaces the whole file at once: a process never reads half of it, and a crash leaves the old one.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { RepriseError, type Random } from "../../base/index.ts";

/** The text of the file; undefined: there is none. */
export function readPrivateFile(file: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new RepriseError("BAD_OPTIONS", `${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
  // Windows has no such modes.
  if (process.platform !== "win32" && (statSync(file).mode & 0o077) !== 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${file} is not private: other users of this machine can read it. Run \`chmod 600 ${file}\`.`,
    );
  return text;
}

/** private-file.F2 */
export function replacePrivateFile(file: string, text: string, random: Random): void {
  const temporary = writeBeside(file, text, random);
  try {
    renameSync(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** False: the file is there already, and stays. */
export function createPrivateFile(file: string, text: string, random: Random): boolean {
  const temporary = writeBeside(file, text, random);
  try {
    linkSync(temporary, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function writeBeside(file: string, text: string, random: Random): string {
  const temporary = `${file}.${random.token()}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(temporary, text, { flag: "wx", mode: 0o600, flush: true });
  } catch (cause) {
    throw new RepriseError("BAD_OPTIONS", `${file} cannot be written: ${(cause as Error).message}.`, { cause });
  }
  return temporary;
}

/** Changes with every replacement of the file. */
export function fingerprintOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? "" : `${stat.ino} ${stat.mtimeNs} ${stat.ctimeNs} ${stat.size}`;
}
